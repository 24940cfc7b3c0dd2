"""`mechnum circuit` prints, writes and draws what `find_circuit` gives."""

from __future__ import annotations

import numpy as np
import pytest

import mechnum as mn
from mechnum.circuits.instruments.search import find_circuit
from mechnum.report import read_netcdf
from mechnum.report.sections.circuit import quality_rows

from .running import runner

ADDER = ("circuit", "adder-gptj", "--range", "0-11", "--pairs", "8", "--quiet")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def test_prints_and_writes(run, tmp_path):
    code, out, err = run(*ADDER, "--edges", "6", "--top", "2")
    assert (code, err) == (0, "")
    model = mn.load("adder-gptj")
    pairs = mn.tasks.addition(range(12)).pairs(model, 8, seed=0)
    circuit, results = find_circuit(model, pairs, 6)
    for name, value in quality_rows(results):
        assert f"{name}  " in out
        assert value in out
    best = max(circuit.scores, key=lambda edge: abs(circuit.scores[edge]))
    line = next(line for line in out.splitlines() if line.startswith(f" {best.sender} "))
    assert str(best.receiver) in line
    assert "The 2 largest of 6 edges" in out
    folder = tmp_path / "report"
    assert sorted(path.name for path in folder.iterdir()) == [
        "circuit.json", "report.html", "results.nc"
    ]  # fmt: skip
    assert mn.Circuit.load(folder / "circuit.json", model.spec).edges == circuit.edges
    assert read_netcdf(folder / "results.nc")["circuit"].sizes["edge"] == 6
    html = (folder / "report.html").read_text(encoding="utf-8")
    page = html[html.index("How it was made</h2>") :]
    for fact in ("eap-ig", "mechnum circuit adder-gptj", "463", "none: the tokenizer"):
        assert fact in page, fact


@pytest.mark.slow
def test_cut_edges_carry_what_is_asked_for(run, tmp_path):
    code, _, err = run(*ADDER, "--edges", "6", "--values", "mean")
    assert (code, err) == (0, "")
    model = mn.load("adder-gptj")
    _, tested = mn.tasks.addition(range(12)).pairs(model, 8, seed=0).split(seed=0)
    written = read_netcdf(tmp_path / "report" / "results.nc")
    circuit = mn.Circuit.load(tmp_path / "report" / "circuit.json", model.spec)
    for values, same in (("mean", True), ("other", False)):
        expected = mn.faithfulness(model, tested, circuit, values=values)["faithfulness"].values
        assert np.allclose(written["faithfulness"]["faithfulness"], expected) is same
    html = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "the mean over prompts" in html


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--edges", "999"], "a circuit of 999 edges is none: give 1 to 463"),
        (["--pairs", "1"], "cannot be split"),
        (["--out", "/dev/null/x"], "is a file: give a folder as out"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    code, out, err = run(*ADDER, *options)
    assert (code, out) == (2, "")
    assert err.startswith("mechnum: ")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
