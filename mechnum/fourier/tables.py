"""Tables of rows, each the vector of a number, as every analysis here takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64

from mechnum.errors import InvalidInput
from mechnum.inputs import to_numpy
from mechnum.tasks.numbers import some

NUMBER, DIMENSION = "number", "dimension"
_ROUNDING = 1e-26  # Share of the squared length that the mean of equal rows leaves in float64.


def as_rows(rows: Any, numbers: Any = None) -> xr.DataArray:
    """Rows as an array over (..., number, dimension), each with an integer as its number.

    Args:
        rows: a DataArray with the dimension `number` and, unless each number has a single value,
            `dimension`; any others (layers, neurons) are kept and analysed one by one. Or an array
            or tensor [number], [number, d] or [layer, number, d].
        numbers: [number], the integers; those of the DataArray, or 0, 1, 2, ..., where left out.

    Raises:
        InvalidInput: on rows that are empty or not finite, and on numbers that are no integers or
            not one for each row.
    """
    if not isinstance(rows, xr.DataArray):
        rows = np.asarray(to_numpy(rows))
        if not 1 <= rows.ndim <= 3:
            raise InvalidInput(
                f"rows have shape {rows.shape}: give [number], [number, d] or [layer, number, d]"
            )
        dims = ((NUMBER,), (NUMBER, DIMENSION), ("layer", NUMBER, DIMENSION))[rows.ndim - 1]
        rows = xr.DataArray(rows, dims=dims)
    if NUMBER not in rows.dims:
        raise InvalidInput(f"rows have no dimension 'number' in {rows.dims}: rename one to it")
    if DIMENSION not in rows.dims:
        rows = rows.expand_dims(DIMENSION, axis=-1)
    if numbers is not None or NUMBER not in rows.coords:
        numbers = np.arange(rows.sizes[NUMBER]) if numbers is None else to_numpy(numbers)
        if np.shape(numbers) != (rows.sizes[NUMBER],):
            raise InvalidInput(
                f"numbers have shape {np.shape(numbers)} for {rows.sizes[NUMBER]} rows: "
                "give one number for each row"
            )
        rows = rows.drop_vars(NUMBER, errors="ignore").assign_coords({NUMBER: numbers})
    rows = rows.assign_coords({NUMBER: (NUMBER, _integers(rows[NUMBER].values))})
    if not rows.size:
        raise InvalidInput(f"rows have sizes {dict(rows.sizes)}: give at least one value")
    bad = ~np.isfinite(rows).all([dim for dim in rows.dims if dim != NUMBER]).values
    if bad.any():
        raise InvalidInput(
            f"the rows of the numbers {some(rows[NUMBER].values[bad].tolist())} are not finite: "
            "leave these numbers out, or load the model with dtype='float32'"
        )
    return rows.transpose(..., NUMBER, DIMENSION)


def consecutive(rows: xr.DataArray) -> xr.DataArray:
    """The rows in the order of their numbers, which must be consecutive.

    Raises:
        InvalidInput: on numbers that are there twice or missing in between.
    """
    numbers, counts = np.unique(rows[NUMBER].values, return_counts=True)
    if (counts > 1).any():
        raise InvalidInput(
            f"the numbers {some(numbers[counts > 1].tolist())} are there more than once: give one "
            "row for each, such as their mean"
        )
    missing = np.setdiff1d(np.arange(numbers[0], numbers[-1] + 1), numbers)
    if len(missing):
        raise InvalidInput(
            f"a spectrum needs consecutive numbers, and {some(missing.tolist())} are missing from "
            f"{numbers[0]} to {numbers[-1]}: choose a range without holes, or fit amplitudes at "
            "chosen periods by least squares, which may have holes"
        )
    if len(numbers) < 3:
        raise InvalidInput(f"{len(numbers)} numbers have no spectrum: give 3 or more")
    # Sorting copies, and these are the largest arrays there are.
    return rows if rows.indexes[NUMBER].is_monotonic_increasing else rows.sortby(NUMBER)


def centred(rows: Any) -> Float64[np.ndarray, "number d"]:
    """One table of rows in float64, without their mean; 0 where they differ by rounding alone."""
    values = np.asarray(rows, dtype=np.float64)
    spread = values - values.mean(axis=0)
    if np.sum(spread**2) <= _ROUNDING * np.sum(values**2):
        spread[:] = 0
    return spread


def _integers(numbers: Any) -> np.ndarray:
    try:
        values = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("the numbers are no integers: give one integer a row") from error
    bad = ~np.isfinite(values) | (values != np.round(values))
    if bad.any():
        raise InvalidInput(
            f"{values[bad][0]:g} is no integer: give integers, waves over others have no common "
            "spectrum"
        )
    return values.astype(np.int64)
