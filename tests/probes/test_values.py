"""Splits by number, and what may be a number at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from mechnum.errors import InvalidInput
from mechnum.probes import CircularDigitProbe, LinearNumberProbe, ResidueProbe, value_split
from mechnum.probes.values import candidates, whole_numbers


@pytest.mark.parametrize("seed", range(3))
def test_no_number_is_in_two_parts_and_all_rows_are_in_one(seed):
    values = np.random.default_rng(seed).integers(0, 1000, size=5000) * 7
    parts = value_split(values, seed=seed)
    assert sorted(np.concatenate(parts)) == list(range(5000))
    numbers = [set(values[rows]) for rows in parts]
    assert not numbers[0] & numbers[1]
    assert not (numbers[0] | numbers[1]) & numbers[2]
    n = len(np.unique(values))
    for share, part in zip((0.9, 0.05, 0.05), numbers):
        assert abs(len(part) - share * n) <= 1


def test_the_seed_alone_decides_and_order_and_repeats_do_not_matter():
    values = np.arange(100)
    first, again, other = (value_split(values, (0.8, 0.2), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[1], again[1])
    assert set(first[1]) != set(other[1])
    shuffled = np.random.default_rng(0).permutation(np.repeat(values, 3))
    held = value_split(shuffled, (0.8, 0.2), 1)[1]
    assert set(shuffled[held]) == set(first[1])


def test_any_number_can_be_held_out():
    """The extremes as well: over many seeds each number is, about equally often."""
    counts = np.zeros(20)
    for seed in range(300):
        counts[value_split(np.arange(20), (0.8, 0.2), seed)[1]] += 1
    assert counts.sum() == 300 * 4
    assert np.abs(counts - 60).max() < 4 * np.sqrt(300 * 0.2 * 0.8)


def test_small_parts_have_a_number_at_least():
    parts = value_split(np.array([3, 4, 5]), (0.98, 0.01, 0.01))
    assert [len(rows) for rows in parts] == [1, 1, 1]


@pytest.mark.parametrize(
    ("values", "shares", "seed", "message"),
    [
        ([1, 2], (0.9, 0.05, 0.05), 0, "2 distinct numbers cannot be split in 3"),
        ([1, 2, 3], (0.9, 0.2), 0, "do not make a whole"),
        ([1, 2, 3], (1.1, -0.1), 0, "do not make a whole"),
        ([1, 2, 3], (float("nan"), 0.5), 0, "do not make a whole"),
        ([1, 2, 3], (), 0, "do not make a whole"),
        ([], (0.5, 0.5), 0, "0 sample"),
        ([1, 2, 3], (0.5, 0.5), -1, "seed"),
    ],
)
def test_impossible_splits_are_refused(values, shares, seed, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        value_split(values, shares, seed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [[-1, 2], [0.5, 2], [1, np.nan], [1, np.inf], ["a", "b"], [2**60]]
)
def test_only_whole_numbers_from_0_on_are_numbers(wrong):
    with pytest.raises(InvalidInput, match="whole number"):
        whole_numbers(wrong)


def test_candidates():
    np.testing.assert_array_equal(candidates(None, np.array([5, 3, 7])), [3, 4, 5, 6, 7])
    np.testing.assert_array_equal(candidates([9, 3, 3], np.array([3])), [3, 9])
    with pytest.raises(InvalidInput, match="5 is not among the 2 numbers"):
        candidates([3, 9], np.array([3, 5]))
    with pytest.raises(InvalidInput, match="too many to compete"):
        candidates(None, np.array([0, 10**6]))


STATES = np.random.default_rng(0).normal(size=(6, 3))


@pytest.mark.parametrize(
    ("states", "values", "message"),
    [
        (STATES, [4] * 6, "4 is the only number"),
        (STATES[:1], [4], "n_samples=1"),
        (np.where(STATES > 1, np.nan, STATES), range(6), "^Input X contains NaN: give"),
        (np.where(STATES > 1, np.inf, STATES), range(6), "infinity"),
        (STATES, np.arange(6) / 2, "0.5 is not a number"),
        (STATES, np.arange(6) - 1, "-1 is not a number"),
        (STATES, range(5), "inconsistent numbers of samples"),
        (STATES[:0], [], "0 sample"),
        (np.ones((6, 3)), range(6), "all states are the same"),
        (STATES[:, 0], range(6), "2D array"),
    ],
)
def test_bad_data_are_refused_in_one_line(states, values, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        LinearNumberProbe().fit(states, list(values))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [[4], range(5)])
def test_as_many_numbers_as_states_are_scored(values):
    """One number would be compared with all states."""
    numbers = np.arange(6)
    digits, residues = CircularDigitProbe().fit(STATES, numbers), ResidueProbe(2)
    residues.fit(STATES, numbers)
    for score in (digits.score, digits.digit_accuracy, residues.score, residues.kappa):
        with pytest.raises(InvalidInput, match=r"6 states and [15] values: give one"):
            score(STATES, list(values))


def test_tables_tensors_and_arrays_are_the_same():
    values = np.arange(6)
    plain = LinearNumberProbe().fit(STATES, values)
    table = pd.DataFrame(STATES, columns=["x", "y", "z"])
    named = LinearNumberProbe().fit(table, pd.Series(values))
    tensors = LinearNumberProbe().fit(torch.from_numpy(STATES), torch.from_numpy(values))
    assert list(named.feature_names_in_) == ["x", "y", "z"]
    for other in (named, tensors):
        np.testing.assert_array_equal(other.coef_, plain.coef_)
    np.testing.assert_array_equal(named.predict(table), plain.predict(STATES))
    with pytest.raises(InvalidInput, match="2 features"):
        plain.predict(STATES[:, :2])
