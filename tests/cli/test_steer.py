"""`mechnum steer` writes its report, and refuses bad input in one line."""

from __future__ import annotations

import pytest

from mechnum.report import read_netcdf
from tests.cli.running import runner


@pytest.fixture
def run(monkeypatch, capsys):
    return runner(monkeypatch, capsys)


def test_strengths_that_are_none_are_refused(run, tmp_path):
    code, _, err = run("steer", "adder-scratch", "--alphas", "much", "--out", str(tmp_path / "x"))
    assert code == 2
    assert "--alphas 'much' is not a list of numbers: write it like 2,5,10" in err
    assert err.count("\n") == 1
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--alphas", "2"), "are no strengths: give one or more from 0 to 1"),
        (("--range", "0-9"), "nothing to repair"),
        (("--draws", "2"), "has no solved examples to draw anew: give shots, or 1 draw"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(run, tmp_path, options, message):
    where = tmp_path / "x"
    fast = ("--probe", "fourier", "--prompts", "300", "--null", "1", "--quiet")
    code, _, err = run("steer", "adder-gptj", *fast, *options, "--out", str(where))
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not where.exists()


@pytest.mark.slow
def test_a_report_of_the_bundled_adder(run, tmp_path):
    options = ["--probe", "fourier", "--every", "2", "--alphas", "0.3", "--null", "9", "-q"]
    code, out, err = run("steer", "adder-scratch", *options, "--out", str(tmp_path))
    assert code == 0, err
    assert "class means" in out
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "results.nc"}
    found = read_netcdf(tmp_path / "results.nc")
    assert found["steering"]["layer"].values.tolist() == [1, 3]
    assert found.attrs["command"].startswith("mechnum steer adder-scratch --probe fourier")
