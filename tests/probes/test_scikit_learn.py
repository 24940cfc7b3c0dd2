"""The probes keep scikit-learn's contract."""

from __future__ import annotations

import pytest
import sklearn
from sklearn.utils.estimator_checks import check_estimator

from mechnum.probes import (
    BinaryProbe,
    CircularDigitProbe,
    FourierRegressionProbe,
    LinearNumberProbe,
    LogNumberProbe,
    NumberProbe,
    ParamSinProbe,
    ResidueProbe,
    SinProbe,
)

EXCEPTIONS = {
    "check_do_not_raise_errors_in_init_or_set_params": (
        "the tests check annotated types at each call, constructors included"
    ),
    "check_dtype_object": "all refusals are MechnumError and ValueError, never TypeError",
}
PROBES = [
    LinearNumberProbe(),
    LogNumberProbe(),
    BinaryProbe(steps=5),
    SinProbe(steps=5),
    ParamSinProbe(H=8, steps=5),
    FourierRegressionProbe(),
    CircularDigitProbe(),
    ResidueProbe(2),
]


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8),
    reason="the checks change from release to release",
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
def test_check_estimator(probe: NumberProbe) -> None:
    results = check_estimator(probe, expected_failed_checks=EXCEPTIONS)
    assert len(results) > 30
    # An exception that is no longer one must go from the list.
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(EXCEPTIONS)
