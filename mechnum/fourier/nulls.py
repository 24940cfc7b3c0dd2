"""Is a peak more than chance? Spectra of rows that have nothing to do with their numbers."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from jaxtyping import Float32, Float64
from scipy import fft

from mechnum.errors import InvalidInput
from mechnum.fourier.spectra import shares, spectrum
from mechnum.fourier.tables import NUMBER, as_rows, centred, consecutive
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.progress import track

NullKind = Literal["shuffled", "gaussian"]
ALPHA = 0.05
BAND = (0.025, 0.975)
_COLUMNS = ("p", "p_family", "null_mean", "null_low", "null_high")
# Inner products of all pairs of numbers and spectra of chance that are held at a time.
_HELD_VALUES = 40_000_000
_CACHED_VALUES = 500_000
_TIE = 1e-6  # The precision of the spectra of chance.


def spectrum_test(
    rows: Any,
    numbers: Any = None,
    null: NullKind = "shuffled",
    draws: int = 1000,
    seed: int = 0,
) -> xr.Dataset:
    """`spectrum`, and how likely chance makes each share as large.

    A share's p-value is how often rows without any order reach it; the family-wise one is how often
    their largest share of any frequency does (Westfall & Young 1993, single step), so that "there
    is a spike at k" is one claim over all frequencies of a table. A code that changes smoothly with
    the number, as a linear one does, is no chance either: its power lies at long periods.

    Costs, for each table of N numbers and each draw, N²/2 additions whatever its width, since
    shuffles of the rows act on the N × N inner products; the Gaussian null costs N²/2 exponentials
    a draw for all tables together. 1000 numbers × 4096 dimensions × 1000 draws take a few seconds
    a table on one core and 20 MB beside the rows.

    Args:
        rows, numbers: as `spectrum` takes them.
        null: "shuffled" gives the rows to the numbers at random, which is exact; "gaussian" draws
            independent Gaussian rows of the same covariance over dimensions.
        draws: how many times.
        seed: the same seed gives the same numbers; all tables of one call share their draws.

    Returns:
        `spectrum`'s Dataset with, over (..., frequency), `p`, `p_family`, `null_mean`, `null_low`
        and `null_high` (the central 95 % of shares under the null), and `family_high` over the
        remaining dimensions, the share that 5 % of largest shares exceed. NaN where the rows of all
        numbers are the same.

    Raises:
        InvalidInput: as `spectrum`, on an unknown null, on fewer than 1 draw and on a
            negative seed.
    """
    if null not in get_args(NullKind):
        raise InvalidInput(f"unknown null {null!r}: use 'shuffled' or 'gaussian'")
    positive_integer("draws", draws)
    sequence = seed_sequence(seed)
    rows = consecutive(as_rows(rows, numbers))
    found = spectrum(rows)
    share = found["share"].values.reshape(-1, found.sizes["frequency"])
    tables = rows.values.reshape(len(share), *rows.shape[-2:])
    columns = {name: np.full(share.shape, np.nan) for name in _COLUMNS}
    family_high = np.full(len(share), np.nan)
    n = rows.sizes[NUMBER]
    size = max(1, _HELD_VALUES // (n * n + draws * n // 2))
    for start in range(0, len(tables), size):
        part = slice(start, start + size)
        generator = np.random.default_rng(sequence)
        drawn = _DRAWN[null](_inner_products(tables[part]), draws, generator)
        for index, own in enumerate(drawn, start):
            if np.isfinite(own).all():
                largest = own.max(axis=1)
                family_high[index] = np.quantile(largest, 1 - ALPHA)
                for name, values in _compared(share[index], own, largest).items():
                    columns[name][index] = values
    shape = found["dc"].shape
    return found.assign(
        {
            name: (found["share"].dims, v.reshape(found["share"].shape))
            for name, v in columns.items()
        }
        | {"family_high": (found["dc"].dims, family_high.reshape(shape))}
    ).assign_attrs(null=null, draws=draws, null_seed=seed)


def _shuffled(
    products: Float64[np.ndarray, "table n n"], draws: int, generator: np.random.Generator
) -> Float32[np.ndarray, "table draw frequency"]:
    """Shares of rows in random order.

    The power at k is the transform of r(t) = Σ rₙ·rₙ₊ₜ around the circle of numbers, and a shuffle
    of the rows picks other inner products.
    """
    n = products.shape[1]
    half = n // 2 + 1
    shifted = (np.arange(half)[:, None] + np.arange(n)) % n
    found = np.empty((len(products), draws, n // 2), dtype=np.float32)
    for some in track(_parts(draws, n * half), "spectra of chance"):
        orders = generator.permuted(np.tile(np.arange(n), (some.stop - some.start, 1)), axis=1)
        pairs = orders[:, None, :] * n + orders[:, shifted]
        for table, own in enumerate(products):
            around = np.take(own.ravel(), pairs).sum(axis=-1)
            power = 2 * fft.hfft(around, n, axis=-1)[:, 1:half]
            if n % 2 == 0:
                power[:, -1] /= 2
            found[table, some] = shares(power)
    return found


def _gaussian(
    products: Float64[np.ndarray, "table n n"], draws: int, generator: np.random.Generator
) -> Float32[np.ndarray, "table draw frequency"]:
    """Shares of independent Gaussian rows with the covariance of each table.

    Along each principal axis the coefficients of white noise are white: the power at k is a sum
    over axes of variance × χ² with one degree of freedom for each wave of k.
    """
    n = products.shape[1]
    half = n // 2
    variances = np.linalg.eigvalsh(products)[:, 1:].clip(0)
    found = np.empty((len(products), draws, half), dtype=np.float32)
    for some in track(_parts(draws, n * half), "spectra of chance"):
        squares = 2 * generator.standard_exponential((some.stop - some.start, half, n - 1))
        if n % 2 == 0:
            squares[:, -1] = generator.standard_normal(squares[:, -1].shape) ** 2
        found[:, some] = shares(np.moveaxis(squares @ variances.T, -1, 0))
    return found


def _parts(draws: int, values: int) -> list[slice]:
    """Draws a time, so few that their values stay in the cache, which is three times as fast."""
    size = max(1, _CACHED_VALUES // values)
    return [slice(start, min(start + size, draws)) for start in range(0, draws, size)]


def _inner_products(tables: np.ndarray) -> Float64[np.ndarray, "table n n"]:
    """Of the centred rows of each table."""
    return np.stack([spread @ spread.T for spread in map(centred, tables)])


def _compared(
    share: Float64[np.ndarray, " frequency"],
    drawn: Float32[np.ndarray, "draw frequency"],
    largest: Float32[np.ndarray, " draw"],
) -> dict[str, Float64[np.ndarray, " frequency"]]:
    """p-values and the band of one table; a draw that ties, rounding apart, reaches."""
    reach = share * (1 - _TIE)
    low, high = np.quantile(drawn.astype(np.float64), BAND, axis=0)
    return {
        "p": (1 + (drawn >= reach).sum(axis=0)) / (1 + len(drawn)),
        "p_family": (1 + (largest[:, None] >= reach).sum(axis=0)) / (1 + len(drawn)),
        "null_mean": drawn.mean(axis=0, dtype=np.float64),
        "null_low": low,
        "null_high": high,
    }


_DRAWN = {"shuffled": _shuffled, "gaussian": _gaussian}
