# make demo   installs into .venv and traces the bundled model that adds: report/report.html
# make test   the tests that take seconds, ruff and pyright
# make lint   ruff and pyright alone
# PYTHON=python3.12 chooses the interpreter of a new environment.

PYTHON ?= python3
VENV ?= .venv
TRANSFORMER_LENS ?= 4.3.0
PYTEST_OPTIONS ?=

BIN := $(VENV)/bin
# One thread for each test process: the tensors are small, and the processes share the cores.
RUN_TESTS := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto $(PYTEST_OPTIONS)

.PHONY: demo test test-slow test-tl3 lint clean

demo: $(VENV)/installed
	$(BIN)/mechnum trace adder-gptj --out report

test: lint
	$(RUN_TESTS) -m "not slow"

test-slow: $(VENV)/installed-test
	$(RUN_TESTS)

# The part of the suite that meets TransformerLens, under the oldest release that is supported.
test-tl3:
	$(MAKE) VENV=.venv-tl3 TRANSFORMER_LENS=3.9.0 .venv-tl3/installed-test
	OMP_NUM_THREADS=1 .venv-tl3/bin/python -m pytest -n auto $(PYTEST_OPTIONS) -m "tl3 and not slow"

lint: $(VENV)/installed-test build/types/mechnum/__init__.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

clean:
	rm -rf .venv .venv-tl3 build

# Type checkers cannot see that circuits/ is installed as mechnum.circuits; here it has that name.
build/types/mechnum/__init__.py:
	mkdir -p $(@D)
	ln -sfn ../../../circuits $(@D)/circuits
	touch $@

$(VENV)/constraints.txt: constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	sed 's/^transformer-lens==.*/transformer-lens==$(TRANSFORMER_LENS)/' constraints.txt > $@

# Stamps: a second call installs nothing until the dependencies change.
$(VENV)/installed: $(VENV)/constraints.txt pyproject.toml setup.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $< -e .
	touch $@

$(VENV)/installed-test: $(VENV)/constraints.txt pyproject.toml setup.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $< -e '.[test]'
	touch $@ $(VENV)/installed
