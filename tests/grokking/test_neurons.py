"""Frequencies of neurons: planted ones, permutations, relabelling, constant neurons."""

from __future__ import annotations

import numpy as np
import pytest

import mechnum as mn
from mechnum.errors import InvalidInput

P = 17


def planted(frequencies, noise=0.3, seed=0):
    """ReLU neurons of cos(wa + φ) + cos(wb + ψ) and noise."""
    rng = np.random.default_rng(seed)
    a, b = np.ogrid[:P, :P]
    w = 2 * np.pi / P
    maps = [
        np.maximum(np.cos(w * k * a + x) + np.cos(w * k * b + y), 0)
        + noise * rng.normal(size=(P, P))
        for k, (x, y) in zip(frequencies, 2 * np.pi * rng.random((len(frequencies), 2)))
    ]
    return np.stack(maps, 2)


def test_planted_frequencies_are_found_most_neurons_first():
    frequencies = [3] * 10 + [7] * 6 + [1] * 4
    found = mn.grokking.neuron_frequencies(planted(frequencies))
    np.testing.assert_array_equal(found["best_frequency"], frequencies)
    assert list(found["n_neurons"].sel(frequency=[3, 7, 1, 2])) == [10, 6, 4, 0]
    assert (found["explained"] > 0.5).all()
    assert (found["explained"] < 1).all()
    assert list(mn.grokking.key_frequencies(planted(frequencies))) == [3, 7, 1]


def test_stray_neurons_are_no_key_unless_asked_for():
    maps = planted([3] * 30 + [5])
    assert list(mn.grokking.key_frequencies(maps)) == [3]
    assert list(mn.grokking.key_frequencies(maps, at_least=0)) == [3, 5]


def test_noise_has_no_key_unless_asked_for():
    noise = np.random.default_rng(3).normal(size=(P, P, 40))
    with pytest.raises(InvalidInput, match="no frequency explains"):
        mn.grokking.key_frequencies(noise)
    found = mn.grokking.neuron_frequencies(noise)["best_frequency"]
    every = mn.grokking.key_frequencies(noise, at_least=0, explained=0)
    assert set(every) == set(found.values)


def test_the_order_of_neurons_does_not_matter():
    maps = planted([3] * 4 + [7] * 3)
    order = np.random.default_rng(1).permutation(7)
    found, again = (mn.grokking.neuron_frequencies(m) for m in (maps, maps[:, :, order]))
    np.testing.assert_allclose(again["explained"], found["explained"][order])
    np.testing.assert_array_equal(again["n_neurons"], found["n_neurons"])


def test_relabelling_numbers_moves_each_frequency():
    maps, factor = planted([3] * 4 + [7] * 3), 5
    to = factor * np.arange(P) % P
    moved = np.empty_like(maps)
    moved[np.ix_(to, to)] = maps
    inverse = pow(factor, -1, P)
    expected = [min(k * inverse % P, -k * inverse % P) for k in (3, 7)]
    assert list(mn.grokking.key_frequencies(moved)) == expected
    np.testing.assert_allclose(
        mn.grokking.neuron_frequencies(moved)["explained"],
        mn.grokking.neuron_frequencies(maps)["explained"],
    )


def test_constant_neurons_have_no_frequency():
    maps = planted([3, 3])
    maps[:, :, 1] = 0.1
    found = mn.grokking.neuron_frequencies(maps)
    assert list(found["best_frequency"]) == [3, 0]
    assert np.isnan(found["explained"][1])
    assert found["n_neurons"].sum() == 1


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (np.zeros((5, 5, 3)), "no frequency explains 50% of 5% of the neurons"),
        (np.zeros((5, 5)), "give .p, p, neuron."),
        (np.zeros((5, 5, 0)), "are empty"),
        (np.zeros((15, 15, 1)), "p = 15 is not prime"),
        (np.full((5, 5, 1), np.inf), "neurons are not all finite"),
    ],
)
def test_what_has_no_frequencies_is_refused(maps, message):
    with pytest.raises(InvalidInput, match=message):
        mn.grokking.key_frequencies(maps)


def test_what_a_readout_reads_is_compared_with_waves_of_the_sum():
    p, k = 7, 2
    rng = np.random.default_rng(0)
    maps, readout = rng.normal(size=(p, p, 5)), rng.normal(size=(p, 5))
    a, b = np.ogrid[:p, :p]
    w = 2 * np.pi * k / p
    for row, wave in enumerate((np.sin, np.cos)):
        along = maps @ (readout.T @ wave(w * np.arange(p)))
        expected = np.corrcoef(along.ravel(), wave(w * (a + b)).ravel())[0, 1] ** 2
        found = mn.grokking.direction_shares(maps, readout, [3, k])
        assert found[1, row] == pytest.approx(expected)
    planted = np.stack([np.cos(w * (a + b)), np.sin(w * (a + b))], 2)
    waves = np.stack([np.cos(w * np.arange(p)), np.sin(w * np.arange(p))], 1)
    np.testing.assert_allclose(mn.grokking.direction_shares(planted, waves, [k]), 1)
    assert np.isnan(mn.grokking.direction_shares(0 * planted, waves, [k])).all()
    with pytest.raises(InvalidInput, match=r"readout has shape \(2, 7\)"):
        mn.grokking.direction_shares(planted, waves.T, [k])
