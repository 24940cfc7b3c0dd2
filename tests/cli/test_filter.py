"""`mechnum filter` prints and writes what the library gives, and refuses bad input in one line."""

from __future__ import annotations

import numpy as np
import pytest

import mechnum as mn
from mechnum.fourier import filter_results, high_pass, low_pass, single_pass, without
from mechnum.report import read_netcdf

from .running import runner

ADDER = ("filter", "adder-gptj", "--range", "0-40", "--prompts", "40", "--quiet")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.mark.slow
def test_prints_the_table_and_writes_all(run, tmp_path):
    options = ("--tau", "9", "--tau-unit", "frequency", "--without", "8, 16", "--layers", "1-2")
    code, out, err = run(*ADDER, *options, "--single", "40", "--out", "there")
    assert (code, err) == (0, "")
    bands = [high_pass(9, "frequency"), low_pass(9, "frequency"), single_pass(40)]
    expected = filter_results(
        mn.load("adder-gptj"),
        mn.tasks.addition(range(41)),
        [*bands, without([8, 16])],
        layers=(1, 2),
        n_prompts=40,
    )
    found = read_netcdf(tmp_path / "there" / "results.nc")
    for group in ("filters", "table", "errors"):
        one, other = (tree[group].to_dataset() for tree in (found, expected))
        for name in other.data_vars:
            np.testing.assert_allclose(
                one[name].astype(float), other[name].astype(float), atol=1e-4
            )
    accuracy = expected["table"]["mean"].sel(measure="accuracy")
    rows = [line for line in out.splitlines() if " of 128" in line]
    assert len(rows) == 4 * 3
    filtered = accuracy[accuracy["projection"].values == "filter"]
    for row, value in zip(rows, filtered.values):
        told = [float(word) for word in row.split() if word.replace(".", "").isdecimal()]
        assert min(abs(number - value) for number in told) < 0.01
    assert found.attrs["layers"] == "1, 2"
    assert "Means over 40 prompts" in out
    assert "written: there/report.html and there/results.nc" in out


@pytest.mark.slow
def test_the_page_has_its_parts_and_says_how_it_was_made(run, tmp_path):
    assert run(*ADDER, "--tau", "20", "--position", "end")[0] == 0
    html = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    for part in ("Low removed, below row 20", "Loss and accuracy", "Errors by what was removed",
                 "Kinds of errors", "<dt>Position</dt><dd>end</dd>", "<dt>Layers</dt><dd>all</dd>",
                 "mechnum filter adder-gptj"):  # fmt: skip
        assert part in html, part


def test_a_net_without_tokenizer_or_norm(run):
    code, out, err = run("filter", "clock-113", "--prompts", "30", "--tau", "60", "-q")
    assert (code, err) == (0, "")
    assert "modular_addition:113" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--range", "0-9"], "'high removed, from row 50' names none of the 19 rows"),
        (["--seed", "-1"], "seed=-1 is negative: give 0 or more"),
        (["--single", "7,x"], "'x' is not a frequency"),
        (["--without", ""], "'' is not a frequency"),
        (["--single", "100"], "choose from 1 to 40"),
        (["--layers", "3-4"], "layer 4 does not exist: choose from 0 to 3"),
        (["--layers", "all"], "'all' is not a range"),
        (["--position", "middle"], "no position 'middle'"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    code, out, err = run(*ADDER, "--tau-unit", "row", *options)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert not (tmp_path / "report").exists()
