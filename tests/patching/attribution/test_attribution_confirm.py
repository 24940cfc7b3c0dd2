"""What is confirmed are the largest estimates, and their exact values are the exact effects."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from mechnum.patching.attribution.attribution import attribute
from mechnum.patching.effects import effects
from mechnum.patching.path.matrix import PathMatrix
from mechnum.patching.path.paths import path_effects
from tests.patching.test_effects import given_pairs
from tests.patching.test_every_node import wrapped

ATTRIBUTES = {"n_confirmed", "rank_correlation", "largest_disagreement"}


def check(found, exact, k):
    """The k largest, and nothing else, are as exact as can be."""
    confirmed = found["exact"]
    assert confirmed.dims == found["estimate"].dims == exact.dims
    mean = np.abs(found["estimate"].mean("pair").values)
    there = ~np.isnan(confirmed.values).any(0)
    k = min(k, np.isfinite(mean).sum())
    assert there.sum() == found.attrs["n_confirmed"] == k
    assert mean[there].min() >= np.nanmax(np.where(there, -np.inf, mean))
    np.testing.assert_allclose(
        confirmed.values[:, there], exact.values[:, there], rtol=0, atol=1e-12
    )
    estimates = found["estimate"].mean("pair").values[there]
    means = exact.mean("pair").values[there]
    np.testing.assert_allclose(
        found.attrs["largest_disagreement"], np.abs(estimates - means).max(), atol=1e-12
    )
    np.testing.assert_allclose(
        found.attrs["rank_correlation"], spearmanr(estimates, means).statistic, atol=1e-12
    )


@pytest.mark.parametrize("method", ["gradient", "eap-ig"])
@pytest.mark.parametrize("nodes", ["heads", "kv", "neurons", "residual", "mlp 0, head 1.2, v 0.g1"])
@pytest.mark.parametrize("position", ["end", "each"])
def test_nodes(method, nodes, position):
    model, pairs = wrapped("llama grouped"), given_pairs()
    given = {"position": position, "direction": "noise", "metric": "logprob"}
    found = attribute(model, pairs, method, nodes, confirm=7, **given)
    check(found, effects(model, pairs, nodes, **given)["total"], 7)
    assert found.attrs["of"] == "total effect"
    assert found.attrs["estimate"] == method


@pytest.mark.parametrize("method", ["eap", "eap-ig"])
@pytest.mark.parametrize("position", ["all", 1, "each"])
def test_edges(method, position):
    model, pairs = wrapped("llama grouped"), given_pairs()
    found = attribute(model, pairs, method, position=position, confirm=9)
    exact = path_effects(model, pairs, "components", "components", position=position)["effect"]
    check(found, exact, 9)
    assert found.attrs["of"] == "edge effect"
    assert found.attrs["estimate"] == method


@pytest.mark.parametrize("values", ["zero", "mean", "resample"])
def test_other_values(values):
    model, pairs = wrapped("gptj"), given_pairs()
    given = {"values": values, "mean_over": "token", "seed": 5}
    found = attribute(model, pairs, "gradient", confirm=4, **given)
    check(found, effects(model, pairs, "heads", **given)["total"], 4)
    found = attribute(model, pairs, "eap", confirm=4, **given)
    check(found, path_effects(model, pairs, "components", "components", **given)["effect"], 4)


def test_a_table_smaller_than_k_is_confirmed_whole():
    model, pairs = wrapped("gptj"), given_pairs()
    found = attribute(model, pairs, "gradient", "mlps", confirm=100)
    check(found, effects(model, pairs, "mlps")["total"], 100)
    edges = attribute(model, pairs, "eap", None, "mlps", "mlp_in", confirm=100)
    exact = path_effects(model, pairs, "mlps", "mlp_in")["effect"]
    np.testing.assert_allclose(edges["exact"], exact, atol=1e-12)
    assert edges.attrs["n_confirmed"] == 3


def test_no_other_edges_are_computed(monkeypatch):
    asked = []
    at = PathMatrix.at

    def watched(self, place, scorer):
        asked.append(int(self.wanted.sum()))
        return at(self, place, scorer)

    monkeypatch.setattr(PathMatrix, "at", watched)
    attribute(wrapped("gptj"), given_pairs(), "eap", confirm=6)
    assert asked == [6]


def test_one_estimate_has_no_rank_correlation():
    found = attribute(wrapped("gptj"), given_pairs(), "gradient", confirm=1)
    assert found.attrs["rank_correlation"] == "undefined: fewer than two different values"
    assert found.attrs["n_confirmed"] == 1


def test_without_confirmation_nothing_says_that_there_was_any():
    found = attribute(wrapped("gptj"), given_pairs(), "gradient")
    assert "exact" not in found
    assert not ATTRIBUTES & set(found.attrs)


def test_results_are_saved_and_read_again(tmp_path):
    import xarray as xr

    for confirm in (1, 4):
        found = attribute(wrapped("gptj"), given_pairs(), "eap-ig", confirm=confirm)
        found.to_netcdf(tmp_path / f"{confirm}.nc")
        with xr.open_dataset(tmp_path / f"{confirm}.nc") as again:
            xr.testing.assert_identical(again.load(), found)
