"""Probes in closed form, against an oracle and against scikit-learn's own regressions."""

from __future__ import annotations

import pickle  # noqa: TID251

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GroupKFold

from mechnum.errors import InvalidInput
from mechnum.probes import (
    CircularDigitProbe,
    FourierRegressionProbe,
    LinearNumberProbe,
    LogNumberProbe,
    value_split,
)
from mechnum.probes.regression import digits, n_digits
from mechnum.probes.ridge import ridge_by_value

from .planted import circles, waves

NUMBERS = np.arange(1000)
PERIODS = (10, 100, 1000)
ALL = {"numbers": range(1000)}


@pytest.mark.parametrize("noise", [0.05, 0.15, 0.25, 0.4, 1.0])
def test_fourier_regression_comes_near_the_oracle(noise):
    """The oracle knows the directions and takes the nearest noiseless state.

    The probe has to learn the directions from other numbers, and among ten periods that it is
    given find the three that are there.
    """
    d, rows = 24, np.repeat(NUMBERS, 4)
    states = circles(rows, PERIODS, d, noise, seed=1)
    clean = circles(NUMBERS, PERIODS, d, 0.0, seed=1)
    train, test = value_split(rows, (0.8, 0.2), 0)
    distance = np.square(states[test][:, None] - clean).sum(axis=2)
    oracle = np.mean(distance.argmin(axis=1) == rows[test])
    probe = FourierRegressionProbe(**ALL).fit(states[train], rows[train])
    found = probe.score(states[test], rows[test])
    assert oracle > 0.999 if noise == 0.05 else oracle < 0.6 if noise == 1.0 else True
    # 800 rows: an accuracy has a standard error of .018 at most.
    assert oracle - 0.05 < found < oracle + 0.03


def test_periods_that_are_not_there_have_no_part_in_the_reading():
    states = circles(NUMBERS, PERIODS, 24, 0.1)
    probe = FourierRegressionProbe(**ALL).fit(states, NUMBERS)
    r2 = dict(zip(probe.periods, probe.r2_))
    assert min(r2[period] for period in PERIODS) > 0.95
    assert max(value for period, value in r2.items() if period not in PERIODS) < 0.02
    # sin(πv) is 0 on all numbers and no target.
    assert probe.periods_.tolist().count(2) == 1
    assert len(probe.periods_) == 19
    kept = np.isin(probe.periods_, PERIODS)
    assert probe.error_variance_[kept].max() < 0.05
    assert probe.error_variance_[~kept].min() > 0.4


def test_codes_are_weighted_by_their_errors():
    """The decision written out: −Σ (z − code)² / 2σ², up to a constant of the row."""
    states = circles(NUMBERS, PERIODS, 24, 0.2)
    probe = FourierRegressionProbe(PERIODS, **ALL).fit(states, NUMBERS)
    z, codes = probe.readings(states), waves(NUMBERS, PERIODS)
    wanted = -(((z[:, None] - codes) ** 2) / (2 * probe.error_variance_)).sum(axis=2)
    found = probe.decision_function(states)
    np.testing.assert_allclose(
        found - found.max(1, keepdims=True), wanted - wanted.max(1, keepdims=True), atol=1e-8
    )
    np.testing.assert_array_equal(probe.predict(states), wanted.argmax(1))


def test_a_rotation_of_the_states_changes_nothing():
    states = circles(NUMBERS, PERIODS, 24, 0.2)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(24, 24)))[0]
    one = FourierRegressionProbe(**ALL).fit(states, NUMBERS)
    other = FourierRegressionProbe(**ALL).fit(states @ turn + 3, NUMBERS)
    np.testing.assert_allclose(
        one.decision_function(states), other.decision_function(states @ turn + 3), atol=1e-6
    )


@pytest.mark.parametrize("d", [5, 60])
def test_ridge_is_scikit_learns_with_the_strength_of_least_held_out_error(d):
    """Both with fewer dimensions than rows and with more; repeated numbers stay together."""
    generator = np.random.default_rng(0)
    values = generator.integers(0, 15, size=40)
    states = generator.normal(size=(40, d)) * np.linspace(0.5, 2, d) + 4
    targets = states[:, :3] @ generator.normal(size=(3, 3)) + generator.normal(size=(40, 3))
    alphas, groups = (1e-3, 1e-1, 1.0, 10.0), np.array([0, 0, 1])
    fit = ridge_by_value(states, targets, values, groups, alphas, 4, 7)
    seed = int(np.random.SeedSequence(7).generate_state(1)[0])
    splits = list(GroupKFold(4, shuffle=True, random_state=seed).split(states, groups=values))

    def ridge(rows, alpha):
        centred = states[rows] - states[rows].mean(0)
        span = min(d, len(states) if d > len(states) else d)
        variance = np.square(centred).sum() / len(rows) / span
        return Ridge(alpha * variance * len(rows)).fit(states[rows], targets[rows])

    heldout = np.empty((len(alphas), *targets.shape))
    for index, alpha in enumerate(alphas):
        for train, test in splits:
            heldout[index, test] = ridge(train, alpha).predict(states[test])
    errors = np.square(heldout - targets).sum(axis=1)
    best = [errors[:, :2].sum(axis=1).argmin()] * 2 + [errors[:, 2].argmin()]
    np.testing.assert_array_equal(fit.alphas, np.array(alphas)[best])
    for column, index in enumerate(best):
        np.testing.assert_allclose(fit.heldout[:, column], heldout[index, :, column], atol=1e-8)
        known = ridge(np.arange(40), alphas[index])
        np.testing.assert_allclose(fit.coef[column], known.coef_[column], atol=1e-8)
        np.testing.assert_allclose(fit.intercept[column], known.intercept_[column], atol=1e-8)


@pytest.mark.parametrize("d", [10, 200])
def test_the_linear_probe_is_least_squares_rounded_and_clipped(d):
    generator = np.random.default_rng(0)
    values = generator.integers(0, 60, size=100)
    states = generator.normal(size=(100, d))
    states[:, 0] += values / 10
    others = generator.normal(size=(50, d)) * 3
    probe = LinearNumberProbe(range(60)).fit(states, values)
    read = LinearRegression().fit(states, values).predict(others)
    np.testing.assert_allclose(probe.readings(others)[:, 0], read, atol=1e-8)
    np.testing.assert_array_equal(probe.predict(others), np.round(read).clip(0, 59))
    np.testing.assert_array_equal(probe.predict_proba(others).argmax(1), probe.predict(others))


def test_the_logarithmic_probe_is_least_squares_of_log_1p():
    generator = np.random.default_rng(0)
    values = generator.integers(0, 60, size=100)
    states = generator.normal(size=(100, 6))
    states[:, 0] += 3 * np.log1p(values)
    others = np.concatenate([states[:40], generator.normal(size=(10, 6)) * 30])
    probe = LogNumberProbe(range(60)).fit(states, values)
    read = np.exp(LinearRegression().fit(states, np.log(1 + values)).predict(others)) - 1
    np.testing.assert_array_equal(probe.predict(others), np.round(read.clip(0, 59)))
    proba = probe.predict_proba(others)
    np.testing.assert_allclose(proba.sum(1), 1)
    np.testing.assert_array_equal(proba.argmax(1), probe.predict(others))


def test_an_exact_logarithmic_code_is_read_and_zero_is_zero():
    """With exp + 1, as released, every number would come out 2 too large."""
    states = np.column_stack([np.log1p(NUMBERS), np.random.default_rng(0).normal(size=1000)])
    probe = LogNumberProbe(**ALL).fit(states[::2], NUMBERS[::2])
    assert probe.score(states, NUMBERS) == 1.0


def test_likelihoods_are_honest():
    """Of states that are read with a probability near p, a share near p is right."""
    rows = np.repeat(NUMBERS, 8)
    states = circles(rows, PERIODS, 24, 0.2)
    train, test = value_split(rows, (0.75, 0.25), 0)
    probe = FourierRegressionProbe(**ALL).fit(states[train], rows[train])
    proba = probe.predict_proba(states[test])
    right = probe.predict(states[test]) == rows[test]
    sure = proba.max(axis=1)
    for low, high in ((0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        inside = (sure >= low) & (sure < high)
        assert inside.sum() > 50
        assert abs(sure[inside].mean() - right[inside].mean()) < 0.1


@pytest.mark.parametrize("base", [2, 7, 10, 16])
def test_digits_of_any_base_are_read_from_their_own_circles(base):
    """The code of digits in one base: that base is read on held-out numbers, another is not."""
    generator = np.random.default_rng(0)
    n = n_digits(999, base)
    places = digits(NUMBERS, base, n)
    turns = 2 * np.pi * places / base
    code = np.concatenate([np.cos(turns), np.sin(turns)], axis=1)
    axes = np.linalg.qr(generator.normal(size=(32, 2 * n)))[0].T
    states = code @ axes + 0.05 * generator.normal(size=(1000, 32))
    train, test = value_split(NUMBERS, (0.8, 0.2), 1)
    probe = CircularDigitProbe(base, **ALL).fit(states[train], train)
    assert probe.score(states[test], test) > 0.98
    np.testing.assert_array_equal(
        [int(np.base_repr(v, base)[::-1][0], 36) for v in test],
        probe.predict_digits(states[test])[:, 0],
    )
    assert probe.digit_accuracy(states[test], test).min() > 0.98
    assert probe.r2_[0] > 0.9
    other = CircularDigitProbe(11, **ALL).fit(states[train], train)
    assert other.digit_accuracy(states[test], test)[0] < 0.5


@pytest.mark.parametrize("base", [2, 3, 10])
def test_digits_against_numpys(base):
    assert [n_digits(v, base) for v in range(1000)] == [len(np.base_repr(v, base)) for v in NUMBERS]
    written = [np.base_repr(v, base).zfill(10)[::-1] for v in NUMBERS]
    assert digits(NUMBERS, base, 10).tolist() == [[int(c) for c in text] for text in written]


def test_a_digit_that_never_changes_harms_nothing():
    """The hundreds of 100 … 199, and the hundreds of 2000 … 2009, which are 0."""
    for numbers in (np.arange(100, 200), np.arange(2000, 2010)):
        states = np.repeat(circles(numbers, (10, 100), 24, 0.0), 3, axis=0)
        values = np.repeat(numbers, 3)
        probe = CircularDigitProbe().fit(states, values)
        assert probe.n_digits_ == len(str(numbers[-1]))
        np.testing.assert_array_equal(probe.predict_digits(states)[:, 2], values // 100 % 10)
        assert np.isfinite(probe.predict_proba(states)).all()


@pytest.mark.parametrize(
    "probe", [LinearNumberProbe(), LogNumberProbe(), FourierRegressionProbe(), CircularDigitProbe()]
)
def test_pickled_and_cloned(probe):
    states = circles(NUMBERS[:100], PERIODS, 24, 0.1).astype(np.float32)
    fitted = clone(probe).fit(states, NUMBERS[:100])
    back = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    np.testing.assert_array_equal(back.predict_proba(states), fitted.predict_proba(states))
    assert clone(fitted).get_params() == probe.get_params()
    assert fitted.predict_proba(states).dtype == np.float64


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        (FourierRegressionProbe(()), "there are no periods"),
        (FourierRegressionProbe((10, 10)), "period 10 is there twice"),
        (FourierRegressionProbe((1.5,)), "period of 1.5"),
        (FourierRegressionProbe(alphas=()), "alphas"),
        (FourierRegressionProbe(alphas=(-1.0,)), "alphas"),
        (FourierRegressionProbe(folds=1), "1 fold"),
        (FourierRegressionProbe(folds=0), "folds is 0"),
        (FourierRegressionProbe(seed=-1), "seed is -1"),
        (CircularDigitProbe(1), "base is 1"),
        (CircularDigitProbe(0), "base is 0"),
    ],
)
def test_impossible_parameters_are_refused(probe, message):
    with pytest.raises(InvalidInput, match=message):
        probe.fit(circles(NUMBERS[:50]), NUMBERS[:50])
