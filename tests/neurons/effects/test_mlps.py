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


def answered_pairs():
    """The model's own answers, so that most MLPs have an effect on them."""
    clean, corrupt, _, _ = random_pairs(10)
    net = mn.wrap(fixtures.gptj(n_layer=N_LAYERS))
    own, other = (net.logits(tokens).argmax(-1) for tokens in (clean, corrupt))
    differ = own != other
    return mn.tasks.pairs_from_tokens(clean[differ], corrupt[differ], own[differ], other[differ])


PAIRS = answered_pairs()


def table(values: np.ndarray) -> xr.DataArray:
    coords = {"layer": range(values.shape[0]), "neuron": range(values.shape[1])}
    return xr.DataArray(values, dims=("layer", "neuron"), coords=coords)


def given(seed: int = 0) -> tuple[xr.DataArray, xr.Dataset]:
    generator = np.random.default_rng(seed)
    scores = table(generator.normal(size=(N_LAYERS, 128)))
    shares = table(generator.uniform(size=(N_LAYERS, 128)))
    fingerprint = mn.wrap(fixtures.gptj(n_layer=N_LAYERS)).fingerprint
    return scores, xr.Dataset({"sum_share": shares}, attrs={"model_fingerprint": fingerprint})


def test_shares_are_ratios_of_means_beside_means_of_the_best_neurons(model):
    scores, fitted = given()
    fitted["sum_share"][2, :100] = np.nan
    found = mlp_shares(model, PAIRS, scores, fitted, share=0.1)
    effects = mn.effects(model, PAIRS, "mlps")
    means = effects.mean("pair")
    total = mn.summarise(effects["total"])
    clear = ((total["low"] > 0) | (total["high"] < 0)).values
    assert 3 <= clear.sum() < N_LAYERS
    expected = np.where(clear, means["direct"] / means["total"], np.nan)
    np.testing.assert_allclose(found["direct_share"], expected)
    assert (found["low"] <= found["high"]).values[clear].all()
    for status, own in zip(found["status"].values, clear, strict=True):
        assert status.startswith("measured" if own else "no clear total effect")
    best = scores.values >= np.sort(scores.values, axis=None)[-64]
    shares = np.where(best, fitted["sum_share"], np.nan)
    np.testing.assert_allclose(found["sum_share"], np.nanmean(shares, axis=1))
    assert np.array_equal(found["n_neurons"], np.isfinite(shares).sum(1))
    x, y = found["direct_share"].values[clear], found["sum_share"].values[clear]
    r = np.corrcoef(x, y)[0, 1]
    assert found.attrs["pearson_r"] == pytest.approx(r)
    assert found.attrs["r2"] == pytest.approx(r**2)
    every = [np.corrcoef(x[list(order)], y)[0, 1] for order in permutations(range(len(x)))]
    larger, smaller = (np.mean(sign * np.array(every) >= sign * r - 1e-12) for sign in (1, -1))
    assert found.attrs["p"] == pytest.approx(min(1, 2 * min(larger, smaller)))
    assert found.attrs["n_layers"] == len(x)


def test_a_planted_agreement_is_found(model):
    scores, fitted = given()
    effects = mn.effects(model, PAIRS, "mlps")
    ratio = (effects["direct"].mean("pair") / effects["total"].mean("pair")).values
    fitted["sum_share"][:] = ratio[:, None]
    found = mlp_shares(model, PAIRS, scores, fitted, share=0.1)
    assert found.attrs["r2"] == pytest.approx(1)
    # Four layers have a clear effect: of their 24 orders one is best, and the test has two sides.
    assert found.attrs["p"] == pytest.approx(2 / 24)


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
    assert found.attrs["n_layers"] == 4
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
