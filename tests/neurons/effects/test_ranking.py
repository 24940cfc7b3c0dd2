"""Rankings of all neurons, against effects of single measurements and a net of known neurons."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.stats import false_discovery_control, spearmanr

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.native import NativeConfig
from mechnum.neurons import rank
from mechnum.neurons.effects import scores
from tests import fixtures
from tests.neurons import carriers
from tests.patching.native import wrapped
from tests.patching.test_neuron_effects import NETS, random_pairs


def given_pairs(n=12):
    return mn.tasks.pairs_from_tokens(*random_pairs(n))


@pytest.fixture(scope="module")
def gptj():
    return mn.wrap(fixtures.gptj())


@pytest.fixture(scope="module")
def planted():
    return carriers.net()


@pytest.mark.parametrize("architecture", fixtures.rest_slow(NETS, "gptj", "llama grouped"))
@pytest.mark.parametrize("direction", ["denoise", "noise"])
def test_every_score_is_of_the_half_that_was_not_chosen_on(architecture, direction):
    model, pairs = mn.wrap(NETS[architecture]()), given_pairs()
    found = rank(model, pairs, top=7, direction=direction, seed=3)
    halves = dict(zip(("_selected", ""), pairs.split(seed=3), strict=True))
    table = found["neurons"]
    means = {}
    for suffix, half in halves.items():
        direct = mn.effects(model, half, "neurons", estimands=("direct",), direction=direction)
        guess = mn.attribute(model, half, "gradient", "neurons", direction=direction)
        means |= {f"direct{suffix}": direct["direct"], f"estimate{suffix}": guess["estimate"]}
    for name, values in means.items():
        np.testing.assert_allclose(table[name], values.mean("pair"), atol=1e-12)
    every = [frozenset(f"mlp {layer}" for layer in range(3))]
    together = mn.effects(model, halves["_selected"], every, direction=direction)["total"]
    sign = np.sign(together.mean().item())
    assert found.attrs["sign"] == sign
    order = np.argsort(-sign * means["estimate_selected"].mean("pair").values.ravel())
    layers, neurons = np.divmod(order[:7], table.sizes["neuron"])
    names = [f"neuron {layer}.{neuron}" for layer, neuron in zip(layers, neurons)]
    top = found["top"]
    assert list(top["node"].values) == names
    assert top["layer"].values.tolist() == layers.tolist()
    total = mn.effects(model, halves[""], names, estimands=("total",), direction=direction)["total"]
    np.testing.assert_allclose(top["total"], total, atol=1e-12)
    np.testing.assert_allclose(top["total_mean"], total.mean("pair"))
    np.testing.assert_allclose(top["direct"], means["direct"].mean("pair").values[layers, neurons])
    assert top.attrs["rank_correlation"] == pytest.approx(
        spearmanr(top["estimate"], top["total_mean"]).statistic
    )


def test_intervals_and_tests_are_those_of_summarise_and_q_is_of_all_neurons(gptj):
    pairs = given_pairs()
    found = rank(gptj, pairs, top=5, by="direct", seed=1)
    _, held_out = pairs.split(seed=1)
    direct = mn.effects(gptj, held_out, "neurons", estimands=("direct",))["direct"]
    expected = mn.summarise(direct, seed=1)
    for what in ("low", "high", "p", "q"):
        np.testing.assert_allclose(found["neurons"][f"direct_{what}"], expected[what])
    top = found["top"]
    np.testing.assert_allclose(top["direct_q"], false_discovery_control(top["direct_p"].values))
    np.testing.assert_allclose(top["total_q"], false_discovery_control(top["total_p"].values))
    assert found.attrs["ranked_by"] == "direct"


def test_layers_of_the_best_neurons(gptj):
    found = rank(gptj, given_pairs(), top=3)["neurons"]
    for name in ("direct", "estimate"):
        scores_of = found[f"{name}_selected"].values
        n_best = round(scores_of.size / 100)
        border = np.sort(scores_of, axis=None)[-n_best]
        expected = (scores_of >= border).sum(1) / n_best
        np.testing.assert_allclose(found["top_share"].sel(ranking=name), expected)
        agree = spearmanr(scores_of.ravel(), found[name].values.ravel()).statistic
        assert found["halves_agree"].sel(ranking=name).item() == pytest.approx(agree)


@pytest.mark.slow
@pytest.mark.parametrize("values", fixtures.rest_slow(["other", "mean", "resample"], "mean"))
def test_few_layers_at_a_time_change_nothing(gptj, values, monkeypatch):
    whole = rank(gptj, given_pairs(), top=4, values=values)
    monkeypatch.setattr(scores, "_TABLE_BYTES", 1)
    assert len(scores._layers(gptj.spec, 6)) == 3
    parts = rank(gptj, given_pairs(), top=4, values=values)
    for group in ("neurons", "top"):
        for name, variable in whole[group].data_vars.items():
            np.testing.assert_allclose(parts[group][name], variable, atol=1e-12, err_msg=name)


def test_carriers_come_first_in_both_rankings(planted):
    for seed in range(3):
        found = rank(planted, carriers.pairs(120, seed), top=2 * carriers.N, seed=seed)
        assert set(found["top"]["node"].values) == set(carriers.CARRIERS)
        assert (found["top"]["total_q"] < 0.01).all()
        assert found["top"].attrs["found_total"] == 2 * carriers.N
        table = found["neurons"]
        direct = np.argsort(-table["direct"].values.ravel())[: carriers.N]
        last = [f"neuron 1.{flat - table.sizes['neuron']}" for flat in direct]
        assert set(last) == set(carriers.CARRIERS[carriers.N :])
        # The first layer's carriers act through the second layer alone.
        assert (table["direct"][0, : carriers.N] == 0).all()
        assert (table["direct_q"][0, : carriers.N] == 1).all()


@pytest.mark.parametrize("n_seeds", fixtures.rest_slow([4, 20], 4))
def test_noise_is_not_found(planted, n_seeds):
    kept, largest = [], 0.0
    for seed in range(n_seeds):
        table = rank(planted, carriers.pairs(120, seed), top=1, seed=seed)["neurons"]
        noise = table.isel(neuron=slice(carriers.N, None))
        kept.append([(noise[f"{name}_q"] > 0.05).mean() for name in ("direct", "estimate")])
        largest = max(largest, float(np.abs(noise["direct_selected"]).max()))
        assert (table["direct_q"][1, : carriers.N] < 0.05).all()
    assert np.mean(kept) >= 0.95
    # It does something in single pairs.
    assert largest > 0.1


def test_values_that_change_nothing_are_no_finding():
    """Where a number's neurons all do the same, nothing has an effect, and nothing breaks."""
    config = NativeConfig(1, 1, 4, 1, 5, 2, 8, 8)
    generator = np.random.default_rng(0)
    tensors = carriers.idle_attention(config) | {
        "embed.W_E": generator.normal(size=(8, 4)),
        "unembed.W_U": generator.normal(size=(4, 8)),
        "blocks.0.mlp.W_in": np.zeros((4, 5)),
        "blocks.0.mlp.W_out": np.ones((5, 4)),
    }
    model = wrapped(config, {name: torch.from_numpy(v) for name, v in tensors.items()}, "idle")
    pairs = mn.tasks.pairs_from_tokens([[0, 1]] * 4, [[0, 2]] * 4, [1, 2, 3, 4], [5, 6, 7, 0])
    found = rank(model, pairs, top=100)
    assert found["top"].sizes["node"] == 5
    for name in ("direct", "estimate", "total_mean"):
        assert (found["top"][name] == 0).all()
    for name in ("direct_q", "estimate_q", "total_q"):
        assert (found["top"][name] == 1).all()
    assert found["neurons"]["halves_agree"].isnull().all()
    assert found["top"].attrs["rank_correlation"].startswith("undefined")


def test_the_tree_is_saved_and_read_back(gptj, tmp_path):
    found = rank(gptj, given_pairs(), top=3)
    found.to_netcdf(tmp_path / "found.nc")
    read = xr.open_datatree(tmp_path / "found.nc")
    assert read["top"]["node"].values.tolist() == found["top"]["node"].values.tolist()
    assert read.attrs["ranked_by"] == "estimate"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"by": "total"}, "cannot rank neurons by 'total': use 'direct' or 'estimate'"),
        ({"position": "each"}, "call rank for each position"),
        ({"position": "operator"}, "no position 'operator'"),
        ({"top": 0}, "top is 0"),
        ({"alpha": 1.5}, "alpha=1.5 is no share"),
        ({"norm": "none"}, "unknown norm handling"),
        ({"metric": "loss"}, "unknown metric"),
        ({"seed": -1}, "seed=-1 is negative"),
    ],
)
def test_bad_requests_are_one_line(gptj, changes, message, unchecked):
    with pytest.raises(MechnumError, match=message):
        rank(gptj, given_pairs(), **changes)


def test_one_pair_is_refused(gptj, unchecked):
    with pytest.raises(MechnumError, match="1 pairs cannot be split"):
        rank(gptj, given_pairs(1))
