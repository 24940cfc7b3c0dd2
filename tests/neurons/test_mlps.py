"""Direct shares of MLPs beside their neurons' shares of a + b, against a count of all cases."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.neurons import mlp_shares
from tests import fixtures
from tests.patching.test_neuron_effects import random_pairs

N_LAYERS = 5


@pytest.fixture(scope="module")
def model():
    return mn.wrap(fixtures.gptj(n_layer=N_LAYERS))


PAIRS = mn.tasks.pairs_from_tokens(*random_pairs(10))


def table(values: np.ndarray) -> xr.DataArray:
    coords = {"layer": range(values.shape[0]), "neuron": range(values.shape[1])}
    return xr.DataArray(values, dims=("layer", "neuron"), coords=coords)


def given(seed: int = 0) -> tuple[xr.DataArray, xr.Dataset]:
    generator = np.random.default_rng(seed)
    scores = table(generator.normal(size=(N_LAYERS, 128)))
    return scores, xr.Dataset({"sum_share": table(generator.uniform(size=(N_LAYERS, 128)))})


def test_shares_are_ratios_of_means_beside_means_of_the_best_neurons(model):
    scores, fitted = given()
    fitted["sum_share"][2, :100] = np.nan
    found = mlp_shares(model, PAIRS, scores, fitted, share=0.1)
    effects = mn.effects(model, PAIRS, "mlps")
    total, direct = (effects[name].mean("pair").values for name in ("total", "direct"))
    np.testing.assert_allclose(found["direct_share"], direct / total)
    assert (found["status"] == "measured").all()
    assert (
        (found["low"] <= found["direct_share"]) & (found["direct_share"] <= found["high"])
    ).all()
    best = scores.values >= np.sort(scores.values, axis=None)[-64]
    shares = np.where(best, fitted["sum_share"], np.nan)
    np.testing.assert_allclose(found["sum_share"], np.nanmean(shares, axis=1))
    assert np.array_equal(found["n_neurons"], np.isfinite(shares).sum(1))
    x, y = found["direct_share"].values, found["sum_share"].values
    r = np.corrcoef(x, y)[0, 1]
    assert found.attrs["pearson_r"] == pytest.approx(r)
    assert found.attrs["r2"] == pytest.approx(r**2)
    every = [np.corrcoef(x[list(order)], y)[0, 1] for order in permutations(range(N_LAYERS))]
    larger, smaller = (np.mean(sign * np.array(every) >= sign * r - 1e-12) for sign in (1, -1))
    assert found.attrs["p"] == pytest.approx(min(1, 2 * min(larger, smaller)))
    assert found.attrs["n_layers"] == N_LAYERS


def test_a_planted_agreement_is_found(model):
    scores, fitted = given()
    effects = mn.effects(model, PAIRS, "mlps")
    ratio = (effects["direct"].mean("pair") / effects["total"].mean("pair")).values
    fitted["sum_share"][:] = ratio[:, None]
    found = mlp_shares(model, PAIRS, scores, fitted, share=0.1)
    assert found.attrs["r2"] == pytest.approx(1)
    assert found.attrs["p"] < 0.05


def test_layers_without_a_total_effect_or_without_best_neurons_are_left_out(model):
    scores, fitted = given()
    scores[0] = np.nan
    found = mlp_shares(model, PAIRS, scores, fitted, position=0)
    # Nothing differs at the first position.
    assert (found["total"] == 0).all()
    assert found["direct_share"].isnull().all()
    assert all(status.startswith("no gap") for status in found["status"].values)
    assert found.attrs["n_layers"] == 0
    assert np.isnan(found.attrs["r2"])
    some = mlp_shares(model, PAIRS, scores, fitted, share=0.1, layers=[0, 1, 3])
    assert some["layer"].values.tolist() == [0, 1, 3]
    assert np.isnan(some["sum_share"][0])
    assert some["n_neurons"][0] == 0
    assert some.attrs["n_layers"] == 2
    assert np.isnan(some.attrs["pearson_r"])


def test_shares_that_are_all_alike_have_no_correlation(model):
    scores, fitted = given()
    fitted["sum_share"][:] = 0.5
    found = mlp_shares(model, PAIRS, scores, fitted, share=0.1)
    assert found.attrs["n_layers"] == N_LAYERS
    assert np.isnan(found.attrs["p"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"share": 0}, "a share of 0 of the neurons is none"),
        ({"layers": [7]}, "layer 7"),
        ({"order": "head 0.1"}, "no single neuron"),
        ({"fitted": xr.Dataset()}, "no 'sum_share'"),
        ({"norm": "none"}, "unknown norm handling"),
        ({"position": "each"}, "call mlp_shares for each position"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_requests_are_one_line(model, changes, message, unchecked):
    scores, fitted = given()
    arguments = {"order": scores, "fitted": fitted} | changes
    with pytest.raises(MechnumError, match=message):
        mlp_shares(model, PAIRS, **arguments)
