"""`mechnum grokking`, `clock-pizza` and `reproduce rescue`: pages, and refusals of one line."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from mechnum.circuits.instruments import rescue
from mechnum.models.native import NativeConfig
from mechnum.report import read_netcdf
from mechnum.training import recipes, train
from mechnum.training.data import modular_addition
from mechnum.training.nets import NativeNet
from tests.training import tiny

from .running import runner


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


@pytest.mark.slow
def test_clock_pizza_prints_figures_beside_the_verdict(run, tmp_path):
    code, out, err = run("clock-pizza", "clock-59", "--circles", "2", "--out", "there", "-q")
    assert (code, err) == (0, "")
    assert "clock-like: symmetricity" in out
    assert "gradient symmetricity" in out
    assert "Moisescu-Pareja" in out
    found = read_netcdf(tmp_path / "there" / "results.nc")
    assert found.attrs["command"].startswith("mechnum clock-pizza clock-59")
    assert (tmp_path / "there" / "report.html").is_file()


@pytest.mark.slow
def test_grokking_reads_the_run_in_the_model_s_folder(run, tmp_path):
    recipe = replace(recipes.CLOCK_59, steps=120, checkpoint_every=40, snapshot_every=40)
    train(recipe, tmp_path / "net" / "training")
    last = tmp_path / "net" / "training" / "snapshots" / "000120"
    for file in last.iterdir():
        (tmp_path / "net" / file.name).write_bytes(file.read_bytes())
    code, out, err = run("grokking", "net", "-q")
    assert (code, err) == (0, "")
    assert "Key frequencies:" in out
    assert "test pairs" in out
    assert "Phases:" in out
    assert read_netcdf(tmp_path / "report" / "results.nc")["over"].sizes["step"] == 4


@pytest.mark.parametrize("command", ["grokking", "clock-pizza"])
def test_bad_nets_are_one_line(run, tmp_path, command):
    config = NativeConfig(
        n_layers=1, n_heads=2, d_model=8, d_head=4, d_mlp=16, n_ctx=3, d_vocab=10, d_vocab_out=9
    )
    composite = replace(
        tiny.CLOCK,
        task="modular_addition:9",
        data=partial(modular_addition, 9),
        net=NativeNet(config),
        snapshot_every=3,
    )
    train(composite, tmp_path / "run")
    for model, why in (
        ("run/snapshots/000003", "p = 9 is not prime"),
        ("adder-gptj", "does not say which modulus it adds by"),
        ("nowhere/", "there is no"),
    ):
        code, out, err = run(command, model, "-q")
        assert (code, out) == (2, ""), err
        assert why in err
        assert err.count("\n") == 1
    assert not (tmp_path / "report").exists()


@pytest.mark.slow
def test_rescue_trains_and_measures(run, tmp_path, monkeypatch):
    arms = {"scratch": tiny.SCRATCH, "Fourier start": tiny.ADDER}
    monkeypatch.setattr(rescue, "ARMS", {arm: recipe.name for arm, recipe in arms.items()})
    monkeypatch.setattr(recipes, "RECIPES", {recipe.name: recipe for recipe in arms.values()})
    arguments = ("reproduce", "rescue", "--seeds", "1", "--steps", "4", "--out", "x", "-q")
    first = run(*arguments)
    assert first[0] == 0, first[2]
    assert "held out" in first[1]
    assert "written: x/report.html and x/results.nc" in first[1]
    assert {file.name for file in (tmp_path / "x").iterdir()} == {
        "report.html", "results.nc", "tiny-scratch-seed0", "tiny-adder-seed0",
    }  # fmt: skip
    code, out, err = run(*arguments[:4], "--steps", "5", *arguments[6:])
    assert (code, out) == (2, "")
    assert "another recipe" in err
