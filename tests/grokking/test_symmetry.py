"""Symmetricity and irrelevance: published values, closed forms, central differences and loops."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import InvalidInput, MechnumError
from tests.grokking.nets import PUBLISHED, clock, pizza, published_net

# Gradient symmetricity of the published triples; irrelevance of the right and the largest wrong
# logit. Published to the digits given.
VALUES = {"A": (0.9937, 0.1717, 0.2218), "B": (0.3336, 0.8483, 0.8849), "β": (1.0, 0.2302, 0.329)}
DIGITS = {"A": (4, 4), "B": (4, 4), "β": (4, 3)}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_nets_have_their_published_figures(name):
    net = published_net(name)
    symmetricity, right, wrong = VALUES[name]
    assert float(mn.grokking.gradient_symmetricity(net).mean()) == pytest.approx(
        symmetricity, abs=0.001
    )
    found = mn.grokking.distance_irrelevance(mn.grokking.net_logits(net))
    for form, expected, digits in zip(found["form"].values, (right, wrong), DIGITS[name]):
        assert round(float(found.sel(form=form)), digits) == expected


@pytest.mark.parametrize("name", PUBLISHED)
def test_other_triples_give_nearly_the_same(name):
    found = mn.grokking.gradient_symmetricity(published_net(name), n=2000, seed=1)
    assert float(found.mean()) == pytest.approx(VALUES[name][0], abs=0.03)
    assert found.attrs["triples"] == "seed 1"


def test_the_published_triples_are_the_first_of_the_shuffled_ones():
    p = 7
    every = [(a, b, c) for a in range(p) for b in range(p) for c in range(p)]
    random.Random(42).shuffle(every)
    state = random.getstate()
    found = mn.grokking.gradient_symmetricity(clock(p, [1]), n=20)
    assert random.getstate() == state
    assert list(zip(*(found[name].values for name in "abc"))) == every[:20]


def test_a_clocks_gradients_are_turned_by_the_distance():
    """∂ cos w(a + b − c) is the unit vector at w(c − b) for a and at w(c − a) for b."""
    p, k = 31, 4
    found = mn.grokking.gradient_symmetricity(clock(p, [k]), n=500, seed=0)
    turned = np.cos(2 * np.pi * k * (found["a"] - found["b"]) / p)
    np.testing.assert_allclose(found, turned, atol=1e-12)
    # Over all triples the distances are spread evenly, and the mean is 0.
    every = mn.grokking.gradient_symmetricity(clock(5, [1]), n=125, seed=0)
    assert float(every.mean()) == pytest.approx(0, abs=1e-12)
    logits = mn.grokking.net_logits(clock(p, [k]))
    # The right logit is cos 0 for every pair, whatever the distance.
    np.testing.assert_allclose(mn.grokking.distance_irrelevance(logits), 1)


@pytest.mark.parametrize("frequencies", [[4], [4, 7, 13]])
def test_a_pizza_is_symmetric_and_decided_by_the_distance(frequencies):
    """It reads E_a + E_b; its right logit is Σ 2|cos(w(a − b)/2)|, of the distance alone."""
    p = 31
    net = pizza(p, frequencies)
    np.testing.assert_allclose(mn.grokking.gradient_symmetricity(net, n=200, seed=0), 1)
    logits = mn.grokking.net_logits(net)
    a, b = np.indices((p, p))
    right = sum(2 * np.abs(np.cos(np.pi * k * (a - b) / p)) for k in frequencies)
    np.testing.assert_allclose(logits[a, b, (a + b) % p], right, atol=1e-12)
    assert (logits.argmax(2) == (a + b) % p).mean() > (0.9 if len(frequencies) > 1 else 0.4)
    np.testing.assert_allclose(mn.grokking.distance_irrelevance(logits)[0], 0, atol=1e-7)


def test_gradients_are_those_of_central_differences():
    p, d = 5, 3
    rng = np.random.default_rng(0)
    table = torch.from_numpy(rng.normal(size=(p, d)))
    weights = [torch.from_numpy(rng.normal(size=shape)) for shape in ((d, 8), (d, 8), (8, p))]

    def logits(a, b):
        return torch.tanh(a @ weights[0] + b @ weights[1]) @ weights[2]

    net = mn.grokking.net_from_function(logits, table, table * 2)
    found = mn.grokking.gradient_symmetricity(net, n=6, seed=3)
    step = 1e-5 * torch.eye(d, dtype=torch.float64)
    for cosine in found:
        a, b = table[int(cosine["a"])], 2 * table[int(cosine["b"])]
        c = int(cosine["c"])
        many = a.expand(d, -1), b.expand(d, -1)
        of_a = logits(many[0] + step, many[1]) - logits(many[0] - step, many[1])
        of_b = logits(many[0], many[1] + step) - logits(many[0], many[1] - step)
        expected = torch.cosine_similarity(of_a[:, c], of_b[:, c], dim=0)
        assert float(cosine) == pytest.approx(float(expected), abs=1e-6)


def test_irrelevance_is_that_of_loops():
    p = 7
    logits = np.random.default_rng(0).normal(size=(p, p, p))
    found = mn.grokking.distance_irrelevance(logits)
    for form in ("correct", "largest_wrong"):
        table = np.zeros((p, p))
        for a in range(p):
            for b in range(p):
                s = (a + b) % p
                wrong = max(logits[a, b, c] for c in range(p) if c != s)
                table[s, (a - b) % p] = logits[a, b, s] if form == "correct" else wrong
        expected = np.mean([np.std(column) for column in table.T]) / np.std(table)
        assert float(found.sel(form=form)) == pytest.approx(expected)


def test_gradients_that_are_zero_have_no_cosine():
    table = torch.eye(5, dtype=torch.float64)
    net = mn.grokking.net_from_function(lambda a, b: a + 0 * b, table)
    assert mn.grokking.gradient_symmetricity(net, n=10).isnull().all()


def test_batches_do_not_matter():
    from mechnum.models.memory import memory_budget

    net = clock(7, [1, 2], [1.0, 2.0])
    whole = mn.grokking.gradient_symmetricity(net, n=30), mn.grokking.net_logits(net)
    with memory_budget(1):
        parts = mn.grokking.gradient_symmetricity(net, n=30), mn.grokking.net_logits(net)
    for one, other in zip(whole, parts):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_more_triples_than_there_are_is_refused():
    with pytest.raises(InvalidInput, match="126 triples are more than p = 5 has"):
        mn.grokking.gradient_symmetricity(clock(5, [1]), n=126)


def test_the_published_order_is_not_drawn_for_a_large_p():
    net = mn.grokking.net_from_function(lambda a, b: (a * b).expand(-1, 257), torch.ones(257, 1))
    with pytest.raises(InvalidInput, match="are drawn by shuffling 16974593: give a seed"):
        mn.grokking.gradient_symmetricity(net)
    assert len(mn.grokking.gradient_symmetricity(net, n=3, seed=0)) == 3


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (torch.ones(5), r"shape \(5,\): give floats"),
        (torch.ones(5, 2, dtype=torch.long), "give floats"),
        (torch.ones(6, 2), "p = 6 is not prime"),
        (torch.ones(2, 2), "p = 2 has no waves"),
        (torch.full((5, 2), torch.nan), "look for NaN in the weights"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_bad_tables_are_refused(table, message):
    with pytest.raises(MechnumError, match=message):
        mn.grokking.net_from_function(lambda a, b: a + b, table)


def test_tables_and_logits_that_do_not_fit_are_refused():
    table = torch.ones(5, 2)
    with pytest.raises(MechnumError, match=r"embeddings of b have shape \(4, 2\)"):
        mn.grokking.net_from_function(lambda a, b: a, table, table[:4])
    with pytest.raises(MechnumError, match=r"logits of shape \(\d+, 2\) where \(\d+, 5\)"):
        mn.grokking.net_logits(mn.grokking.net_from_function(lambda a, b: a, table))
    with pytest.raises(MechnumError, match="logits are not all finite"):
        mn.grokking.net_logits(
            mn.grokking.net_from_function(lambda a, b: torch.full((len(a), 5), torch.nan), table)
        )


@pytest.mark.parametrize("lost", ["a", "b", "both"])
def test_nets_without_gradients_are_refused(lost):
    made = clock(11, [2])

    def logits(a, b):
        return made.logits(a if lost == "b" else a.detach(), b if lost == "a" else b.detach())

    net = mn.grokking.net_from_function(logits, made.embeddings_a)
    with pytest.raises(InvalidInput, match="no gradient to the embeddings"):
        mn.grokking.gradient_symmetricity(net, n=5)
