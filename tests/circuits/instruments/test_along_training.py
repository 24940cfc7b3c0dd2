"""What is kept of a run with its net is what its checkpoints give, and pages draw it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.circuits.instruments.along_training import measure_along_training
from mechnum.circuits.instruments.beliefs import measure_beliefs
from mechnum.circuits.instruments.grokking import measure_grokking
from mechnum.errors import MechnumError
from mechnum.grokking.progress import phases_of
from mechnum.report import page_of, write_netcdf
from mechnum.tasks import processes
from mechnum.training import history_of, recipes, train
from mechnum.training.history import MEASURES_FILE
from tests.training import tiny


@pytest.mark.parametrize(("name", "steps"), [("clock-59", 200), ("clock-113", 500)])
def test_kept_measures_end_with_the_bundled_net(name, steps):
    history = history_of(name)
    kept = history.measures
    assert kept is not None
    last = recipes.RECIPES[name].steps
    assert kept["step"].values.tolist() == list(range(0, last + 1, steps))
    own = mn.grokking.progress_measures(mn.load(name), train=history.trained_on)
    assert kept["key"].values.tolist() == own["key"].values.tolist()
    for measure in ("restricted_loss", "excluded_loss", "key_share", "gini_W_E"):
        np.testing.assert_allclose(kept[measure].isel(step=-1), own[measure], rtol=1e-4, atol=1e-9)


def test_clock_113_memorises_forms_its_circuit_and_cleans_up():
    """Its own phases, in the order of Nanda et al. 2023, section 5.2."""
    measures = history_of("clock-113").measures
    assert measures is not None
    phases = phases_of(measures)
    assert None not in (phases.memorised, phases.formed, phases.cleaned)
    assert 0 < phases.memorised < phases.formed < phases.cleaned <= 11_000


@pytest.mark.parametrize("name", ["mess3", "rrxor", "carry"])
def test_kept_measures_of_a_process_have_the_log_s_losses(name):
    history = history_of(name)
    kept, scores = history.measures, history.scores
    assert kept is not None
    assert scores is not None
    assert kept["step"].values.tolist() == list(range(0, 6001, 500))
    np.testing.assert_array_equal(
        kept["heldout_loss"][1:], scores["heldout_loss"].sel(step=kept["step"][1:])
    )
    # Training brings the beliefs into the residuals.
    error = kept["mse"].sel(layer="all").min("norm").values
    assert error[-1] < error[0]


@pytest.mark.slow
def test_measures_of_a_run_are_read_back_and_drawn(tmp_path):
    # As long as it takes to have key frequencies.
    train(replace(recipes.CLOCK_59, steps=120, checkpoint_every=60, snapshot_every=60), tmp_path)
    last = tmp_path / "snapshots" / "000120"
    model = mn.load(last)
    history = history_of(last, tmp_path)
    found = measure_along_training(model, history)
    assert found is not None
    assert found.attrs["model"] == "000120"
    assert "neuron" not in found.dims
    write_netcdf(xr.DataTree(found), last / MEASURES_FILE)
    (last / "recipe.json").write_bytes((tmp_path / "recipe.json").read_bytes())
    again = history_of(last)
    assert again.measures is not None
    xr.testing.assert_equal(again.measures, found)
    grokked = measure_grokking(model, history=again)
    assert grokked["over"].sizes["step"] == 3
    assert "Over training" in [section.title for section in page_of(grokked).sections]
    (last / MEASURES_FILE).write_bytes(b"CDF")
    with pytest.raises(MechnumError, match="is not a netCDF file"):
        history_of(last)


@pytest.mark.slow
def test_measures_of_a_process_are_drawn_without_their_prefixes(tmp_path):
    train(replace(tiny.PROCESS, snapshot_every=5, checkpoint_every=5), tmp_path)
    last = tmp_path / "snapshots" / "000010"
    model = mn.load(last)
    found = measure_along_training(model, history_of(last, tmp_path))
    assert found is not None
    write_netcdf(xr.DataTree(found), last / MEASURES_FILE)
    process = processes.find_process(str(model.default_task))
    beliefs = measure_beliefs(model, process, history_of(last), strings=60)
    xr.testing.assert_equal(beliefs["snapshots"].to_dataset(), found)
    assert "Along training" in [section.title for section in page_of(beliefs).sections]
    # Of other strings than those that it was measured on, it says nothing.
    shorter = measure_beliefs(model, process, history_of(last), length=3, strings=60)
    assert "snapshots" not in shorter.children


def test_kept_measures_are_not_shown_beside_those_of_other_keys():
    given = measure_grokking(mn.load("clock-59"), keys=[3, 5], history=history_of("clock-59"))
    assert given["progress"]["key"].values.tolist() == [3, 5]
    assert "over" not in given.children
    assert "other keys" in json.loads(given.attrs["left_out"])["training"]


def test_adders_and_nets_without_a_run_have_none():
    assert measure_along_training(mn.load("adder-gptj"), history_of("adder-gptj")) is None
    assert measure_along_training(mn.load("mess3"), history_of("mess3")) is None
