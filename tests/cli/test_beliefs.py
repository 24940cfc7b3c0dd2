"""`mechnum beliefs`: what its argument means, and what it refuses."""

from __future__ import annotations

import pytest

from mechnum.cli.beliefs import _is_process
from mechnum.report import read_netcdf
from tests.cli.running import runner


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def test_process_alone_writes_its_page(run, tmp_path):
    code, out, err = run("beliefs", "z1r", "--states", "0,1", "--out", "z1r")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "z1r"
    assert "z1r/report.html" in out
    found = read_netcdf(tmp_path / "z1r" / "results.nc")
    assert found.attrs["command"] == "mechnum beliefs z1r --states 0,1 --out z1r"
    assert set(found.children) == {"mixed_states", "entropy"}


def test_names_of_both_are_the_net(tmp_path, monkeypatch):
    """A folder without a net, such as that of a page on z1r, is none."""
    monkeypatch.chdir(tmp_path)
    for folder in ("even", "z1r"):
        (tmp_path / folder).mkdir()
    (tmp_path / "even" / "net.toml").touch()
    names = ("mess3", "mess3:0.05,0.85", "z1r", "own.toml", "x/net.toml", "even", "gpt2")
    assert [_is_process(name) for name in names] == [False, True, True, True, False, False, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["z1r", "--length", "4"], "--length goes with a net: name one, or leave it out"),
        (["z1r", "--strings", "5000"], "--strings goes with a net: name one, or leave it out"),
        (["mess3", "--alone", "--from", "0"], "--from goes with a net"),
        (["mess3", "--length", "1"], "3 different strings of mess3:0.05,0.85 are too few to hold"),
        (["mess3", "--from", "10"], "strings of 10 tokens have no position 10: lower --from"),
        (["z1r", "--states", "0,x"], "cannot draw 0, x: choose two or three of 0, 1, R"),
        (["mess3:2"], "x is 2.0: give a number from 0 to 0.5"),
        (["nothing.toml"], "cannot read nothing.toml"),
        (["clock-59"], "was trained on modular_addition:59, which is no process"),
        (["mess3", "--process", "carry"], "has 3 tokens and carry:10,0 110: give a net"),
        (["mess3", "--states", "A"], "cannot draw A: choose two or three of A, B, C"),
        (["carry", "--states", "A,B"], "cannot draw A, B: choose two or three of no carry, carry"),
        (["mess3", "--run", "nowhere"], "there is no folder nowhere"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(run, tmp_path, arguments, message):
    code, out, err = run("beliefs", "-q", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_bundled_net_writes_its_page(run, tmp_path):
    code, out, err = run("beliefs", "-q", "mess3", "--strings", "300", "--pairs", "20")
    assert (code, err) == (0, "")
    assert "The last residual: informative" in out
    found = read_netcdf(tmp_path / "report" / "results.nc")
    assert {"geometry", "patching"} < set(found.children)
