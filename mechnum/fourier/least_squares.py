"""Amplitudes at chosen periods, by least squares on any integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64

from mechnum.columns import TOLERANCE, independent_columns
from mechnum.errors import InvalidInput
from mechnum.fourier.tables import DIMENSION, NUMBER, as_rows, centred


def amplitudes(
    rows: Any, periods: Sequence[float | int], numbers: Any = None, linear: bool = False
) -> xr.Dataset:
    """The wave of each period in the rows: one joint fit of a constant and all the waves.

    A spectrum has the periods N/k alone; here any period can be asked for, on numbers with holes
    and with several rows for a number.

    Args:
        rows, numbers: as `mechnum.fourier.as_rows` reads them.
        periods: T ≥ 2. On integers a shorter period looks like a longer one, which is refused.
        linear: fit a linear trend as well, which long periods would take for a part of theirs.

    Returns:
        Over (..., period, dimension): `amplitude` A and `phase` φ in radians of A·cos(2πn/T − φ).
        Over (..., period): `share`, how much of the rows' variance the fit loses without this
        period. For periods that divide the range these shares are those of `spectrum`; others
        overlap, and what two share counts for neither. Over the remaining dimensions: `r2` of the
        whole fit; NaN, as the shares, where the rows of all numbers are the same. Coordinate
        `on_bin` says whether N/T is whole for consecutive numbers from first to last, N of them.
        Attribute `dropped` names the columns that are zero or spanned by others, as sin(T=2).

    Raises:
        InvalidInput: on periods below 2, given twice, or that the numbers cannot tell apart, and on
            fewer numbers than the fit has columns.
    """
    rows = as_rows(rows, numbers)
    values = rows[NUMBER].values
    checked = checked_periods(periods)
    matrix, owner, names = _design(values, checked, linear)
    distinct = len(np.unique(values))
    nonzero = int(np.sum(np.sqrt(np.mean(matrix**2, axis=0)) > TOLERANCE))
    if distinct < nonzero:
        raise InvalidInput(
            f"{distinct} distinct numbers cannot fix {nonzero} columns: give more numbers, or "
            "fewer periods"
        )
    keep = independent_columns(matrix)
    for period in (p for i, p in enumerate(checked) if not keep[owner == i].any()):
        raise InvalidInput(
            f"period {period:g} cannot be told from the constant and the periods before it on "
            "these numbers: leave it out, or give more numbers"
        )
    lead = rows.dims[:-2]
    shape, d = tuple(rows.sizes[dim] for dim in lead), rows.sizes[DIMENSION]
    amplitude, phase = (np.empty((*shape, len(checked), d)) for _ in range(2))
    share, r2 = np.full((*shape, len(checked)), np.nan), np.full(shape, np.nan)
    for place in np.ndindex(shape):
        table = centred(rows.values[place])
        coefficients = np.zeros((len(keep), d))
        coefficients[keep] = np.linalg.lstsq(matrix[:, keep], table, rcond=None)[0]
        for i in range(len(checked)):
            cosine, sine = coefficients[owner == i]
            amplitude[(*place, i)], phase[(*place, i)] = (
                np.hypot(cosine, sine),
                np.arctan2(sine, cosine),
            )
        total = np.sum(table**2)
        if total > 0:
            left = _left(matrix[:, keep], table)
            r2[place] = 1 - left / total
            for i in range(len(checked)):
                share[(*place, i)] = (_left(matrix[:, keep & (owner != i)], table) - left) / total
    length = int(np.ptp(values)) + 1
    return xr.Dataset(
        {
            "amplitude": ((*lead, "period", DIMENSION), amplitude),
            "phase": ((*lead, "period", DIMENSION), phase),
            "share": ((*lead, "period"), share),
            "r2": (lead, r2),
        },
        coords={
            **{name: coord for name, coord in rows.coords.items() if NUMBER not in coord.dims},
            "period": np.array(checked),
            "on_bin": ("period", [_is_bin(length, period) for period in checked]),
        },
        attrs={
            **rows.attrs,
            "linear": str(linear),
            "dropped": ", ".join(n for n, k in zip(names, keep, strict=True) if not k),
            "n_numbers": distinct,
        },
    )


def alias_of(period: float | int) -> float:
    """The period of at least 2 that looks the same on integers; infinite for a constant."""
    turns = (1 / period) % 1
    turns = min(turns, 1 - turns)
    return np.inf if turns < TOLERANCE else 1 / turns


def checked_periods(periods: Sequence[float | int]) -> tuple[float, ...]:
    """Periods as floats, in the order given.

    Raises:
        InvalidInput: if there are none, on periods that are not finite or below 2, and on one that
            is there twice.
    """
    try:
        checked = tuple(float(period) for period in periods)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"periods {periods!r} are not numbers: give for example (2, 5, 10, 100)"
        ) from error
    if not checked:
        raise InvalidInput("there are no periods: give at least one, such as 10")
    for period in checked:
        if not (np.isfinite(period) and period > 0):
            raise InvalidInput(f"period {period:g} is not a finite number above 0: leave it out")
        if period < 2:
            alias = alias_of(period)
            same = f"period {alias:g}" if np.isfinite(alias) else "a constant"
            raise InvalidInput(
                f"on integers a period of {period:g} is the same as {same}: give periods of 2 or "
                "more"
            )
    if len(set(checked)) < len(checked):
        twice = next(period for period in checked if checked.count(period) > 1)
        raise InvalidInput(f"period {twice:g} is there twice: give each period once")
    return checked


def _design(
    numbers: np.ndarray, periods: Sequence[float], linear: bool
) -> tuple[Float64[np.ndarray, "row column"], np.ndarray, list[str]]:
    """The columns, the index of the period that each belongs to (−1 for none), and their names."""
    columns, owner, names = [np.ones(len(numbers))], [-1], ["constant"]
    if linear:
        low, high = numbers.min(), numbers.max()
        columns.append((2 * numbers - low - high) / max(high - low, 1))
        owner.append(-1)
        names.append("linear")
    for index, period in enumerate(periods):
        # Whole turns are taken out first: a product with π of a large number loses its end.
        angle = 2 * np.pi * ((numbers / period) % 1)
        columns += [np.cos(angle), np.sin(angle)]
        owner += [index, index]
        names += [f"cos(T={period:g})", f"sin(T={period:g})"]
    return np.column_stack(columns), np.array(owner), names


def _left(matrix: np.ndarray, table: np.ndarray) -> float:
    """Squared length that a fit of the columns leaves."""
    directions = np.linalg.qr(matrix)[0]
    return float(np.sum((table - directions @ (directions.T @ table)) ** 2))


def _is_bin(length: int, period: float) -> bool:
    waves = length / period
    return bool(round(waves) >= 1 and abs(waves - round(waves)) < TOLERANCE)
