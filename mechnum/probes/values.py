"""Numbers that probes read: what may be one, and how rows are split by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from mechnum.errors import InvalidInput
from mechnum.inputs import refused, seed_sequence, to_numpy

_ADVICE = "give finite states [row, d] and one whole number of at least 0 for each"
_LARGEST = 2**53  # From here on not every whole number is a float64.
_MOST_CANDIDATES = 1_000_000


def states_and_values(
    probe: BaseEstimator, states: Any, values: Any
) -> tuple[Float[np.ndarray, "row d"], Int[np.ndarray, " row"]]:
    """Checked states, float32 ones untouched, and the number of each row; the probe keeps d.

    Raises:
        InvalidInput: if one is empty, not finite, not numeric or the same in all rows, if the
            lengths differ, and on numbers that are not whole or below 0.
    """
    try:
        states, values = validate_data(
            probe,
            to_numpy(states),
            to_numpy(values),
            dtype=[np.float64, np.float32],
            y_numeric=True,
        )
    except (ValueError, TypeError) as error:
        raise refused(error, _ADVICE) from error
    states, values = np.asarray(states), whole_numbers(values)
    if len(values) == 1:
        raise InvalidInput("n_samples=1 state tells nothing: give states of two numbers or more")
    if not np.ptp(values):
        raise InvalidInput(f"{values[0]} is the only number: give states of two or more")
    if not np.ptp(states, axis=0).any():
        raise InvalidInput("all states are the same: give states that differ")
    return states, values


def known_states(probe: BaseEstimator, states: Any) -> Float[np.ndarray, "row d"]:
    """Checked states of the width that the probe was fitted to.

    Raises:
        InvalidInput: if they are empty, not finite, not numeric or of another width.
    """
    try:
        found = validate_data(probe, to_numpy(states), dtype=[np.float64, np.float32], reset=False)
    except (ValueError, TypeError) as error:
        raise refused(error, _ADVICE) from error
    return np.asarray(found)


def whole_numbers(values: Any) -> Int[np.ndarray, " row"]:
    """Values [row] as integers.

    Raises:
        InvalidInput: if they are empty, not numeric, not whole, below 0 or too large.
    """
    try:
        flat = column_or_1d(to_numpy(values))
        array = check_array(flat, ensure_2d=False, dtype="numeric", input_name="values")
    except (ValueError, TypeError) as error:
        raise refused(error, _ADVICE) from error
    wrong = (array < 0) | (array != np.floor(array)) | (array >= _LARGEST)
    if wrong.any():
        raise InvalidInput(
            f"{array[wrong][0]} is not a number that probes read: give whole numbers from 0 on"
        )
    return array.astype(np.int64)


def numbers_of_states(values: Any, n_states: int) -> Int[np.ndarray, " row"]:
    """`whole_numbers`, one for each state: numpy would compare a single one with all of them.

    Raises:
        InvalidInput: as `whole_numbers`, and on more or fewer values than states.
    """
    found = whole_numbers(values)
    if len(found) != n_states:
        raise InvalidInput(f"{n_states} states and {len(found)} values: give one value a state")
    return found


def candidates(numbers: Any, values: Int[np.ndarray, " row"]) -> Int[np.ndarray, " number"]:
    """The numbers that compete, in order: those asked for, or all between the extremes of `values`.

    Raises:
        InvalidInput: if a value is not among them, or if there are more than a million.
    """
    if numbers is None:
        low, high = int(values.min()), int(values.max())
        if high - low >= _MOST_CANDIDATES:
            raise InvalidInput(
                f"{high - low + 1} numbers lie between {low} and {high}, too many to compete: say "
                "which do with `numbers`"
            )
        found = np.arange(low, high + 1)
    else:
        found = np.unique(whole_numbers(numbers))
    if not (known := np.isin(values, found)).all():
        raise InvalidInput(
            f"{values[~known][0]} is not among the {len(found)} numbers that compete: add it to "
            "`numbers`, or leave its rows out"
        )
    return found


def value_split(
    values: Any, shares: Sequence[float] = (0.9, 0.05, 0.05), seed: int = 0
) -> tuple[Int[np.ndarray, " _"], ...]:
    """Rows of each part, such as training, validation and test; no number is in two of them.

    A split by row would let a probe learn a held-out row's number by heart from other rows of it.
    The distinct numbers are dealt at random, so a part has its share of the numbers, one at least;
    how many rows that is depends on them. Source: Štefánik et al. 2026 (arXiv 2510.26285), whose
    shares are the defaults and who draw a part for each number, so that the shares vary.

    Args:
        values: the number of each row.
        shares: of each part; their sum is 1.

    Raises:
        InvalidInput: on shares that are not above 0 or do not sum to 1, on fewer distinct numbers
            than parts, on values that are no whole numbers, and on a negative seed.
    """
    numbers = whole_numbers(values)
    parts = np.asarray(shares, dtype=np.float64)
    if parts.ndim != 1 or not len(parts) or not (parts > 0).all() or abs(parts.sum() - 1) > 1e-9:
        raise InvalidInput(
            f"shares {tuple(shares)} do not make a whole: give shares above 0 with a sum of 1"
        )
    distinct, which = np.unique(numbers, return_inverse=True)
    if len(distinct) < len(parts):
        raise InvalidInput(
            f"{len(distinct)} distinct numbers cannot be split in {len(parts)}: give more numbers"
        )
    ends = np.rint(np.cumsum(parts) * len(distinct)).astype(int)
    # Each part has a number at least, and leaves one for each that follows.
    for index in range(len(ends)):
        least = (ends[index - 1] if index else 0) + 1
        ends[index] = min(max(ends[index], least), len(distinct) - (len(ends) - 1 - index))
    part = np.searchsorted(ends, np.arange(len(distinct)), side="right")
    dealt = np.random.default_rng(seed_sequence(seed)).permutation(part)[which.reshape(-1)]
    return tuple(np.flatnonzero(dealt == index) for index in range(len(parts)))
