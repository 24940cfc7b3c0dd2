"""`mechnum patch` prints and writes what `mn.effects` gives, and refuses bad input in one line."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.report import read_netcdf, words

from .running import runner

ADDER = ("patch", "adder-gptj", "--range", "0-11", "--pairs", "6", "--quiet")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.fixture(scope="module")
def expected():
    model = mn.load("adder-gptj")
    return mn.effects(model, mn.tasks.addition(range(12)).pairs(model, 6, seed=0), "heads")


def test_prints_the_largest_and_writes_all(run, tmp_path, expected):
    code, out, err = run(*ADDER, "--top", "3", "--out", "there")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == [
        "report.html",
        "results.nc",
    ]
    found = read_netcdf(tmp_path / "there" / "results.nc")
    xr.testing.assert_allclose(found["nodes"].to_dataset(), expected, atol=1e-5)
    means = np.abs(expected["total"].mean("pair").values)
    best = [f"head {i // 4}.{i % 4}" for i in np.argsort(-means, axis=None)[:3]]
    assert re.findall(r"head \d\.\d", out) == best
    first = next(line for line in out.splitlines() if best[0] in line)
    statistics = mn.summarise(expected["total"], seed=0)
    mean, low, high, q = (
        float(statistics[name].values.flat[np.argmax(means)])
        for name in ("mean", "low", "high", "q")
    )
    for text in (*words.interval(mean, low, high).split(" ", 1), words.q_value(q)):
        assert text in first
    assert "over 6 pairs" in out
    assert "written: there/report.html and there/results.nc" in out


def test_the_page_says_how_it_was_made(run, tmp_path):
    assert run(*ADDER, "--metric", "logprob", "--direction", "noise", "--out", "it's")[0] == 0
    html = (tmp_path / "it's" / "report.html").read_text(encoding="utf-8")
    page = html[html.index("How it was made</h2>") :]
    for fact in (
        "adder-gptj",
        "addition",
        "{a}+{b}=",
        "none: the tokenizer does not add",
        "logprob: log-probability of y",
        "noise: the clean run is patched",
        "other: those of the pair&#39;s other prompt",
        "exact: recomputed",
        "<dt>Position</dt><dd>end</dd>",
        "<dt>Pairs</dt><dd>6</dd>",
        "<dt>Seed</dt><dd>0</dd>",
        "transformer-lens: ",
        "mechnum patch adder-gptj --range 0-11",
        "noise --out &#39;it&#39;",
    ):
        assert fact in page, fact


@pytest.mark.parametrize(
    ("options", "variables", "dims"),
    [
        (["--nodes", "mlps", "--estimand", "total"], {"total"}, {"layer"}),
        (["--nodes", "neurons", "--estimand", "direct"], {"direct"}, {"layer", "neuron"}),
        (["--nodes", "head 0.*, mlp 1 + mlp 2", "--position", "-2"], {"indirect"}, {"node"}),
        (["--nodes", "residual", "--position", "each"], {"direct"}, {"position", "layer"}),
        (["--nodes", "heads", "--position", "each", "--values", "mean"], {"total"},
         {"position", "layer", "head"}),
        (["--nodes", "kv", "--position", "all", "--values", "zero"], {"total"}, {"layer", "group"}),
        (["--values", "resample", "--vary", "a", "--wrong-too"], {"total"}, {"layer", "head"}),
    ],
)  # fmt: skip
def test_every_shape_has_a_table_and_a_page(run, tmp_path, options, variables, dims):
    code, out, err = run(*ADDER, *options)
    assert (code, err) == (0, "")
    assert "written: report/report.html" in out
    found = read_netcdf(tmp_path / "report" / "results.nc")["nodes"].to_dataset()
    for name in variables:
        assert set(found[name].dims) == dims | {"pair"}


def test_a_net_without_tokenizer(run):
    code, out, err = run("patch", "clock-113", "--pairs", "4", "--nodes", "attn,mlps", "-q")
    assert (code, err) == (0, "")
    assert "modular_addition:113" in out
    assert {"attn 0", "mlp 0"} <= set(re.findall(r"\w+ 0", out))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--nodes", "heeds"], "unknown nodes 'heeds': use one of"),
        (["--nodes", "head 9.0"], "head 9.0 does not exist"),
        (["--position", "middle"], "middle"),
        (["--position", "77"], "77"),
        (["--seed", "-1"], "negative"),
        (["--range", "9-3"], "the range 9-3 is empty"),
        (["--task", "subtraction"], "there is no task 'subtraction'"),
        (["--range", "0-99", "--max-sum", "-1"], "no sum of the numbers is -1 or less"),
        (["--task", "modular_addition:113", "--range", "0-99", "--max-sum", "9"], "do not go with"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    numbers = () if {"--range", "--task"} & set(options) else ("--range", "0-11")
    code, out, err = run("patch", "adder-gptj", "--pairs", "4", "-q", *numbers, *options)
    assert (code, out) == (2, "")
    assert err.startswith("mechnum: ")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_answers_nothing_right(run, monkeypatch):
    """Its answers are moved by one token, so that all are wrong."""
    from mechnum.models.model import Model

    logits = Model.logits
    monkeypatch.setattr(Model, "logits", lambda self, *a, **k: logits(self, *a, **k).roll(1, -1))
    code, out, err = run(*ADDER)
    assert (code, out) == (2, "")
    assert err == (
        "mechnum: adder-gptj answers 0 of 144 prompts of addition correctly, and no pair of these "
        "fits: add --wrong-too to patch prompts that it answers wrongly, or choose numbers that "
        "it can do\n"
    )
    code, out, _ = run(*ADDER, "--wrong-too")
    assert code == 0
    assert "The model answers" not in out


def test_nodes_are_refused_before_all_prompts_are_run(run, monkeypatch):
    from mechnum.models.model import Model

    monkeypatch.setattr(Model, "logits", lambda *a, **k: pytest.fail("the prompts were run"))
    assert run("patch", "adder-gptj", "--nodes", "head 9.9", "-q")[0] == 2
    assert run("paths", "adder-gptj", "--senders", "head 9.9", "-q")[0] == 2


def test_wrong_choices_are_refused(run):
    code, out, err = run(*ADDER, "--metric", "bleu")
    assert code == 2
    assert "bleu" in out + err
    assert "Traceback" not in err
