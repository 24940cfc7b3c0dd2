"""Spectra over consecutive numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy import fft

from mechnum.fourier.tables import DIMENSION, NUMBER, as_rows, centred, consecutive


def spectrum(rows: Any, numbers: Any = None) -> xr.Dataset:
    """How much of the rows each frequency holds (Zhou et al. 2024, section 4; Kantamneni &
    Tegmark 2025, section 4.1; Nanda et al. 2023, section 4.1).

    The power of a frequency is the squared length of the rows' component along its cosine and sine
    of norm 1, summed over dimensions. The constant (DC) is apart, and no share counts it: it
    changes with the centring of the unembedding, while the others do not.

    Args:
        rows, numbers: as `mechnum.fourier.as_rows` reads them; the numbers must be consecutive.

    Returns:
        Over (..., frequency), frequency k = 1 … N/2 in waves over the N numbers, with the
        coordinate `period` = N/k: `power`, and `share` of the power of all frequencies, NaN where
        the rows of all numbers are the same. `dc` over the remaining dimensions, the power of the
        constant. dc + Σ power is the squared length of the rows (Parseval).

    Raises:
        InvalidInput: on numbers with holes, which it names, on duplicates, and on fewer than 3.
    """
    rows = consecutive(as_rows(rows, numbers))
    n = rows.sizes[NUMBER]
    frequency = np.arange(1, n // 2 + 1)
    lead = rows.dims[:-2]
    shape = tuple(rows.sizes[dim] for dim in lead)
    power, dc = np.empty((*shape, len(frequency))), np.empty(shape)
    for place in np.ndindex(shape):
        table = np.asarray(rows.values[place], dtype=np.float64)
        dc[place] = n * np.sum(table.mean(axis=0) ** 2)
        power[place] = power_of(centred(table))
    return xr.Dataset(
        {
            "power": ((*lead, "frequency"), power),
            "share": ((*lead, "frequency"), shares(power)),
            "dc": (lead, dc),
        },
        coords={
            **{name: coord for name, coord in rows.coords.items() if not _of_rows(coord)},
            "frequency": frequency,
            "period": ("frequency", n / frequency),
        },
        attrs={
            **rows.attrs,
            "n_numbers": n,
            "first": int(rows[NUMBER].values[0]),
            "n_dimensions": rows.sizes[DIMENSION],
        },
    )


def power_of(table: Float[np.ndarray, "*stack number d"]) -> Float[np.ndarray, "*stack frequency"]:
    """Squared length of the component at each frequency k = 1 … N/2."""
    n = table.shape[-2]
    transformed = fft.rfft(table, axis=-2)
    power = (np.abs(transformed) ** 2).sum(axis=-1)[..., 1:] / n
    # Each frequency but the Nyquist one stands for a pair of conjugate bins.
    power[..., : (n - 1) // 2] *= 2
    return power


def shares(power: Float[np.ndarray, "*stack frequency"]) -> Float[np.ndarray, "*stack frequency"]:
    """Power as a share of its sum; NaN where there is none."""
    total = power.sum(axis=-1, keepdims=True)
    return np.divide(power, total, out=np.full_like(power, np.nan), where=total > 0)


def power_by_frequency(rows: Float[np.ndarray, "number d"]) -> Float[np.ndarray, " frequency"]:
    """`spectrum`'s share at k = 1 … N/2, for row i that belongs to number i of 0 … N − 1."""
    return shares(power_of(centred(rows)))


def strongest_frequencies(
    rows: Float[np.ndarray, "number d"], n: int
) -> Int[np.ndarray, " frequency"]:
    """The `n` frequencies that hold most power, strongest first."""
    return 1 + np.argsort(power_by_frequency(rows))[::-1][:n]


def key_frequencies(rows: Float[np.ndarray, "number d"]) -> Int[np.ndarray, " frequency"]:
    """The frequencies with more than twice the power of a flat spectrum, strongest first."""
    share = power_by_frequency(rows)
    return strongest_frequencies(rows, int((share > 2 / len(share)).sum()))


def _of_rows(coord: xr.DataArray) -> bool:
    return bool({NUMBER, DIMENSION} & set(coord.dims))
