"""`mechnum helix` prints and writes what the library measures; refusals are one line."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.helix import ablation_scores, causal_scores
from mechnum.report import read_netcdf, words
from mechnum.tasks import sample_prompts

from .running import runner

SMALL = ("helix", "adder-gptj", "--range", "0-29", "--pairs", "8", "--periods", "5,10", "-q")
SECTIONS = (
    "What was found", "Tokens and positions", "Helix", "Size and best layer", "The helix in space",
    "Ablation of the helix", "Which periods", "Single numbers",
    "Control: a linear code", "How it was made",
)  # fmt: skip


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.mark.slow
def test_prints_and_writes_what_the_library_measures(run, tmp_path):
    code, out, err = run(*SMALL, "--search")
    assert (code, err) == (0, "")
    assert "written: report/report.html and report/results.nc" in out
    model, task = mn.load("adder-gptj"), mn.tasks.addition(range(30))
    pairs = task.pairs(model, 8, "a", seed=0)
    prompts = sample_prompts(task.prompts(model), seed=0)
    found = read_netcdf(tmp_path / "report" / "results.nc")
    methods = ("full", "pca", "helix", "circle", "polynomial", "permuted")
    scores = causal_scores(model, pairs, prompts, "a", methods=methods, periods=(5, 10))
    xr.testing.assert_allclose(found["helix/a"].to_dataset(), scores, atol=1e-4)
    ablated = ablation_scores(model, pairs, prompts, "a", periods=(5, 10))
    xr.testing.assert_allclose(found["ablation"].to_dataset(), ablated, atol=1e-4)
    means = scores["score"].sel({"method": "helix"}).mean("pair")
    line = next(line for line in out.splitlines() if re.match(r" *helix  ", line))
    layer = int(means["layer"][int(means.argmax("layer"))])
    assert ("embedding" if layer == -1 else f" {layer} ") in line
    at = mn.summarise(scores["score"].transpose("pair", "layer", "method"), seed=0)
    best = at.sel({"layer": layer, "method": "helix"})
    assert words.interval(*(float(best[name]) for name in ("mean", "low", "high"))) in line
    html = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    for section in SECTIONS:
        assert f"{section}</h2>" in html, section
    for fact in (
        "mechnum helix adder-gptj",
        "scatter3d",
        "Columns of the helix that are dropped",
        "too few for an order",
    ):
        assert fact in html, fact


@pytest.mark.slow
def test_the_end_has_helices_of_several_variables(run, tmp_path):
    code, _, err = run(*SMALL, "--position", "end", "--in-sample")
    assert (code, err) == (0, "")
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert "helix(a,b,a+b)" in found["variables"]["method"].values
    assert found["variables"].attrs["folds"] == "in sample"
    assert "Which numbers the state holds</h2>" in (tmp_path / "report/report.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.slow
def test_variables_are_a_choice(run, tmp_path):
    code, _, err = run(*SMALL, "--position", "end", "--variables", "a,b")
    assert (code, err) == (0, "")
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert found.attrs["features"] == "a, b"
    assert {"continuity", "structure", "variables"}.isdisjoint(found.children)


@pytest.mark.slow
def test_what_few_numbers_do_not_allow_is_left_out_and_said(run, tmp_path):
    code, _, err = run(
        "helix", "adder-gptj", "--range", "0-11", "--pairs", "4", "--periods", "5", "-q"
    )
    assert (code, err) == (0, "")
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert "continuity" not in found.children
    assert "1 of 12 numbers end in 3" in found.attrs["left_out"]
    assert "Left out: continuity" in (tmp_path / "report/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--position", "middle"], "no position 'middle'"),
        (["--position", "77"], "position 77 is outside"),
        (["--periods", "two"], "--periods 'two' is not a list of numbers"),
        (["--periods", "0"], "period 0 is not a finite number above 0"),
        (["--periods", "2,3,4,5,6,7,8,9,10,11,12,13,14"], "distinct numbers"),
        (["--variables", "c"], "the prompts have no number 'c'"),
        (["--task", "a-23"], "not one token"),
        (["--task", "a-23", "--max-sum", "3"], "--max-sum does not go with a-23"),
        (["--task", "a-24"], "there is no task 'a-24'"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    code, out, err = run("helix", "adder-gptj", "--pairs", "4", "-q", *(
        () if "--task" in options else ("--range", "0-11")
    ), *options)  # fmt: skip
    assert (code, out) == (2, "")
    assert err.startswith("mechnum: ")
    assert err.count("\n") == 1
    assert message in err or (options[:2] == ["--task", "a-23"] and "no token" in err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_net_without_tokenizer(run, tmp_path):
    code, _, err = run("helix", "clock-113", "--pairs", "4", "--periods", "113", "-q")
    assert (code, err) == (0, "")
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert "linear" not in found.children
    assert np.isfinite(found["ablation"]["score"]).all()
