"""Joint effects of the best nodes, ranked on one half of the pairs and measured on the other."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mechnum as mn
from mechnum.patching.cumulative import cumulative
from mechnum.patching.effects import effects
from mechnum.patching.node_names import parse_node
from tests.patching.constructed import constructed
from tests.patching.test_effects import given_pairs
from tests.patching.test_every_node import wrapped


@pytest.fixture(scope="module")
def net():
    return constructed(7, n_pairs=20)


def test_the_best_k_are_patched_together_on_the_other_half(net):
    found = cumulative(net.model, net.pairs, "heads", seed=1)
    ranking, scored = net.pairs.split(seed=1)
    order = effects(net.model, ranking, "heads")["total"].mean("pair").values.ravel()
    heads = [
        f"head {layer}.{head}"
        for layer in range(net.model.spec.n_layers)
        for head in range(net.model.spec.n_heads)
    ]
    best = [heads[row] for row in np.argsort(-order, kind="stable")]
    assert found["added"].values.tolist() == best
    for k in (1, 3, len(best)):
        together = effects(net.model, scored, [frozenset(map(parse_node, best[:k]))])["total"]
        np.testing.assert_allclose(found["effect"].sel({"k": k}), together[:, 0], atol=1e-11)
    np.testing.assert_allclose(found["share"][-1], 1)
    reached = json.loads(found.attrs["k_for"])
    share = found["share"].values
    first = int(np.argmax(share >= 0.8)) + 1
    assert reached["0.8"] == first


@pytest.mark.parametrize("values", ["other", "zero"])
def test_nodes_that_lower_the_metric_come_first_where_all_of_them_lower_it(net, values):
    options = {"direction": "noise", "values": values, "seed": 1}
    found = cumulative(net.model, net.pairs, "heads, mlps", **options)
    assert found["whole"].mean() < 0
    ranking, _ = net.pairs.split(seed=1)
    options.pop("seed")
    totals = effects(net.model, ranking, "heads, mlps", **options)["total"].mean("pair")
    added = totals.sel(node=found["added"].values).values
    assert (np.diff(added) >= 0).all()
    assert added[0] < 0
    share = found["share"].values
    assert np.argmax(share >= 0.8) < len(share) / 2


def test_few_nodes_carry_the_constructed_effect(net):
    found = cumulative(net.model, net.pairs, "heads")
    assert json.loads(found.attrs["k_for"])["0.99"] < found.sizes["k"]
    assert found.attrs["n_pairs"] == 10


def test_own_scores_rank_all_pairs():
    model, pairs = wrapped("gptj"), given_pairs()
    names = ["mlp 0", "mlp 1", "mlp 2"]
    scores = effects(model, pairs, names)["total"]
    found = cumulative(model, pairs, names, by=scores, ks=[1, 3])
    assert found.sizes["pair"] == 3
    assert found["k"].values.tolist() == [1, 3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"by": "indirect"}, "cannot rank by 'indirect'"),
        ({"ks": [0]}, "are outside 1 to 12"),
        ({"position": "each"}, "call cumulative for each position"),
        ({"nodes": ["head 0.1 + head 0.2"]}, "sets have no rank of their own"),
    ],
)
def test_bad_requests_are_one_line(changes, message):
    with pytest.raises(mn.MechnumError, match=message):
        cumulative(wrapped("gptj"), given_pairs(), **changes)
