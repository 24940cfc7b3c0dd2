"""Spectra against sums written out, planted waves and nulls."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.fourier.spectra import key_frequencies, power_by_frequency, strongest_frequencies


@pytest.mark.parametrize("n", [8, 9, 113])
def test_power_is_that_of_sums_written_out_and_adds_up(n):
    rows = np.random.default_rng(0).normal(size=(n, 5)) + 3
    centred = rows - rows.mean(axis=0)
    numbers = np.arange(n)
    power = []
    for k in range(1, n // 2 + 1):
        angle = 2 * np.pi * k * numbers / n
        waves = [np.cos(angle), np.sin(angle)]
        lengths = [np.linalg.norm(wave) for wave in waves]
        units = [
            wave / length for wave, length in zip(waves, lengths, strict=True) if length > 1e-6
        ]
        power.append(sum(float(np.sum((unit @ centred) ** 2)) for unit in units))
    np.testing.assert_allclose(power_by_frequency(rows), np.array(power) / np.sum(centred**2))
    assert power_by_frequency(rows).sum() == pytest.approx(1)


@pytest.mark.parametrize("n", [100, 101])
def test_planted_waves_are_found_in_the_order_of_their_power(n):
    numbers = np.arange(n)
    rng = np.random.default_rng(1)
    rows = rng.normal(0, 0.05, (n, 12))
    for k, size in ((7, 3.0), (31, 2.0), (n // 2, 1.0)):
        rows += size * np.outer(np.cos(2 * np.pi * k * numbers / n), rng.normal(size=12))
        rows += size * np.outer(np.sin(2 * np.pi * k * numbers / n), rng.normal(size=12))
    assert list(strongest_frequencies(rows, 3)) == [7, 31, n // 2]
    assert set(key_frequencies(rows)) == {7, 31, n // 2}


def test_noise_has_no_key_frequencies():
    rows = np.random.default_rng(2).normal(size=(113, 128))
    assert len(key_frequencies(rows)) == 0
