"""Shares of rows that are read right, with intervals over the numbers that the rows are of."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float64, Int
from scipy.stats import bootstrap

from mechnum.inputs import seed_sequence
from mechnum.intervals import CONFIDENCE, RESAMPLES


def accuracy_by_value(
    right: Bool[np.ndarray, " row"],
    values: Int[np.ndarray, " row"],
    seed: int = 0,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> xr.Dataset:
    """The share of rows that are right, with a bootstrap interval over numbers.

    Returns:
        `accuracy`, `low` and `high`. Over `value`: `right`, the share of its rows, and `n`, how
        many there are.

    Raises:
        InvalidInput: on a negative seed.
    """
    distinct, which = np.unique(values, return_inverse=True)
    which = which.reshape(-1)
    n = np.bincount(which)
    count = np.bincount(which, weights=right)
    low, high = value_interval(count, n.astype(np.float64), seed, confidence, resamples)
    return xr.Dataset(
        {
            "accuracy": count.sum() / n.sum(),
            "low": low,
            "high": high,
            "right": ("value", count / n),
            "n": ("value", n),
        },
        coords={"value": distinct},
        attrs={"seed": seed, "confidence": confidence},
    )


def value_interval(
    right: Float64[np.ndarray, " value"],
    n: Float64[np.ndarray, " value"],
    seed: int,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Percentile bootstrap over numbers of the share of rows that are right; NaN for one number."""
    if len(n) < 2:
        return np.nan, np.nan
    found = bootstrap(
        (right, n),
        lambda right, n, axis: right.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=resamples,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed_sequence(seed)),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)
