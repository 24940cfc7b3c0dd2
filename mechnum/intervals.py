"""Means over pairs with bootstrap intervals, for tables of any size; shares with Wilson's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.stats import norm

from mechnum.errors import MechnumError

CONFIDENCE = 0.95
RESAMPLES = 2000
CHUNK_VALUES = 4_000_000  # draws × cells at a time: for all neurons of a model they fill gigabytes


def mean_interval(
    values: xr.DataArray,
    dim: str = "pair",
    seed: int = 0,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> xr.Dataset:
    """Mean over `dim` of every cell, with a percentile bootstrap interval over `dim`.

    All cells share the same resamples, so intervals that are compared with each other see the same
    pairs. Values that are not finite are left out; a cell with none left is NaN, and a cell with
    one has a mean and no interval. Source: Efron 1979, as in scipy.stats.bootstrap.

    Returns:
        `mean`, `low`, `high` and `n` (the number of values) over the remaining dimensions.

    Raises:
        MechnumError: on a dimension that is not there or has no entry, on a confidence that is no
            share, and on fewer than 1 resample.
    """
    if not isinstance(values, xr.DataArray):
        raise MechnumError(
            f"a {type(values).__name__} has no named dimensions: give one variable of a result, "
            "such as effects.total"
        )
    if not 0 < confidence < 1 or resamples < 1:
        raise MechnumError(
            f"no interval has a confidence of {confidence} from {resamples} resamples: give a "
            "share below 1, and 1 resample or more"
        )
    data = by_cell(values, dim)
    (stream,) = np.random.SeedSequence(seed).spawn(1)
    # A resample of pairs is how often it has each: a mean of it is a product.
    counts = np.random.default_rng(stream).multinomial(
        len(data), np.full(len(data), 1 / len(data)), size=resamples
    )
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    mean, low, high = (np.full(data.shape[1], np.nan) for _ in range(3))
    n = np.zeros(data.shape[1], dtype=np.int64)
    for part in chunks(data.shape[1], resamples):
        present = np.isfinite(data[:, part])
        filled = np.where(present, data[:, part], 0.0)
        n[part] = present.sum(0)
        np.divide(filled.sum(0), n[part], out=mean[part], where=n[part] > 0)
        several = n[part] > 1
        low[part][several], high[part][several] = _quantiles(
            filled[:, several], present[:, several], counts.astype(np.float64), tails
        )
    return tabulated({"mean": mean, "low": low, "high": high, "n": n}, values, dim)


def by_cell(values: xr.DataArray, dim: str) -> Float[np.ndarray, "pair cell"]:
    """The values with `dim` first and all other dimensions in one; no copy where it is first.

    Raises:
        MechnumError: on a dimension that is not there or has no entry.
    """
    if dim not in values.dims:
        raise MechnumError(f"there is no dimension {dim!r} in {values.dims}: name another")
    if not values.sizes[dim]:
        raise MechnumError(f"dimension {dim!r} has no entry: give values of one pair or more")
    ordered = np.asarray(values.transpose(dim, ...).values, dtype=np.float64)
    return ordered.reshape(len(ordered), -1)


def tabulated(cells: dict[str, np.ndarray], values: xr.DataArray, dim: str) -> xr.Dataset:
    """Numbers for each cell of `by_cell`, over the dimensions that the values had."""
    like = values.transpose(dim, ...).isel({dim: 0}, drop=True)
    return xr.Dataset(
        {name: like.copy(data=one.reshape(like.shape)) for name, one in cells.items()}
    )


def chunks(n_cells: int, n_draws: int) -> Iterator[slice]:
    """All cells, as many at a time as memory for their draws is meant to hold."""
    size = max(1, CHUNK_VALUES // n_draws)
    for first in range(0, n_cells, size):
        yield slice(first, min(first + size, n_cells))


def _quantiles(
    filled: Float[np.ndarray, "pair cell"],
    present: Bool[np.ndarray, "pair cell"],
    counts: Float[np.ndarray, "resample pair"],
    tails: tuple[float, float],
) -> Float[np.ndarray, "tail cell"]:
    """Quantiles of the resampled means of each cell."""
    # Cells first, so that a cell's resamples lie together.
    means = filled.T @ counts.T
    if present.all():
        means /= len(filled)
        return np.quantile(means, tails, axis=1, overwrite_input=True)
    weights = present.T.astype(np.float64) @ counts.T
    # A resample may miss all pairs that a cell has.
    missed = (weights == 0).any(1)
    with np.errstate(invalid="ignore"):
        means /= weights
    found = np.empty((len(tails), len(means)))
    found[:, ~missed] = np.quantile(means[~missed], tails, axis=1, overwrite_input=True)
    found[:, missed] = np.nanquantile(means[missed], tails, axis=1)
    return found


def share_interval(
    correct: Bool[np.ndarray, "*cell prompt"],
) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """Share of prompts that are correct, and its 95 % interval, which holds at 0 and 1 as well.

    Source: Wilson 1927, as in scipy.stats.binomtest.

    Returns:
        Share, low and high; NaN of no prompts.
    """
    n = correct.shape[-1]
    count = correct.sum(-1)
    share = np.asarray(count / n if n else np.full(count.shape, np.nan))
    return (share, *wilson(share, n))


def wilson(
    share: Float[np.ndarray, "*cell"], n: int
) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """Ends of the 95 % interval of a share (Wilson 1927).

    Args:
        n: independent observations behind the share; where they come in clusters, the number of
            clusters, which makes the interval wider than it need be and never narrower.

    Returns:
        Low and high; NaN of no observations.
    """
    if n == 0:
        return np.full(share.shape, np.nan), np.full(share.shape, np.nan)
    z = float(norm.ppf((1 + CONFIDENCE) / 2))
    centre = share + z**2 / (2 * n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    whole = 1 + z**2 / n
    # At shares of 0 and 1 an end is the share itself, which rounding would miss.
    low = np.where(share == 0, 0.0, (centre - half) / whole)
    return low, np.where(share == 1, 1.0, (centre + half) / whole)
