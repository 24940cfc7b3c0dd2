"""Measures of weights: against sums written out and matrices of known rank."""

from __future__ import annotations

import numpy as np
import pytest

import mechnum as mn
from mechnum.errors import InvalidInput
from tests.fourier.sums import waves

RNG = np.random.default_rng(0)


def test_gini_is_the_mean_difference_of_all_pairs_of_values():
    values = RNG.exponential(size=20)
    by_pairs = np.abs(values[:, None] - values[None, :]).mean() / (2 * values.mean())
    assert mn.grokking.gini(values) == pytest.approx(by_pairs)
    assert mn.grokking.gini(np.ones(7)) == pytest.approx(0)
    assert mn.grokking.gini([0, 0, 0, 5]) == pytest.approx(3 / 4)
    assert np.isnan(mn.grokking.gini([0.0, 0.0]))
    for bad in ([], [-1.0], [np.nan]):
        with pytest.raises(InvalidInput, match="finite values of 0 or more"):
            mn.grokking.gini(bad)


def test_fourier_gini_is_that_of_the_components_without_the_constant():
    rows = RNG.normal(size=(11, 4))
    basis, _ = waves(11)
    lengths = np.linalg.norm(basis[1:] @ rows, axis=1)
    assert mn.grokking.fourier_gini(rows) == pytest.approx(mn.grokking.gini(lengths))
    assert mn.grokking.fourier_gini(rows + 9) == pytest.approx(mn.grokking.fourier_gini(rows))
    one = np.outer(basis[3], [1.0, 2.0])
    assert mn.grokking.fourier_gini(one) == pytest.approx(0.9)


def test_rank_counts_the_directions_that_hold_the_length():
    left, right = np.linalg.qr(RNG.normal(size=(8, 8)))[0], np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    sizes = np.array([10.0, 10, 10, 1, 0.1, 0])
    matrix = left[:, :6] * sizes @ right
    assert mn.grokking.numerical_rank(matrix) == 3  # 300 of 301.01
    assert mn.grokking.numerical_rank(matrix, held=0.999) == 4
    assert mn.grokking.numerical_rank(np.eye(5), held=1.0) == 5
    assert mn.grokking.numerical_rank(np.zeros((3, 3))) == 0
    with pytest.raises(InvalidInput, match="no share"):
        mn.grokking.numerical_rank(matrix, held=0.0)


def test_the_residual_is_what_the_keys_do_not_hold():
    basis, frequency = waves(11)
    readout = RNG.normal(size=(11, 7))
    others = basis[~np.isin(frequency, [2, 4])]
    expected = np.linalg.norm(others @ readout) / np.linalg.norm(readout)
    assert mn.grokking.readout_residual(readout, [2, 4]) == pytest.approx(expected)
    assert np.isnan(mn.grokking.readout_residual(np.zeros((11, 2)), [2]))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros(5), "give .row, d."),
        (np.zeros((0, 3)), "give .row, d."),
        (np.full((5, 2), np.nan), "not all finite"),
        (np.ones((8, 2)), "p = 8 is not prime"),
        (np.ones((2, 2)), "p = 2 has no waves"),
    ],
)
def test_bad_tables_are_refused(table, message):
    with pytest.raises(InvalidInput, match=message):
        mn.grokking.fourier_gini(table)
