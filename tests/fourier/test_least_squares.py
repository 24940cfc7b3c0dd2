"""Amplitudes against planted waves and a fit written out in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import InvalidInput
from mechnum.fourier.least_squares import alias_of, amplitudes
from mechnum.fourier.spectra import spectrum

HOLES = np.setdiff1d(np.arange(3, 120), [7, 8, 9, 40, 77])


def test_planted_waves_come_back_with_phase_from_numbers_with_holes():
    size, phase = np.array([1.5, 0.2]), np.array([0.4, -2.0])
    waves = size * np.cos(2 * np.pi * HOLES[:, None] / 7.3 - phase)
    rows = 5 + 0.03 * HOLES[:, None] + waves + 0.7 * np.cos(2 * np.pi * HOLES[:, None] / 10)
    found = amplitudes(rows, (7.3, 10), HOLES, linear=True)
    np.testing.assert_allclose(found["amplitude"].sel(period=7.3), size)
    np.testing.assert_allclose(found["phase"].sel(period=7.3), phase)
    np.testing.assert_allclose(found["amplitude"].sel(period=10), [0.7, 0.7])
    assert float(found["r2"]) == pytest.approx(1)
    assert found["on_bin"].values.tolist() == [False, False]


def test_the_fit_is_that_of_numpy():
    rows = np.random.default_rng(0).normal(size=(len(HOLES), 5))
    found = amplitudes(rows, (3.7, 25), HOLES, linear=True)
    angles = 2 * np.pi * HOLES[:, None] / np.array([3.7, 25])
    columns = np.concatenate(
        [np.ones((len(HOLES), 1)), HOLES[:, None], np.cos(angles), np.sin(angles)], axis=1
    )

    def left(kept):
        solution = np.linalg.lstsq(columns[:, kept], rows, rcond=None)[0]
        return solution, np.sum((rows - columns[:, kept] @ solution) ** 2)

    total = np.sum((rows - rows.mean(axis=0)) ** 2)
    solution, rest = left([0, 1, 2, 3, 4, 5])
    assert float(found["r2"]) == pytest.approx(1 - rest / total)
    for index in (0, 1):
        cosine, sine = solution[2 + index], solution[4 + index]
        np.testing.assert_allclose(found["amplitude"][index], np.hypot(cosine, sine))
        np.testing.assert_allclose(found["phase"][index], np.arctan2(sine, cosine))
        without = [0, 1, 3 - index, 5 - index]
        assert float(found["share"][index]) == pytest.approx((left(without)[1] - rest) / total)


def test_on_the_bins_it_is_the_spectrum():
    rows = np.random.default_rng(1).normal(size=(2, 100, 6))
    found = amplitudes(rows, (2, 5, 10, 100))
    shares = spectrum(rows).set_index(frequency="period")["share"].sel(frequency=[2, 5, 10, 100])
    np.testing.assert_allclose(found["share"], shares)
    assert found["on_bin"].all()
    assert found.attrs["dropped"] == "sin(T=2)"
    # A wave of amplitude A has the power N A²/2, and N A² at the Nyquist period.
    power = (found["amplitude"] ** 2).sum("dimension") * [100, 50, 50, 50]
    expected = spectrum(rows).set_index(frequency="period")["power"].sel(frequency=[2, 5, 10, 100])
    np.testing.assert_allclose(power, expected)


def test_periods_that_are_no_bin_are_labelled():
    """0 … 360 is 361 numbers, of which no period of the paper is a bin."""
    rows = np.random.default_rng(2).normal(size=(361, 2))
    assert not amplitudes(rows, (2, 5, 10, 100))["on_bin"].any()
    assert amplitudes(rows[:360], (2, 5, 10, 100))["on_bin"].values.tolist() == [True] * 3 + [False]


def test_a_sine_is_not_given_what_it_has_not():
    rows = np.random.default_rng(3).normal(size=(40, 3))
    alternating = np.where(np.arange(40) % 2, -1.0, 1.0)
    found = amplitudes(rows, (2,))
    np.testing.assert_allclose(found["amplitude"][0], np.abs(alternating @ rows / 40))
    assert set(np.round(np.abs(found["phase"].values.ravel()), 6)) <= {0.0, 3.141593}


def test_equal_rows_have_no_share():
    found = amplitudes(np.full((20, 3), 0.3), (5,))
    assert found["share"].isnull().all()
    assert found["r2"].isnull().all()
    np.testing.assert_allclose(found["amplitude"], 0, atol=1e-15)


@pytest.mark.parametrize(
    ("period", "alias"), [(1.25, 5), (10 / 9, 10), (5 / 6, 5), (1.5, 3), (7, 7)]
)
def test_aliases_look_the_same_on_integers(period, alias):
    n = np.arange(200)
    assert alias_of(period) == pytest.approx(alias)
    np.testing.assert_allclose(
        np.cos(2 * np.pi * n / period), np.cos(2 * np.pi * n / alias), atol=1e-9
    )


@pytest.mark.parametrize(
    ("periods", "numbers", "message"),
    [
        ((1.25,), np.arange(40), "a period of 1.25 is the same as period 5"),
        ((1,), np.arange(40), "a period of 1 is the same as a constant"),
        ((0,), np.arange(40), "period 0 is not a finite number above 0"),
        ((np.inf,), np.arange(40), "period inf is not a finite"),
        ((5, 5.0), np.arange(40), "period 5 is there twice"),
        ((), np.arange(40), "there are no periods"),
        (("five",), np.arange(40), "are not numbers"),
        ((2,), 2 * np.arange(40), "period 2 cannot be told from the constant"),
        ((5, 10, 4), np.arange(6), "6 distinct numbers cannot fix"),
        ((5,), np.full(40, 3), "cannot be told|cannot fix"),
    ],
)
def test_periods_that_cannot_be_fitted_are_refused(unchecked, periods, numbers, message):
    with pytest.raises(InvalidInput, match=message):
        amplitudes(np.random.default_rng(0).normal(size=(len(numbers), 2)), periods, numbers)
