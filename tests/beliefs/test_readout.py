"""The regression against scikit-learn's and NumPy's, at once and out of fold."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from mechnum.beliefs import BeliefReadout
from mechnum.beliefs.readout import Folds
from mechnum.errors import InvalidInput

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(120, 7)) @ RNG.normal(size=(7, 7)) + 50
BELIEFS = RNG.dirichlet(np.ones(3), size=120)
WEIGHTS = RNG.random(120) ** 3


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_readout_is_weighted_least_squares(weights):
    found = BeliefReadout().fit(STATES, BELIEFS, weights)
    expected = LinearRegression().fit(STATES, BELIEFS, weights)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-10)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-8)
    np.testing.assert_allclose(found.predict(STATES), expected.predict(STATES), atol=1e-10)
    # Probabilities sum to 1, so that one direction is missing.
    subspace = found.subspace()
    np.testing.assert_allclose(subspace @ subspace.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(found.coef_ @ subspace.T @ subspace, found.coef_, atol=1e-12)


def test_predictions_are_those_of_fits_to_the_other_parts():
    fold = np.arange(120) % 4
    found = Folds(WEIGHTS / WEIGHTS.sum(), fold, (1e-6,)).predicted(STATES, BELIEFS)
    for index in range(4):
        train, test = fold != index, fold == index
        fitted = LinearRegression().fit(STATES[train], BELIEFS[train], WEIGHTS[train])
        np.testing.assert_allclose(found[test], fitted.predict(STATES[test]), atol=1e-10)


def test_more_dimensions_than_rows():
    """The shortest solution, as NumPy gives it for centred rows."""
    wide = RNG.normal(size=(20, 40))
    beliefs = BELIEFS[:20]
    found = BeliefReadout().fit(wide, beliefs)
    coef = np.linalg.pinv(wide - wide.mean(0)) @ (beliefs - beliefs.mean(0))
    np.testing.assert_allclose(found.coef_.T, coef, atol=1e-10)


def test_directions_below_the_cutoff_are_left_out():
    """Beliefs that hide in the last bits of float32 do not count as read."""
    states = np.column_stack([STATES, STATES[:, :3] + 1e-9 * BELIEFS])
    assert BeliefReadout(cutoff=1e-13).fit(states, BELIEFS).score(states, BELIEFS) > 0.9
    assert BeliefReadout().fit(states, BELIEFS).score(states, BELIEFS) < 0.5


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("weights", [[-1.0] * 120, [0.0] * 120, [1.0] * 3, [np.nan] * 120])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(InvalidInput, match="weights"):
        BeliefReadout().fit(STATES, BELIEFS, weights)


def test_cutoffs_are_chosen_within_the_training_parts():
    """By brute force: for each part, all fits to all but two of the parts."""
    noisy = BELIEFS @ RNG.normal(size=(3, 30)) + 0.5 * RNG.normal(size=(120, 30))
    fold, cutoffs = np.arange(120) % 4, (1e-6, 0.1, 0.3, 0.6, 2.0)
    found = Folds(WEIGHTS / WEIGHTS.sum(), fold, cutoffs).predicted(noisy, BELIEFS)
    chosen = []
    for index in range(4):
        errors = dict.fromkeys(cutoffs, 0.0)
        for cutoff in cutoffs:
            for inner in {0, 1, 2, 3} - {index}:
                train, test = (fold != index) & (fold != inner), fold == inner
                fit = BeliefReadout(cutoff).fit(noisy[train], BELIEFS[train], WEIGHTS[train])
                left = fit.predict(noisy[test]) - BELIEFS[test]
                errors[cutoff] += float(WEIGHTS[test] @ (left**2).sum(1))
        best = min(errors, key=errors.__getitem__)
        chosen.append(best)
        train, test = fold != index, fold == index
        fit = BeliefReadout(best).fit(noisy[train], BELIEFS[train], WEIGHTS[train])
        np.testing.assert_allclose(found[test], fit.predict(noisy[test]), atol=1e-10)
    assert set(chosen) & {0.1, 0.3, 0.6}


def test_states_that_say_nothing_give_the_mean():
    noise = RNG.normal(size=(120, 60))
    found = Folds(np.full(120, 1 / 120), np.arange(120) % 4).predicted(noise, BELIEFS)
    assert found.var() < 0.05 * BELIEFS.var()


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8),
    reason="the names of the checks are those of 1.8",
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_check_estimator():
    exceptions = {
        "check_fit1d": "one dimension is given as [row], as everywhere in this package",
        "check_fit2d_predict1d": "one dimension is given as [row], as everywhere in this package",
        "check_dtype_object": "all refusals are MechnumError and ValueError, never TypeError",
        "check_do_not_raise_errors_in_init_or_set_params": "the tests check types at each call",
    }
    results = check_estimator(BeliefReadout(), expected_failed_checks=exceptions)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(exceptions)
