"""Planted states get the R² that was planted, controls what they deserve, and verdicts follow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap

from mechnum.beliefs import belief_regression
from mechnum.beliefs.states import one_hot
from mechnum.beliefs.verdict import NEXT_TOKEN, TOKEN, UNTRAINED
from mechnum.errors import InvalidInput
from mechnum.tasks import processes as P
from tests.beliefs.planted import held, sequences


def controls(process, tokens, beliefs):
    return {
        TOKEN: one_hot(tokens, process.n_tokens),
        NEXT_TOKEN: process.next_token(beliefs),
        UNTRAINED: np.random.default_rng(9).normal(size=(len(beliefs), 12)),
    }


def test_planted_beliefs_with_noise_have_the_error_of_the_best_linear_readout():
    """MSE of the best readout of b from Wb + c + σε, from the covariances alone."""
    process = P.mess3()
    _, beliefs, groups = sequences(process, 400, 10, seed=0)
    states = held(beliefs, 12, noise=0.8, seed=1)
    found = belief_regression(states, beliefs, groups=groups)
    directions = np.random.default_rng(1).normal(size=(3, 12))
    spread = np.cov(beliefs.T, bias=True)
    of_states = directions.T @ spread @ directions + 0.64 * np.eye(12)
    explained = spread @ directions @ np.linalg.solve(of_states, directions.T @ spread)
    expected = np.trace(explained) / np.trace(spread)
    assert 0.5 < expected < 0.95
    assert float(found.r2.sel(predictor="states")) == pytest.approx(expected, abs=0.01)
    errors = (found.predicted.values - beliefs) ** 2
    assert float(found.mse.sel(predictor="states")) == pytest.approx(errors.mean(), rel=1e-12)
    np.testing.assert_allclose(found.rmse.sel(predictor="states"), np.sqrt(errors.mean(0)))


def test_exact_beliefs_are_read_and_shuffled_ones_collapse_to_the_centroid():
    process = P.mess3()
    tokens, beliefs, groups = sequences(process, 400, 10, seed=0)
    states = held(beliefs, 12, noise=0.0, seed=1)
    found = belief_regression(
        states, beliefs, groups=groups, controls=controls(process, tokens, beliefs)
    )
    assert str(found.verdict.values) == "informative"
    assert "determines these beliefs" in str(found.reason.values)
    assert float(found.r2.sel(predictor="states")) == pytest.approx(1, abs=1e-9)
    shuffled = found.sel(predictor="shuffled beliefs")
    assert float(shuffled.spread) < 0.01
    assert float(shuffled.mse) == pytest.approx(float(found.variance), rel=0.02)
    assert abs(float(shuffled.r2)) < 0.02


def test_beliefs_of_other_rows_are_not_informative():
    process = P.mess3()
    tokens, beliefs, groups = sequences(process, 300, 10, seed=0)
    order = np.random.default_rng(4).permutation(len(beliefs))
    found = belief_regression(
        held(beliefs, 12, 0.1, 1)[order],
        beliefs,
        groups=groups,
        controls=controls(process, tokens, beliefs),
    )
    assert str(found.verdict.values) == "not informative"
    assert "shuffled beliefs" in str(found.reason.values)


def test_states_that_know_the_current_token_alone_tie_with_it():
    process = P.mess3()
    tokens, beliefs, groups = sequences(process, 300, 10, seed=0)
    states = held(one_hot(tokens, 3), 12, 0.0, 1)
    found = belief_regression(
        states, beliefs, groups=groups, controls=controls(process, tokens, beliefs)
    )
    assert str(found.verdict.values) == "not informative"
    assert float(found.gain.sel(control=TOKEN)) == pytest.approx(0, abs=1e-9)
    assert TOKEN in str(found.reason.values)


def test_visible_states_are_not_informative():
    """Belief and token baseline tie, however well the states hold the belief."""
    process = P.visible([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    tokens, beliefs, groups = sequences(process, 200, 8, seed=2)
    found = belief_regression(
        held(beliefs, 12, 0.0, 1), beliefs, None, groups, controls(process, tokens, beliefs)
    )
    assert float(found.r2.sel(predictor="states")) == pytest.approx(1, abs=1e-9)
    assert str(found.verdict.values) == "not informative"
    assert str(found.reason.values).startswith("no better than: current token")


def test_beliefs_that_never_change_are_undefined():
    process = P.iid()
    tokens, beliefs, groups = sequences(process, 50, 4, seed=0)
    found = belief_regression(
        np.random.default_rng(0).normal(size=(200, 5)),
        beliefs,
        None,
        groups,
        controls(process, tokens, beliefs),
    )
    assert str(found.verdict.values) == "undefined"
    assert "never change" in str(found.reason.values)
    assert np.isnan(found.r2).all()


def test_more_than_the_next_token():
    """RRXOR: beliefs are more than what comes next; states that hold only that do not pass."""
    process = P.rrxor()
    tokens, beliefs, groups = sequences(process, 300, 10, seed=0)
    others = controls(process, tokens, beliefs)
    whole = belief_regression(held(beliefs, 12, 0.02, 1), beliefs, None, groups, others)
    assert str(whole.verdict.values) == "informative"
    assert "determines" not in str(whole.reason.values)
    following = held(process.next_token(beliefs), 12, 0.02, 1)
    narrow = belief_regression(following, beliefs, None, groups, others)
    assert str(narrow.verdict.values) == "not informative"
    assert NEXT_TOKEN in str(narrow.reason.values)


def test_intervals_are_those_of_whole_sequences():
    """Against SciPy's bootstrap of the ratio of weighted sums; single rows would be narrower."""
    process = P.mess3()
    _, beliefs, groups = sequences(process, 60, 10, seed=0)
    generator = np.random.default_rng(3)
    # Noise that a whole sequence shares.
    states = held(beliefs, 6, 0.0, 1) + generator.normal(size=(60, 6))[groups]
    weights = generator.random(600)
    found = belief_regression(states, beliefs, weights, groups, resamples=4000)
    errors = weights * ((found.predicted.values - beliefs) ** 2).mean(1)
    sums = np.bincount(groups, errors), np.bincount(groups, weights)
    interval = bootstrap(
        sums,
        lambda e, w, axis: e.sum(axis) / w.sum(axis),
        paired=True,
        method="percentile",
        n_resamples=4000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    own = found.sel(predictor="states")
    assert float(own.mse) == pytest.approx(sums[0].sum() / sums[1].sum(), rel=1e-12)
    width = interval.high - interval.low
    assert float(own.mse_low) == pytest.approx(interval.low, abs=0.07 * width)
    assert float(own.mse_high) == pytest.approx(interval.high, abs=0.07 * width)


def test_the_seed_decides_all():
    _, beliefs, groups = sequences(P.rrxor(), 40, 6, seed=0)
    states = held(beliefs, 8, 0.3, 1)
    first, same = (belief_regression(states, beliefs, None, groups, seed=5) for _ in range(2))
    assert first.identical(same)
    other = belief_regression(states, beliefs, None, groups, seed=6)
    assert float(other.mse.sel(predictor="states")) != float(first.mse.sel(predictor="states"))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "changes",
    [
        {"states": np.full((20, 3), np.nan)},
        {"states": np.zeros((19, 3))},
        {"states": np.zeros((0, 3)), "beliefs": np.zeros((0, 2))},
        {"weights": -np.ones(20)},
        {"groups": np.zeros(20)},
        {"groups": np.zeros(3)},
        {"folds": 1},
        {"shuffles": 0},
        {"controls": {"states": np.zeros((20, 2))}},
        {"controls": {"short": np.zeros((3, 2))}},
        {"seed": -1},
    ],
)
def test_wrong_input_is_refused_in_one_line(changes):
    states = np.random.default_rng(0).normal(size=(20, 3))
    given = {"states": states, "beliefs": np.random.default_rng(1).random((20, 2)), **changes}
    with pytest.raises(InvalidInput) as refused:
        belief_regression(**given)
    assert "\n" not in str(refused.value)
