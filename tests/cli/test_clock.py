"""`mechnum clock` prints, writes and draws what `trace_clock` gives, and refuses in one line."""

from __future__ import annotations

import json

import pytest

import mechnum as mn
from mechnum.patching.circuit.results import circuit_of
from mechnum.report import read_netcdf
from mechnum.report.clock_frames import heads_frame
from mechnum.report.sections.clock import validation_rows

from .running import runner

OPTIONS = ("--range", "0-14", "--pairs", "8", "--heads", "3", "--mlps", "1", "--edges", "5")
ADDER = ("clock", "adder-gptj", *OPTIONS, "--quiet")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.mark.slow
def test_prints_and_writes(run, tmp_path):
    code, out, err = run(*ADDER, "--metric", "logit", "--mixed", "1", "--periods", "10,25")
    assert (code, err) == (0, "")
    folder = tmp_path / "report"
    assert sorted(path.name for path in folder.iterdir()) == [
        "circuit.json", "report.html", "results.nc"
    ]  # fmt: skip
    tree = read_netcdf(folder / "results.nc")
    model = mn.load("adder-gptj")
    loaded = mn.Circuit.load(folder / "circuit.json", model.spec)
    assert loaded.edges == circuit_of(tree["circuit"].to_dataset()).edges
    assert len(loaded) == 5
    heads = heads_frame(tree)
    assert len(heads) == 3
    for row in heads.to_dict("records"):
        line = next(x for x in out.splitlines() if x.startswith(f" {row['node'][5:]} "))
        assert f" {row['class']} " in line
    for what, *shares in validation_rows(tree):
        assert what in out
        assert all(share in out for share in shares)
    html = (folder / "report.html").read_text(encoding="utf-8")
    for words in ("Published beside measured", "same family, other size", "no reproduction",
                  "helix(a, b) on to all readers but the logits", "10, 25"):  # fmt: skip
        assert words in html, words
    reached = json.loads(tree["clock/curves/heads"].attrs["k_for"])
    assert f"50 % at k = {reached['0.5']}" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", "3"], "3 pairs are too few"),
        (["--periods", "ten"], "are not numbers"),
        (["--periods", ","], "no periods were named"),
        (["--periods", "0"], "not a finite number above 0"),
        (["--range", "0-2", "--pairs", "8"], "give more"),
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
