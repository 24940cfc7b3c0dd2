"""Inverted probes are the least of a convex problem, found again by a solver of SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from mechnum.errors import InvalidInput
from mechnum.probes import (
    FourierRegressionProbe,
    LinearNumberProbe,
    LogNumberProbe,
    ParamSinProbe,
    invert_probe,
)
from mechnum.probes.base import CodeProbe
from mechnum.probes.steering.vectors import likely_states
from tests.probes.planted import circles

PERIODS = (10, 5, 2)
NUMBERS = np.repeat(np.arange(10), 8)
STATES = circles(NUMBERS, PERIODS, 16, 0.3) + 3
CENTRE = STATES.mean(axis=0)


class Dictated(CodeProbe):
    """The logit of each number is its coordinate."""

    def __init__(self, numbers=None):
        self.numbers = numbers

    def _fit(self, states, values):
        n, d = len(self.classes_), states.shape[1]
        self.coef_, self.intercept_ = np.eye(n, d), np.zeros(n)
        self.codes_, self.offsets_ = np.eye(n), np.zeros(n)


def margin(probe, state, number):
    """Log odds of all other numbers: as the cross-entropy, but never rounded to 0."""
    logits = probe.codes_.T @ (probe.coef_ @ state + probe.intercept_) + probe.offsets_
    return logsumexp(np.delete(logits, number)) - logits[number]


def test_a_probe_with_one_axis_for_each_number_is_surest_along_it():
    """By symmetry: the least of log Σ exp(x_u − x_v) on a ball is where all others are equal."""
    fitted = Dictated().fit(STATES, NUMBERS)
    found = invert_probe(fitted, np.zeros(16), 2.0)
    away = np.eye(10, 16) - np.pad(np.full((10, 10), 0.1), ((0, 0), (0, 6)))
    expected = 2 * away / np.linalg.norm(away, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize(
    "probe",
    [
        FourierRegressionProbe(PERIODS),
        pytest.param(ParamSinProbe(H=20, steps=50, validation_share=0.0), marks=pytest.mark.slow),
        LinearNumberProbe(),
    ],
    ids=lambda probe: type(probe).__name__,
)
def test_no_state_of_the_ball_has_less_cross_entropy(probe):
    """Also where the least lies inside: in the middle of a line no number can be made sure."""
    fitted = probe.fit(STATES, NUMBERS)
    found = invert_probe(fitted, CENTRE, 1.5, numbers=np.array([3, 0]))
    assert (np.linalg.norm(found - CENTRE, axis=1) <= 1.5 + 1e-9).all()
    for number, own in zip((3, 0), found, strict=True):
        ball = {"type": "ineq", "fun": lambda x: 1.5**2 - ((x - CENTRE) ** 2).sum()}
        best = minimize(
            lambda x, number=number: margin(fitted, x, number),
            CENTRE,
            constraints=[ball],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-9},
        )
        assert margin(fitted, own, number) < best.fun + 0.01 * max(1, abs(best.fun))


def test_states_are_as_likely_as_training_states_and_as_far():
    """A round ball goes where states hardly vary; a likely state does not."""
    generator = np.random.default_rng(0)
    quiet = np.eye(16)[0]
    flat = STATES - np.outer(STATES @ quiet, quiet)
    # A thousandth of the numbers' own spread, without any noise: perfectly readable.
    states = flat + 1e-2 * np.outer((NUMBERS - 4.5) + 1e-3 * generator.normal(size=80), quiet)
    fitted = FourierRegressionProbe(PERIODS, alphas=(0.0,)).fit(states, NUMBERS)
    radius = float(np.sqrt(((states - states.mean(0)) ** 2).sum(1).mean()))
    likely = likely_states(fitted, states, radius) - states.mean(0)
    np.testing.assert_allclose(np.linalg.norm(likely, axis=1), radius)
    round_ball = invert_probe(fitted, states.mean(0), radius) - states.mean(0)
    means = np.stack([states[v == NUMBERS].mean(0) for v in range(10)]) - states.mean(0)

    def cosine(vectors):
        norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(means, axis=1)
        return float(((vectors * means).sum(1) / norms).mean())

    assert np.abs(likely @ quiet).max() < 0.05 * radius
    assert np.abs(round_ball @ quiet).max() > 0.5 * radius
    assert cosine(likely) > 0.9
    assert cosine(round_ball) < 0.8


def test_what_cannot_be_inverted_is_refused():
    fitted = LinearNumberProbe().fit(STATES, NUMBERS)
    with pytest.raises(InvalidInput, match="LogNumberProbe has no logits that are linear"):
        invert_probe(LogNumberProbe().fit(STATES, NUMBERS), CENTRE, 1.0)
    with pytest.raises(InvalidInput, match="give a length above 0"):
        invert_probe(fitted, CENTRE, 0.0)
    with pytest.raises(InvalidInput, match="12 does not compete"):
        invert_probe(fitted, CENTRE, 1.0, np.array([12]))
    with pytest.raises(InvalidInput, match="dimensions"):
        invert_probe(fitted, CENTRE[:3], 1.0)
