"""`mechnum run` and `mechnum circuits`: one report for a circuit, and refusals of one line."""

from __future__ import annotations

import pytest

from mechnum.report import read_netcdf

from ..circuits.running import planted
from ..circuits.running.conftest import circuit, site  # noqa: F401
from .running import runner


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def test_run_writes_prints_and_goes_on(run, circuit, tmp_path):  # noqa: F811
    planted.interrupted.add("doubled")
    code, out, err = run("run", circuit, "--set", "steps.first.number=3.5", "-q")
    assert (code, out) == (130, "")
    assert "stopped: the same command goes on with the step that was running" in err
    assert [path.name for path in (tmp_path / "report").iterdir()] == ["steps"]
    planted.interrupted.clear()
    code, out, err = run("run", circuit, "--set", "steps.first.number=3.5", "-q")
    assert (code, err) == (0, "")
    assert planted.measured == ["number", "doubled", "answers"]
    assert "written: report/report.html and report/results.nc" in out
    assert "The second. A second." in out
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert float(found["steps/second/value"]) == 7
    assert "command" not in found.attrs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["no_such"], "there is no circuit 'no_such'"),
        (["planted", "--set", "seed"], "--set 'seed' is no setting: write KEY=VALUE"),
        (["planted", "--set", "sede=1"], "there is no setting 'sede': did you mean seed?"),
        (["planted", "--set", "seed=x"], "seed is 'x': give a valid integer"),
        (["planted", "--set", "seed=1", "--set", "seed=2"], "--set seed is there twice"),
        (["planted", "--set", "steps.first.numbre=1"], "did you mean number?"),
        (["planted", "--model", "nowhere/"], "there is no"),
        (["planted", "--out", "/dev/null/x"], "is a file: give a folder as out"),
    ],
)
def test_bad_input_is_one_line(run, circuit, tmp_path, options, message):  # noqa: F811
    code, out, err = run("run", *options, "-q")
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "report").exists()


def test_circuits_are_listed(run, circuit):  # noqa: F811
    code, out, err = run("circuits")
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line for line in out.splitlines()}
    own = {"grokking", "clock_pizza", "trigonometry", "heuristics", "universal_numbers"}
    assert own | {"planted"} <= set(lines)
    assert "pizza-59" in lines["clock_pizza"]
    assert "pizza, clock" in lines["clock_pizza"]
    assert "first, second, third" in lines["planted"]
