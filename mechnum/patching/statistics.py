"""Means over pairs: intervals, p-values, and false discoveries among many nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy.stats import false_discovery_control

from mechnum.errors import MechnumError

RESAMPLES = 2000
_CHUNK_VALUES = 8_000_000  # draws × cells at a time: all neurons of a large model fill no memory


def summarise(
    values: xr.DataArray,
    dim: str = "pair",
    seed: int = 0,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> xr.Dataset:
    """Mean over `dim` of every cell, with an interval and how likely chance makes it as large.

    Args:
        values: effects, say; NaN where a cell or one of its pairs has none.

    Returns:
        `mean`; `low` and `high`, the percentile bootstrap interval over pairs (Efron 1979), for
        which all cells share the resamples; `n`, the number of values; `p` of the two-sided
        sign-flip test that the mean is 0 (all 2ⁿ flips where these are no more than `resamples`,
        else as many at random, the observed one counted with them); `q`, the Benjamini-Hochberg
        value of `p` among all cells (Benjamini & Hochberg 1995). NaN where a cell has no value;
        one value has no interval.

    Raises:
        MechnumError: on a dimension that is not there.
    """
    if dim not in values.dims:
        raise MechnumError(f"there is no dimension {dim!r} in {values.dims}: name another")
    ordered = values.transpose(dim, ...)
    data = np.asarray(ordered.values, dtype=np.float64).reshape(len(ordered), -1)
    present = np.isfinite(data)
    n = present.sum(0)
    filled = np.where(present, data, 0.0)
    mean = np.divide(filled.sum(0), n, out=np.full(data.shape[1], np.nan), where=n > 0)
    streams = np.random.SeedSequence(seed).spawn(2)
    draws, flips = (np.random.default_rng(stream) for stream in streams)
    counts = draws.multinomial(len(data), np.full(len(data), 1 / len(data)), size=resamples)
    signs, exact = _signs(flips, len(data), resamples)
    low, high, p = (np.full(data.shape[1], np.nan) for _ in range(3))
    tail = 50 * (1 - confidence)
    for part in _chunks(np.flatnonzero(n), max(resamples, len(signs))):
        # A resample may miss all pairs that a cell has.
        with np.errstate(invalid="ignore"):
            means = (counts @ filled[:, part]) / (counts @ present[:, part].astype(float))
        low[part], high[part] = np.nanpercentile(means, [tail, 100 - tail], axis=0)
        p[part] = _sign_flip(filled[:, part], signs, exact)
    low[n < 2] = high[n < 2] = np.nan
    q = np.full_like(p, np.nan)
    tested = np.isfinite(p)
    if tested.any():
        q[tested] = false_discovery_control(p[tested], method="bh")
    like = ordered.isel({dim: 0}, drop=True)
    tables = {"mean": mean, "low": low, "high": high, "n": n, "p": p, "q": q}
    return xr.Dataset(
        {name: like.copy(data=cells.reshape(like.shape)) for name, cells in tables.items()}
    )


def _signs(
    generator: np.random.Generator, n: int, resamples: int
) -> tuple[Float[np.ndarray, "flip pair"], bool]:
    """All sign flips where they are few, else random ones; and whether they are all."""
    if 2**n <= resamples:
        bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return 1.0 - 2.0 * bits, True
    return generator.choice((-1.0, 1.0), size=(resamples, n)), False


def _sign_flip(
    values: Float[np.ndarray, "pair cell"], signs: Float[np.ndarray, "flip pair"], exact: bool
) -> Float[np.ndarray, " cell"]:
    observed = np.abs(values.sum(0))
    # A flip that gives the same sum in exact arithmetic counts, whatever its rounding.
    reached = np.abs(signs @ values) >= observed * (1 - 1e-9)
    count = reached.sum(0)
    return count / len(signs) if exact else (count + 1) / (len(signs) + 1)


def _chunks(cells: Int[np.ndarray, " cell"], n_draws: int) -> Iterator[Int[np.ndarray, " part"]]:
    size = max(1, _CHUNK_VALUES // n_draws)
    for first in range(0, len(cells), size):
        yield cells[first : first + size]
