"""Means over pairs with bootstrap intervals."""

from __future__ import annotations

import warnings

import numpy as np
import xarray as xr
from scipy.stats import DegenerateDataWarning, bootstrap

CONFIDENCE = 0.95
RESAMPLES = 2000
BATCH_VALUES = 4_000_000  # Values drawn at once: all resamples of a large table take gigabytes.
INTERVAL_WORDS = "95 % percentile bootstrap over pairs, for each value by itself"


def mean_interval(values: xr.DataArray, dim: str = "pair", seed: int = 0) -> xr.Dataset:
    """Mean over `dim` with a 95 % percentile bootstrap interval (2,000 resamples of `dim`).

    Returns a Dataset with `mean`, `low`, `high` and `n` (the number of values that are not NaN)
    over the remaining dimensions. All cells share the same resamples, so intervals that are
    compared with each other see the same pairs. Missing values are left out; a cell with none
    left is NaN, and a cell with one value has a mean and no interval.
    Source: Efron 1979, percentile method, as in scipy.stats.bootstrap.
    """
    ordered = values.transpose(dim, ...)
    data = np.asarray(ordered.values, dtype=np.float64)
    counts = np.isfinite(data).sum(axis=0)
    low = np.full(data.shape[1:], np.nan)
    high = low.copy()
    if data.shape[0] > 1:
        with warnings.catch_warnings():
            # Cells without values have no interval, which is what they get.
            warnings.simplefilter("ignore", DegenerateDataWarning)
            result = bootstrap(
                (data,),
                _mean,
                axis=0,
                n_resamples=RESAMPLES,
                confidence_level=CONFIDENCE,
                method="percentile",
                batch=max(1, BATCH_VALUES // max(data.size, 1)),
                rng=np.random.default_rng(np.random.SeedSequence(seed)),
            )
        enough = counts > 1
        low = np.where(enough, result.confidence_interval.low, np.nan)
        high = np.where(enough, result.confidence_interval.high, np.nan)
    rest = ordered.isel({dim: 0}, drop=True)
    return xr.Dataset(
        {
            "mean": rest.copy(data=_mean(data, axis=0)),
            "low": rest.copy(data=low),
            "high": rest.copy(data=high),
            "n": rest.copy(data=counts),
        }
    )


def _mean(data: np.ndarray, axis: int = -1) -> np.ndarray:
    if not np.isnan(data).any():
        return data.mean(axis=axis)
    with warnings.catch_warnings():
        # A cell without any value is NaN by design: the node or the pair is impossible.
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(data, axis=axis)
