"""Rebuilt answers and spectra of logits, against sums written out and planted waves."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import InvalidInput
from mechnum.fourier import detrended_spectrum, fourier_basis, rebuilt_answers

from .sums import amplitudes, waves


@pytest.mark.parametrize("n", [20, 21])
def test_answers_are_those_of_the_strongest_waves_written_out(n):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(8, n)) + 5
    answers = rng.integers(0, n, size=8)
    found = rebuilt_answers(logits, answers, seed=3)
    rows, frequency = waves(n)
    coefficients, sizes = logits @ rows.T, amplitudes(logits)
    random = np.random.default_rng(np.random.SeedSequence(3)).permutation(n // 2)
    orders = {"mean": np.argsort(-sizes.mean(0)), "random": random}
    for k in range(1, n // 2 + 1):
        for ranking in ("prompt", "mean", "random"):
            for prompt in range(8):
                order = orders.get(ranking, np.argsort(-sizes[prompt]))
                left = np.isin(frequency, [0, *(1 + order[:k])])
                rebuilt = coefficients[prompt, left] @ rows[left]
                own = found["correct"].sel(ranking=ranking, kept=k).values[prompt]
                assert own == (rebuilt.argmax() == answers[prompt])
    assert (found["order"].sel(ranking="mean").values == 1 + orders["mean"]).all()
    assert (found["order"].sel(ranking="prompt") == -1).all()
    whole = found["correct"].isel(kept=-1)
    assert (whole == found["correct_unfiltered"]).all()


def test_a_few_planted_waves_give_the_answer():
    n, answers = 60, np.arange(60)
    distance = np.arange(n) - answers[:, None]
    rng = np.random.default_rng(1)
    logits = sum(np.cos(2 * np.pi * k * distance / n) for k in (6, 12, 29, 1))
    logits = logits + 0.05 * rng.normal(size=logits.shape)
    found = rebuilt_answers(logits, answers)["correct"].mean("prompt")
    assert (found.sel(kept=4, ranking=["prompt", "mean"]) == 1).all()
    assert float(found.sel(kept=1, ranking="prompt")) < 0.7
    assert float(found.sel(kept=4, ranking="random")) < 0.5


def test_with_the_papers_basis_all_waves_give_back_what_it_can_hold():
    n = 21
    logits = np.random.default_rng(2).normal(size=(5, n))
    basis = fourier_basis(n, "paper")
    held = (basis.inverse @ (basis.matrix @ logits.T)).T
    found = rebuilt_answers(logits, held.argmax(1), basis="paper")
    assert found["correct"].isel(kept=-1).all()


def test_trend_and_scale_change_no_spectrum():
    n = 50
    numbers = np.arange(n)
    rng = np.random.default_rng(3)
    phase = rng.uniform(0, 6, size=(4, 1))
    logits = 2 * np.cos(2 * np.pi * 5 * numbers / n + phase)
    slopes = np.array([[-0.3], [0.2], [-1.0], [-0.1]])
    shifted = 7 * logits + slopes * (numbers - 3)
    # What a wave itself leans is taken away with the trend, in both.
    one, other = detrended_spectrum(logits), detrended_spectrum(shifted)
    np.testing.assert_allclose(one["amplitude"], other["amplitude"], atol=1e-9)
    np.testing.assert_allclose(other["slope"], 7 * one["slope"] + slopes[:, 0], atol=1e-9)
    np.testing.assert_allclose(other["slope"], [np.polyfit(numbers, u, 1)[0] for u in shifted])
    assert (other["amplitude"].idxmax("frequency") == 5).all()
    assert float(other["period"].sel(frequency=5)) == 10
    left = np.stack([u - np.polyval(np.polyfit(numbers, u, 1), numbers) for u in shifted])
    low, high = left.min(1, keepdims=True), left.max(1, keepdims=True)
    expected = amplitudes(2 * (left - low) / (high - low) - 1)
    np.testing.assert_allclose(other["amplitude"], expected, atol=1e-9)


def test_straight_lines_have_no_spectrum():
    found = detrended_spectrum(np.outer([1.0, -2.0], np.arange(9)) + 4)
    assert np.isnan(found["amplitude"]).all()
    np.testing.assert_allclose(found["slope"], [1, -2])


@pytest.mark.parametrize(
    ("logits", "answers", "message"),
    [
        (np.zeros(5), [0], r"give them as \[prompt, number\]"),
        (np.zeros((0, 5)), np.zeros(0, int), r"give them as \[prompt, number\]"),
        (np.full((1, 5), np.inf), [0], "not finite"),
        (np.zeros((2, 5)), [0], "one whole number for each prompt"),
        (np.zeros((1, 5)), [0.5], "one whole number for each prompt"),
        (np.zeros((1, 5)), [5], "the answer 5 is none"),
        (np.zeros((1, 5)), [-1], "the answer -1 is none"),
        (np.zeros((1, 2)), [0], "2 numbers have no waves"),
    ],
)
def test_bad_logits_and_answers_are_refused(logits, answers, message):
    with pytest.raises(InvalidInput, match=message):
        rebuilt_answers(logits, answers)
