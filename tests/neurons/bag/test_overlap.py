"""Scores against slow enumerations, p-values against SciPy and drawn maps."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import hypergeom

from mechnum.neurons.bag.overlap import chance, expected_overlap, p_values, ranks


def enumerated(values, held):
    """The overlap with the top k, averaged over every way to break ties."""
    k = len(held)
    overlaps = []
    for order in permutations(range(len(values))):
        top = sorted(order, key=lambda prompt: -values[prompt])[:k]  # stable: keeps the order
        overlaps.append(len(set(top) & set(held)))
    return np.mean(overlaps)


@pytest.mark.parametrize("seed", range(6))
def test_ties_count_by_all_ways_to_break_them(seed):
    generator = np.random.default_rng(seed)
    values = np.maximum(generator.integers(-3, 3, size=(3, 7)), 0).astype(np.float32)
    held = generator.permutation(7)[: generator.integers(1, 7)]
    order = ranks(values)
    expected = [enumerated(row, held) for row in values]
    np.testing.assert_allclose(expected_overlap(order, held), expected, atol=1e-5)
    low = [enumerated(-row, held) for row in values]
    np.testing.assert_allclose(expected_overlap(order.opposite, held), low, atol=1e-5)


def test_order_of_the_prompts_does_not_count():
    values = np.zeros((1, 100))
    values[0, :10] = 1
    for held in (np.arange(20), np.arange(20)[::-1], np.r_[0:10, 90:100]):
        # All ten that fire, and of the 90 zeros as many as chance gives.
        found = expected_overlap(ranks(values), held)
        np.testing.assert_allclose(found, 10 + 10 * 10 / 90, rtol=1e-6)


def test_no_two_neurons_and_no_order_mix():
    values = np.random.default_rng(0).normal(size=(5, 40))
    order = ranks(values)
    for node, row in enumerate(values):
        np.testing.assert_array_equal(np.argsort(order.before[:, node]), np.argsort(-row))
    assert (order.tied == 1).all()


@pytest.mark.parametrize(("n", "k"), [(10, 1), (55, 30), (100, 2), (100, 97), (2000, 400)])
def test_chance_is_the_hypergeometric_tail(n, k):
    expected = hypergeom.sf(np.arange(k + 1) - 1, n, k, k)
    np.testing.assert_allclose(chance(n, k), expected, rtol=1e-8, atol=1e-300)


def test_p_values_are_those_of_drawn_maps():
    """5000 exchangeable maps: an overlap as large is as rare as p says."""
    generator = np.random.default_rng(1)
    n, k = 60, 20
    held = generator.permutation(n)[:k]
    overlaps = expected_overlap(ranks(generator.normal(size=(5000, n))), held)
    p = p_values(overlaps, chance(n, k))
    for overlap in (7, 9, 11):
        drawn = np.mean(overlaps >= overlap)
        assert p[overlaps == overlap] == pytest.approx(drawn, abs=0.02)
    for alpha in (0.01, 0.05, 0.2):
        assert np.mean(p <= alpha) <= alpha + 0.01


def test_p_values_of_tied_maps_are_not_too_small():
    generator = np.random.default_rng(2)
    n, k = 60, 20
    values = np.maximum(generator.normal(size=(5000, n)) - 1.2, 0)
    p = p_values(expected_overlap(ranks(values), np.arange(k)), chance(n, k))
    for alpha in (0.01, 0.05, 0.2):
        assert np.mean(p <= alpha) <= alpha + 0.01
