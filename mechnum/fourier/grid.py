"""Waves over pairs (a, b): how much of a map over the pairs each frequency holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Float64
from scipy import fft

from mechnum.errors import InvalidInput
from mechnum.inputs import to_numpy
from mechnum.models.memory import batches

_ROUNDING = 1e-26  # Share of the squared length that the mean of equal values leaves in float64.


def block_energy(maps: Any) -> Float64[np.ndarray, "frequency *rest"]:
    """Share of each map's variance over the pairs that is a polynomial of one frequency.

    For k = 1 … p/2 it is the energy at {1, cos, sin}(2πka/p) ⊗ {1, cos, sin}(2πkb/p) without the
    constant, over the energy of the whole centred map (Nanda et al. 2023, section 4.2 and their
    code: the 3×3 blocks of a 2D Fourier transform).

    Args:
        maps: [p, p, *rest], one value for each pair (a, b) of 0 … p − 1.

    Returns:
        [p // 2, *rest]; row k − 1 is frequency k. NaN for maps that are constant. A wave in a
        alone or in b alone counts in one block only, so that shares sum to at most 1.

    Raises:
        InvalidInput: on maps that are not over p × p pairs with p ≥ 3, or not finite.
    """
    return _shares(maps, products=True)


def linear_energy(maps: Any) -> Float64[np.ndarray, "frequency *rest"]:
    """As `block_energy`, for cos and sin of a and of b alone: sums of a wave in a and one in b."""
    return _shares(maps, products=False)


def checked_maps(maps: Any, name: str = "maps") -> Float[np.ndarray, "p p *rest"]:
    """Maps over all pairs as a float array.

    Raises:
        InvalidInput: as `block_energy`.
    """
    values = np.asarray(to_numpy(maps))
    if values.ndim < 2 or values.shape[0] != values.shape[1] or values.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name} of shape {values.shape} are not over all pairs: give numbers [p, p, ...]"
        )
    if len(values) < 3:
        raise InvalidInput(f"p = {len(values)} has no waves: give 3 or more numbers")
    if not values.size:
        raise InvalidInput(f"{name} of shape {values.shape} are empty: give at least one")
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise InvalidInput(f"{name} are not all finite: look for NaN in the weights")
    return values


def _shares(maps: Any, products: bool) -> np.ndarray:
    values = checked_maps(maps)
    p, rest = len(values), values.shape[2:]
    flat = values.reshape(p, p, -1)
    shares = np.empty((p // 2, flat.shape[2]))
    for columns in batches(flat.shape[2], 32 * p * p):
        shares[:, columns] = _shares_of(flat[:, :, columns].astype(np.float64), products)
    return shares.reshape(p // 2, *rest)


def _shares_of(maps: np.ndarray, products: bool) -> np.ndarray:
    p = len(maps)
    square = np.sum(maps**2, axis=(0, 1))
    maps -= maps.mean(axis=(0, 1))
    total = np.sum(maps**2, axis=(0, 1))
    energy = np.abs(fft.rfft2(maps, axes=(0, 1))) ** 2 / p**2
    # Columns of the half transform stand for two conjugate ones, but for 0 and Nyquist.
    energy[:, 1 : (p + 1) // 2] *= 2
    k = np.arange(1, p // 2 + 1)
    own = energy[k, 0] + energy[0, k]
    if products:
        own += energy[k, k]
    # With an even p the last frequency is its own conjugate.
    two = k[2 * k < p]
    own[two - 1] += energy[-two, 0] + (energy[-two, two] if products else 0)
    return np.divide(own, total, out=np.full_like(own, np.nan), where=total > _ROUNDING * square)
