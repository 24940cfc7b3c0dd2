"""Means over pairs: intervals, p-values, and false discoveries among many nodes."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.stats import false_discovery_control

from mechnum.intervals import (
    CONFIDENCE,
    RESAMPLES,
    by_cell,
    chunks,
    mean_interval,
    tabulated,
)


def summarise(
    values: xr.DataArray,
    dim: str = "pair",
    seed: int = 0,
    confidence: float = CONFIDENCE,
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
        value of `p` among all cells (Benjamini & Hochberg 1995). Cells that are exactly 0 for every
        pair, such as direct effects before the last position, are no hypotheses: their p and q are
        1. NaN where a cell has no value; one value has no interval. With r random flips no p is
        below 1 / (r + 1), so that among very many cells one alone cannot reach a small q: raise
        `resamples`, or choose cells on other pairs first.

    Raises:
        MechnumError: on a dimension that is not there or has no entry, on a confidence that is no
            share, and on fewer than 1 resample.
    """
    table = mean_interval(values, dim, seed, confidence, resamples)
    data = by_cell(values, dim)
    # The first stream drew the resamples.
    _, stream = np.random.SeedSequence(seed).spawn(2)
    signs, exact = _signs(np.random.default_rng(stream), len(data), resamples)
    p = np.full(data.shape[1], np.nan)
    for part in chunks(data.shape[1], len(signs)):
        present = np.isfinite(data[:, part])
        tested = present.any(0)
        p[part][tested] = _sign_flip(np.where(present, data[:, part], 0.0)[:, tested], signs, exact)
    q = false_discoveries(p, (np.nan_to_num(data) == 0).all(0))
    return table.assign(tabulated({"p": p, "q": q}, values, dim))


def false_discoveries(
    p: Float[np.ndarray, "*cell"], zero: Bool[np.ndarray, "*cell"]
) -> Float[np.ndarray, "*cell"]:
    """The Benjamini-Hochberg value of each p among all of them; NaN stays NaN.

    Args:
        zero: cells that are exactly 0, which are no hypotheses: their q is 1.
    """
    q = np.where(np.isfinite(p), 1.0, np.nan)
    tested = np.isfinite(p) & ~zero
    if tested.any():
        q[tested] = false_discovery_control(p[tested], method="bh")
    return q


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
    rounding = 1e-12 * np.abs(values).sum(0)
    reached = np.abs(signs @ values) >= observed - rounding
    count = reached.sum(0)
    return count / len(signs) if exact else (count + 1) / (len(signs) + 1)
