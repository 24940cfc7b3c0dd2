"""`mechnum probe`: what its options mean, and what it refuses."""

from __future__ import annotations

import pytest

from mechnum.report import read_netcdf
from tests.cli.running import runner


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.mark.slow
def test_net_without_texts_is_read_on_its_task(run, tmp_path):
    code, out, err = run("probe", "clock-59", "--prompts", "300", "--layers", "0")
    assert (code, err) == (0, "")
    assert "The number a: the Fourier regression reads" in out
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert found.attrs["task"] == "modular_addition:59"
    assert found.attrs["command"] == "mechnum probe clock-59 --prompts 300 --layers 0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clock-59", "--layers", "0,x"], "--layers '0,x' is no list of layers"),
        (["clock-59", "--layers", "5"], "has no layer 5"),
        (["clock-59", "--layers", "0,0"], "layers (0, 0): give one or more, each once"),
        (["clock-59", "--ordinals", "--task", "addition"], "--task does not go with"),
        (["clock-59", "--context", "time"], "has no tokenizer"),
        (["clock-59", "--texts", "nowhere.txt"], "cannot read nowhere.txt"),
        (["clock-59", "--probes", "linear"], "--probes does not go with the task of clock-59"),
        (["clock-59", "--task", "addition", "--piece", "0"], "--piece does not go with --task"),
        (["clock-59", "--context", "time", "--shots", "2"], "--shots does not go with texts"),
        (["clock-59", "--ordinals", "--range", "0-9"], "--range does not go with --ordinals"),
        (["smollm2", "--range", "9-2"], "the range 9-2 is empty"),
        (["mess3"], "mess3"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(run, tmp_path, arguments, message):
    code, out, err = run("probe", "-q", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
