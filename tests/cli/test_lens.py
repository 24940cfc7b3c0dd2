"""`mechnum lens` prints and writes what the library gives, and refuses bad input in one line."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.fourier import lens_results
from mechnum.report import read_netcdf, words

from .running import runner

ADDER = ("lens", "adder-gptj", "--range", "0-30", "--prompts", "40", "--permutations", "19", "-q")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.mark.slow
def test_prints_the_outliers_and_writes_all(run, tmp_path):
    code, out, err = run(*ADDER, "--top", "4", "--out", "there")
    assert (code, err) == (0, "")
    expected = lens_results(
        mn.load("adder-gptj"), mn.tasks.addition(range(31)), 40, permutations=19
    )
    found = read_netcdf(tmp_path / "there" / "results.nc")
    for group in ("lens", "attribution", "rebuilt", "logits", "signature"):
        one, other = (tree[group].to_dataset() for tree in (found, expected))
        for name in other.data_vars:
            np.testing.assert_allclose(
                one[name].astype(float), other[name].astype(float), atol=1e-4
            )
    lens = expected["lens"].to_dataset()
    share = lens["share"].where(lens["outlier"]).stack(cell=("stage", "layer", "frequency"))
    best = share.dropna("cell").sortby(share.dropna("cell"), ascending=False)[:4]
    rows = [line.split() for line in out.splitlines() if "%" in line and "0.050" in line]
    assert [row[-5] for row in rows] == [str(int(k)) for k in best["frequency"].values]
    for row, value in zip(rows, best.values):
        assert " ".join(row[-4:-2]) == words.percent(float(value))
    assert f"The 4 largest of {int(lens['outlier'].sum())} frequencies" in out
    assert "With all frequencies 100 % are right" in out
    assert "written: there/report.html and there/results.nc" in out


@pytest.mark.slow
def test_the_page_has_its_parts_and_says_how_it_was_made(run, tmp_path):
    assert run(*ADDER, "--position", "b", "--basis", "paper")[0] == 0
    html = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    for part in ("What each state would answer", "What each state gives to the logits",
                 "The answer rebuilt from few waves", "Waves of the final logits", "no errors",
                 "<dt>Position</dt><dd>b</dd>", "<dt>Fourier basis</dt><dd>paper</dd>",
                 "<dt>How many numbers</dt><dd>61</dd>", "mechnum lens adder-gptj"):  # fmt: skip
        assert part in html, part


@pytest.mark.slow
def test_a_net_without_tokenizer_or_norm(run, tmp_path):
    code, out, err = run("lens", "clock-113", "--prompts", "30", "-q")
    assert (code, err) == (0, "")
    assert "modular_addition:113" in out
    lens = read_netcdf(tmp_path / "report" / "results.nc")["lens"].to_dataset()
    assert isinstance(lens, xr.Dataset)
    assert lens.sizes["frequency"] == 56


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--position", "middle"], "no position 'middle'"),
        (["--range", "0-0"], "1 numbers have no waves"),
        (["--range", "0-0", "--max-sum", "-1"], "no sum of the numbers is -1 or less"),
        (["--seed", "-1"], "seed=-1 is negative: give 0 or more"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    code, out, err = run(*ADDER, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "report").exists()
