"""`mechnum paths` prints and writes what `mn.path_effects` gives, and refuses bad input."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.report import read_netcdf

from .running import runner

ADDER = ("paths", "adder-gptj", "--range", "0-11", "--pairs", "6", "--quiet")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.fixture(scope="module")
def adder():
    return mn.load("adder-gptj")


@pytest.fixture(scope="module")
def pairs(adder):
    return mn.tasks.addition(range(12)).pairs(adder, 6, seed=0)


def test_prints_the_largest_and_writes_all(run, tmp_path, adder, pairs):
    code, out, err = run(*ADDER, "--senders", "components", "--receivers", "components", "--top=2")
    assert (code, err) == (0, "")
    found = read_netcdf(tmp_path / "report" / "results.nc")
    expected = mn.path_effects(adder, pairs, "components", "components")
    xr.testing.assert_allclose(found["edges"].to_dataset(), expected, atol=1e-5)
    means = expected["effect"].mean("pair")
    row, column = np.unravel_index(np.nanargmax(np.abs(means.values)), means.shape)
    lines = out.splitlines()
    first = lines[next(i for i, line in enumerate(lines) if "───" in line) + 1]
    assert str(means["sender"].values[row]) in first
    assert str(means["receiver"].values[column]) in first
    assert f"The 2 largest of {int(np.isfinite(means.values).sum())}" in out


@pytest.mark.parametrize(
    ("freeze", "frozen"),
    [("both", ["attn", "mlps"]), ("attn", ["attn"]), ("mlps", ["mlps"]), ("none", [])],
)
def test_what_a_path_keeps(run, tmp_path, adder, pairs, freeze, frozen):
    names = ("--senders", "head 0.*", "--receivers", "q 3.*, logits")
    options = ("--variant", "path", "--freeze", freeze, "--norm", "frozen")
    code, _, err = run(*ADDER, *names, *options)
    assert (code, err) == (0, "")
    expected = mn.path_effects(
        adder, pairs, "head 0.*", "q 3.*, logits", "path", frozen, norm="frozen"
    )
    found = read_netcdf(tmp_path / "report" / "results.nc")
    xr.testing.assert_allclose(found["edges"].to_dataset(), expected, atol=1e-5)
    assert found.attrs["frozen"] == ",".join(frozen)


def test_each_position_and_a_net_without_tokenizer(run, tmp_path):
    code, out, err = run("paths", "clock-113", "--pairs", "4", "--senders", "embed",
                         "--receivers", "mlp_in", "--position", "each", "-q")  # fmt: skip
    assert (code, err) == (0, "")
    assert out.count("mlp_in 0") == 3
    html = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    page = html[html.index("How it was made</h2>") :]
    for fact in ("embed", "mlp_in", "edge: only the receiver", "exact: recomputed", "each",
                 "mechnum paths clock-113 --pairs 4"):  # fmt: skip
        assert fact in page, fact


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--senders", "heeds"], "names no node"),
        (["--receivers", "head 0.0"], "has no input of its own"),
        (["--senders", "mlp 3", "--receivers", "q 0.*"], "reads before any of the senders writes"),
        (["--freeze", "mlps"], "--freeze mlps does not go with edges"),
        (["--position", "middle"], "middle"),
    ],
)
def test_bad_input_is_one_line(run, tmp_path, options, message):
    code, out, err = run(*ADDER, *options)
    assert (code, out) == (2, "")
    assert err.startswith("mechnum: ")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
