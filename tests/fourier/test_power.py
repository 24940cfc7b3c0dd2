"""Power from mean products, and outliers: against sums written out, planted waves and noise."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import InvalidInput
from mechnum.fourier import fourier_basis
from mechnum.fourier.power import mean_power, outliers

from .sums import amplitudes


def products(u):
    u = u - u.mean(axis=1, keepdims=True)
    return (u.T @ u / len(u))[None]


@pytest.mark.parametrize("n", [8, 9, 50, 113])
def test_power_from_products_is_the_mean_of_squares(n):
    u = np.random.default_rng(0).normal(size=(7, n))
    found = mean_power(fourier_basis(n), products(u))[0]
    np.testing.assert_allclose(found, (amplitudes(u) ** 2).mean(axis=0), rtol=1e-9)
    assert found.sum() == pytest.approx(np.square(u - u.mean(1, keepdims=True)).sum(1).mean())


@pytest.mark.parametrize("n", [8, 9, 50])
def test_power_in_the_papers_basis(n):
    u = np.random.default_rng(1).normal(size=(7, n))
    basis = fourier_basis(n, "paper")
    centred = u - u.mean(axis=1, keepdims=True)
    expected = basis.power(basis.coefficients(centred.T)).mean(axis=1)
    np.testing.assert_allclose(mean_power(basis, products(u))[0], expected, rtol=1e-9)


@pytest.mark.parametrize("n", [100, 101])
def test_planted_waves_stand_out_and_no_others(n):
    rng = np.random.default_rng(2)
    numbers = np.arange(n)
    u = rng.normal(size=(200, n))
    for k in (7, 20, n // 2):
        phase = rng.uniform(0, 2 * np.pi, size=(200, 1)) * (2 * k < n)
        u += 1.5 * np.cos(2 * np.pi * k * numbers / n + phase)
    found = outliers(fourier_basis(n), products(u), permutations=39)
    assert set(found["frequency"].values[found["outlier"].values[0]]) == {7, 20, n // 2}
    assert float(found["share"].sum()) == pytest.approx(1)
    assert (found["p"].values[0][[6, 19, n // 2 - 1]] == 1 / 40).all()


def test_noise_has_few_outliers_over_seeds():
    """The same vectors in random order are the null itself: at most 5 % of states have one."""
    rng = np.random.default_rng(3)
    grams = np.concatenate([products(rng.normal(size=(5, 60))) for _ in range(100)])
    found = outliers(fourier_basis(60), grams, permutations=99)
    assert (found["p"].min("frequency") <= 0.05).mean() < 0.12
    assert found["outlier"].any("frequency").mean() < 0.05


def test_the_permutations_are_the_nulls_written_out():
    u = np.random.default_rng(4).normal(size=(6, 30))
    found = outliers(fourier_basis(30), products(u), permutations=19, seed=5)
    rng = np.random.default_rng(np.random.SeedSequence(5))
    rows = np.array([2] * 14 + [1])
    largest = [
        ((amplitudes(u[:, rng.permutation(30)]) ** 2).mean(axis=0) / rows).max() for _ in range(19)
    ]
    observed = (amplitudes(u) ** 2).mean(axis=0) / rows
    expected = (1 + (np.array(largest)[:, None] >= observed).sum(axis=0)) / 20
    np.testing.assert_allclose(found["p"].values[0], expected)
    again = outliers(fourier_basis(30), products(u), permutations=19, seed=5)
    assert found.equals(again)


def test_silence_is_nan_and_no_outlier():
    u = np.random.default_rng(6).normal(size=(3, 20))
    grams = np.concatenate([products(u), np.zeros((1, 20, 20))])
    found = outliers(fourier_basis(20), grams, permutations=19).isel(state=1)
    assert all(np.isnan(found[name]).all() for name in ("share", "robust_z", "p", "chance"))
    assert not found["outlier"].any()


def test_too_few_permutations_are_refused():
    with pytest.raises(InvalidInput, match="give 19 or more"):
        outliers(fourier_basis(20), np.zeros((1, 20, 20)), permutations=18)
