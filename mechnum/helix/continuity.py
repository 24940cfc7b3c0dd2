"""Whether the circle of numbers is continuous: numbers that no fit has seen lie in order on it.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 4, where the numbers that end in 3
are left out of the fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64
from scipy.stats import rankdata

from mechnum.errors import InvalidInput
from mechnum.helix.basis import check_periods
from mechnum.helix.estimators import Circle
from mechnum.inputs import numbers_with_states, positive_integer, value_means


def circle_continuity(
    numbers: Any,
    states: Any,
    period: float | int = 100,
    digit: int = 3,
    components: int = 100,
    permutations: int = 9999,
    seed: int = 0,
) -> xr.Dataset:
    """Project numbers on a circle that was fitted without them.

    The circle of `period` is fitted to the numbers whose last digit is not `digit`; the mean states
    of all numbers are projected on it.

    Args:
        numbers: [row], whole numbers.
        states: [row, d].
        components: principal components of the states that are fitted, at most.
        permutations: of the null, in which the held-out numbers trade their angles.
        seed: of the permutations.

    Returns:
        `coordinates` over (number, axis), axis "cos" and "sin", where the fitted circle has radius
        1; `angle` over number in degrees, beside `expected`, 360·(n mod T)/T; `held_out` over
        number. Attributes, all of the held-out numbers alone: `rank_agreement`, the circular rank
        correlation |mean exp(i(β − γ))| of the ranks of the angles and of the expected ones, as
        angles (Mardia 1975, in the direction of the fit; numbers a period apart are one point,
        their mean): 1 for the same cyclic order, about n^(−1/2) for none; `p`, the share of
        permutations with as much; `angle_error`, the mean distance in degrees from the expected
        angle, 90 by chance.

    Raises:
        InvalidInput: where numbers are not whole, fewer than 3 are held out or left to fit, or
            those that are held out lie at fewer than 4 places of the circle, which any order fits.
    """
    (checked,) = check_periods([period])
    positive_integer("permutations", permutations)
    numbers, states = numbers_with_states(numbers, states)
    if numbers.shape[1] != 1 or (numbers != np.round(numbers)).any():
        raise InvalidInput("the last digit is that of whole numbers: give one whole number a row")
    if digit not in range(10):
        raise InvalidInput(f"{digit} is no digit: give one of 0 to 9")
    held = np.abs(numbers[:, 0]) % 10 == digit
    values, means, _, _ = value_means(numbers, states)
    values = values[:, 0]
    outside = np.abs(values) % 10 == digit
    n_held = int(outside.sum())
    if n_held < 3 or len(values) - n_held < 3:
        raise InvalidInput(
            f"{n_held} of {len(values)} numbers end in {digit}: give three or more that do, and "
            "three or more that do not"
        )
    circle = Circle((checked,), components).fit(numbers[~held], states[~held])
    if len(circle.columns_) != 3:
        raise InvalidInput(
            f"period {checked:g} has no circle on these numbers ({', '.join(circle.dropped_)} is "
            "0): choose a longer one"
        )
    coordinates = circle.project(means)[:, 1:]
    angle = np.degrees(np.arctan2(coordinates[:, 1], coordinates[:, 0])) % 360
    expected = 360 * (values % checked) / checked
    places, at = np.unique(np.round(expected[outside], 9), return_inverse=True)
    if len(places) < 4:
        raise InvalidInput(
            f"the numbers that end in {digit} lie at {len(places)} places of a circle of period "
            f"{checked:g}, too few for an order: choose a longer period, such as 100"
        )
    points = np.stack([coordinates[outside][at == place].mean(0) for place in range(len(places))])
    agreement, p = _rank_agreement(
        np.degrees(np.arctan2(points[:, 1], points[:, 0])) % 360, places, permutations, seed
    )
    off = np.abs((angle - expected + 180) % 360 - 180)[outside]
    return xr.Dataset(
        {
            "coordinates": (("number", "axis"), coordinates),
            "angle": ("number", angle),
            "expected": ("number", expected),
            "held_out": ("number", outside),
        },
        coords={"number": values, "axis": ["cos", "sin"]},
        attrs={
            "period": checked,
            "digit": digit,
            "n_held_out": n_held,
            "rank_agreement": agreement,
            "p": p,
            "permutations": permutations,
            "angle_error": float(off.mean()),
            "seed": seed,
        },
    )


def _rank_agreement(
    angle: Float64[np.ndarray, " number"],
    expected: Float64[np.ndarray, " number"],
    permutations: int,
    seed: int,
) -> tuple[float, float]:
    """Circular rank correlation, and its p-value by permutations."""
    found, wanted = (np.exp(2j * np.pi * rankdata(side) / len(side)) for side in (angle, expected))
    observed = float(np.abs(np.mean(found * wanted.conj())))
    generator = np.random.default_rng(np.random.SeedSequence(seed))
    orders = generator.permuted(np.tile(np.arange(len(found)), (permutations, 1)), axis=1)
    drawn = np.abs(np.mean(found[orders] * wanted.conj(), axis=1))
    # A permutation that gives the same order counts, whatever its rounding.
    return observed, float((np.sum(drawn >= observed - 1e-12) + 1) / (permutations + 1))
