"""Numbers and states at the boundary: anything array-like in, checked float64 arrays out."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from jaxtyping import Float64, Int
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_X_y, validate_data

from mechnum.errors import InvalidInput

_NUMBERS_AND_STATES = (
    "give finite numbers [row] or [row, variable], one row for each state [row, d]"
)


def to_numpy(data: Any) -> Any:
    """A torch tensor as a float64 array, whatever its dtype and device; anything else untouched."""
    # Recognised by its method, so that NumPy users never import torch.
    if hasattr(data, "detach"):
        return data.detach().cpu().double().numpy()
    return data


def as_columns(numbers: Any) -> Any:
    """Numbers [row] as one column [row, 1]; tables with named columns keep their names."""
    numbers = to_numpy(numbers)
    if hasattr(numbers, "columns"):
        return numbers
    array = np.asarray(numbers) if not hasattr(numbers, "toarray") else numbers
    return array[:, None] if array.ndim == 1 else array


def training_data(
    estimator: BaseEstimator, numbers: Any, states: Any
) -> tuple[Float64[np.ndarray, "row variable"], Float64[np.ndarray, "row *d"]]:
    """Numbers and states to fit on; the estimator remembers the number of variables.

    Raises:
        InvalidInput: if one is empty, not finite or not numeric, or if the lengths differ.
    """
    try:
        numbers, states = validate_data(
            estimator,
            as_columns(numbers),
            to_numpy(states),
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
        )
        return numbers, states.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise refused(error, _NUMBERS_AND_STATES) from error


def training_numbers(estimator: BaseEstimator, numbers: Any) -> Float64[np.ndarray, "row variable"]:
    """Numbers to fit on, without states; the estimator remembers the number of variables.

    Raises:
        InvalidInput: if they are empty, not finite or not numeric.
    """
    try:
        return np.asarray(validate_data(estimator, as_columns(numbers), dtype=np.float64))
    except (ValueError, TypeError) as error:
        raise refused(error, _NUMBERS_AND_STATES) from error


def known_numbers(estimator: BaseEstimator, numbers: Any) -> Float64[np.ndarray, "row variable"]:
    """Numbers for a fitted estimator.

    Raises:
        InvalidInput: as `training_numbers`, and if the number of variables is not the fitted one.
    """
    try:
        return np.asarray(
            validate_data(estimator, as_columns(numbers), dtype=np.float64, reset=False)
        )
    except (ValueError, TypeError) as error:
        raise refused(error, _NUMBERS_AND_STATES) from error


def numbers_with_states(
    numbers: Any, states: Any
) -> tuple[Float64[np.ndarray, "row variable"], Float64[np.ndarray, "row d"]]:
    """Numbers and states of the same rows, outside any estimator; states [row] as one column.

    Raises:
        InvalidInput: if one is empty, not finite or not numeric, or if the lengths differ.
    """
    try:
        numbers, states = check_X_y(
            as_columns(numbers),
            as_columns(states),
            dtype="float64",
            multi_output=True,
            y_numeric=True,
        )
        return numbers, states.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise refused(error, _NUMBERS_AND_STATES) from error


def value_means(
    numbers: Float64[np.ndarray, "row variable"], states: Float64[np.ndarray, "row d"]
) -> tuple[
    Float64[np.ndarray, "value variable"],
    Float64[np.ndarray, "value d"],
    Int[np.ndarray, " value"],
    Int[np.ndarray, " row"],
]:
    """Distinct numbers in order, mean state and count of each, and which one each row has."""
    values, which, counts = np.unique(numbers, axis=0, return_inverse=True, return_counts=True)
    which = which.reshape(-1)  # NumPy 2.0 alone returns it as a column
    means = np.zeros((len(values), states.shape[1]))
    np.add.at(means, which, states)
    return values, means / counts[:, None], counts, which


def as_states(states: Any, d: int) -> Float64[np.ndarray, "row d"]:
    """States of the fitted width `d`; with `d` = 1, [row] is taken as one column.

    Raises:
        InvalidInput: if they are empty, not finite, not numeric or of another width.
    """
    states = to_numpy(states)
    if d == 1 and np.ndim(states) == 1:
        states = np.asarray(states)[:, None]
    try:
        array = check_array(states, dtype="float64")
    except (ValueError, TypeError) as error:
        raise refused(error, _NUMBERS_AND_STATES) from error
    if array.shape[1] != d:
        raise InvalidInput(
            f"the states have {array.shape[1]} dimensions and the fitted ones have {d}: "
            "give states of the model and place that were fitted"
        )
    return array


def positive_integer(name: str, value: Any) -> int:
    """`value` as an int.

    Raises:
        InvalidInput: if it is not a whole number of at least 1.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidInput(f"{name} is {value!r}: give a whole number of at least 1")
    return int(value)


def seed_sequence(seed: Any) -> np.random.SeedSequence:
    """What generators are drawn from.

    Raises:
        InvalidInput: if it is not a whole number of at least 0.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise InvalidInput(f"the seed is {seed!r}: give a whole number of at least 0")
    return np.random.SeedSequence(int(seed))


def refused(error: Exception, advice: str) -> InvalidInput:
    """One line of `advice` after what scikit-learn said, which spans lines and quotes arrays."""
    reason = " ".join(str(error).split()).rstrip(".")
    # It goes on about estimators of its own that take holes.
    reason = re.sub(r"(contains NaN)\. .*", r"\1", reason)
    if len(reason) > 300:
        reason = reason[:300] + " ..."
    return InvalidInput(f"{reason}: {advice}")
