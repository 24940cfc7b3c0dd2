"""Bases against what they must satisfy, and the paper basis with the defect that it has."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import InvalidInput
from mechnum.fourier.bases import fourier_basis

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [3, 4, 59, 100, 521])
def test_the_orthonormal_basis_is_one_and_keeps_lengths(n):
    basis = fourier_basis(n)
    np.testing.assert_allclose(basis.matrix @ basis.matrix.T, np.eye(n), atol=1e-12)
    values = RNG.normal(size=(n, 3))
    coefficients = basis.coefficients(values)
    assert np.sum(coefficients**2) == pytest.approx(np.sum(values**2))
    np.testing.assert_allclose(basis.rebuild(coefficients), values, atol=1e-12)
    whole = n * values.mean(axis=0) ** 2 + basis.power(coefficients).sum(axis=0)
    np.testing.assert_allclose(whole, np.sum(values**2, axis=0))


@pytest.mark.parametrize("n", [4, 9, 100])
def test_rows_are_named_by_the_wave_that_they_are(n):
    basis = fourier_basis(n)
    x = np.arange(n)
    assert basis.frequencies[-1] == n // 2
    np.testing.assert_allclose(basis.periods, n / np.arange(1, n // 2 + 1))
    for k in basis.frequencies:
        rows = basis.matrix[basis.frequency == k]
        # The Nyquist frequency has no sine: it is 0 on integers.
        assert len(rows) == (1 if 2 * k == n else 2)
        waves = [np.sin(2 * np.pi * k * x / n), np.cos(2 * np.pi * k * x / n)]
        for row, wave in zip(rows[::-1], waves[::-1], strict=False):
            np.testing.assert_allclose(row, wave / np.linalg.norm(wave), atol=1e-12)


def test_power_is_that_of_numpys_transform():
    values = RNG.normal(size=(100, 4))
    basis = fourier_basis(100)
    transformed = np.abs(np.fft.fft(values, axis=0)) ** 2 / 100
    mirrored = transformed[1:51] + np.where(np.arange(1, 51)[:, None] < 50, transformed[:49:-1], 0)
    np.testing.assert_allclose(basis.power(basis.coefficients(values)), mirrored)


def test_the_basis_of_the_paper_has_its_defect():
    """521 numbers with angles over 520, as in Zhou et al. 2024."""
    basis = fourier_basis(521, "paper")
    x = np.arange(521)
    assert basis.matrix.shape == (521, 521)
    np.testing.assert_allclose(basis.matrix[0], 1 / np.sqrt(520))
    np.testing.assert_allclose(
        basis.matrix[39], np.sqrt(2 / 520) * np.sin(2 * np.pi * 20 * x / 520)
    )
    np.testing.assert_allclose(
        basis.matrix[40], np.sqrt(2 / 520) * np.cos(2 * np.pi * 20 * x / 520)
    )
    assert basis.frequency[[0, 39, 40, 519, 520]].tolist() == [0, 20, 20, 260, 260]
    assert basis.periods[19] == 26
    assert np.linalg.matrix_rank(basis.matrix) == 520
    gram = basis.matrix @ basis.matrix.T
    assert np.abs(gram[519]).max() < 1e-12  # sin of k = 260
    assert gram[520, 520] == pytest.approx(2.004, abs=5e-4)
    apart = gram - np.diag(np.diag(gram))
    assert np.abs(apart).max() == pytest.approx(2 / 520)
    values = fourier_basis(521, "paper").matrix.T @ RNG.normal(size=521)
    np.testing.assert_allclose(basis.rebuild(basis.coefficients(values)), values, atol=1e-9)
    wrong = basis.matrix.T @ basis.coefficients(values)
    assert np.abs(wrong - values).max() > 0.01


def test_what_is_no_basis_is_refused(unchecked):
    with pytest.raises(InvalidInput, match="unknown basis 'cosine': use"):
        fourier_basis(10, "cosine")
    with pytest.raises(InvalidInput, match="2 numbers have no waves: give 3 or more"):
        fourier_basis(2)
    with pytest.raises(InvalidInput, match="9 values do not fit a basis over 10 numbers"):
        fourier_basis(10).coefficients(np.zeros(9))
