"""The estimators keep scikit-learn's contract."""

from __future__ import annotations

import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator

from mechnum.helix import (
    Circle,
    Helix,
    HelixBasis,
    PCAReconstruction,
    PermutedLabels,
    Polynomial,
    PolynomialBasis,
)

ONE_VARIABLE = "numbers of one variable are given as [row], the usual case here"
EXCEPTIONS = {
    "check_fit1d": ONE_VARIABLE,
    "check_fit2d_predict1d": ONE_VARIABLE,
    "check_do_not_raise_errors_in_init_or_set_params": (
        "the tests check annotated types at each call, constructors included"
    ),
    "check_dtype_object": "all refusals are MechnumError and ValueError, never TypeError",
}
TOO_FEW = "the check has fewer rows than these columns, which is refused"

# As few columns as possible: the checks fit up to ten variables to as few as ten rows.
ESTIMATORS = [
    (Helix((7,)), ("check_regressor_multioutput", "check_regressors_no_decision_function")),
    (Circle((7,)), ("check_regressor_multioutput",)),
    (Polynomial(1), ()),
    (PCAReconstruction(3), ()),
    (PermutedLabels(Polynomial(1)), ()),
    (HelixBasis((7,)), ()),
    (PolynomialBasis(1), ()),
]


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8),
    reason="until 1.8 the checks fit to fewer rows than even these estimators have columns",
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(("estimator", "too_few"), ESTIMATORS, ids=lambda value: repr(value)[:30])
def test_check_estimator(estimator: BaseEstimator, too_few: tuple[str, ...]) -> None:
    expected = {**EXCEPTIONS, **dict.fromkeys(too_few, TOO_FEW)}
    results = check_estimator(estimator, expected_failed_checks=expected)
    assert len(results) > 30
    # An exception that is no longer one must go from the list.
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(expected)
