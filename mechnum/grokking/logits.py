"""Logits over all pairs: the part that is waves of the sum at key frequencies, and the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int
from scipy import fft

from mechnum.errors import InvalidInput
from mechnum.fourier.grid import checked_maps
from mechnum.grokking.modulus import check_prime, checked_keys, sums

Logits = Float64[np.ndarray, "p p p"]


def checked_logits(logits: Any) -> Logits:
    """Logits over (a, b, class) in float64.

    Raises:
        InvalidInput: on another shape than [p, p, p], on a p that is no prime of 3 or more, and on
            values that are not finite.
    """
    values = checked_maps(logits, "logits").astype(np.float64, copy=False)
    p = check_prime(len(values))
    if values.shape != (p, p, p):
        raise InvalidInput(
            f"logits of shape {values.shape} are not of p = {p} classes: give [p, p, p], without "
            "the logits of other tokens"
        )
    return values


def sum_means(logits: Logits) -> Float64[np.ndarray, "sum class"]:
    """Mean over the p pairs of each sum: all of the logits that depends on a + b alone."""
    p = len(logits)
    first = np.arange(p)
    # Row a, rolled, lists its pairs by their sum.
    by_sum = logits[first[:, None], (first[None, :] - first[:, None]) % p]
    return by_sum.mean(axis=0)


def key_part(logits: Any, keys: Any) -> Logits:
    """Projection of the logits on cos and sin of w(a + b), w = 2πk/p, for each key frequency k.

    Idempotent, and orthogonal to what is left (Nanda et al. 2023, section 4.3 and their code: unit
    directions (cos⊗cos − sin⊗sin)/√2 and (sin⊗cos + cos⊗sin)/√2).

    Args:
        logits: [p, p, p] over a, b and class.
        keys: frequencies, 1 … (p − 1)/2.

    Raises:
        InvalidInput: as `checked_logits`, and on keys that are not frequencies of p.
    """
    logits = checked_logits(logits)
    return _key_waves(logits, keys)[sums(len(logits))]


def restricted_logits(logits: Any, keys: Any) -> Logits:
    """The key part alone, with each class's mean over the inputs put back (section 5.1)."""
    logits = checked_logits(logits)
    return key_part(logits, keys) + logits.mean(axis=(0, 1))


def excluded_logits(logits: Any, keys: Any) -> Logits:
    """The logits without the key part (section 5.1)."""
    logits = checked_logits(logits)
    return logits - key_part(logits, keys)


def key_share(logits: Any, keys: Any) -> float:
    """Share of the variance of the logits, each class about its mean over inputs, in the key part.

    NaN where the logits are the same for all inputs.
    """
    logits = checked_logits(logits)
    part = len(logits) * np.sum(_key_waves(logits, keys) ** 2)
    return _ratio(part, variation(logits))


def logit_coefficients(logits: Any) -> Float64[np.ndarray, " frequency"]:
    """Inner product of the logits with cos w(a + b − c) of unit length, for k = 1 … (p − 1)/2.

    Nanda et al. 2023, section 4.1: a net that adds by the clock has Σ α_k cos w_k(a + b − c).
    """
    by_sum = sum_means(checked_logits(logits))
    p = len(by_sum)
    place = np.arange(p)
    # Mean over the sums at each a + b − c.
    by_error = by_sum[place[:, None], (place[:, None] - place[None, :]) % p].mean(axis=0)
    return np.sqrt(2 * p) * fft.rfft(by_error).real[1:]


def cosine_logits(
    coefficients: Float64[np.ndarray, " frequency"], keys: Int[np.ndarray, " key"], p: int
) -> Float64[np.ndarray, " error"]:
    """Σ α_k cos(w_k e) of unit-length cosines, over e = a + b − c."""
    angle = 2 * np.pi * np.outer(np.arange(p), keys) / p
    return np.cos(angle) @ coefficients[keys - 1] * np.sqrt(2 / p**3)


def logit_map(logits: Any, keys: Any) -> xr.Dataset:
    """What the logits say of each class for each sum, and how much of it is waves at the keys.

    A clock's key part is Σ_k α_k cos w_k(a + b − c): the same along each diagonal.

    Args:
        logits: [p, p, p] over a, b and class.
        keys: key frequencies.

    Returns:
        Over (sum, class), means over the p pairs of a sum, each class about its own mean: `logit`,
        and `key_part`, its waves in a + b at the keys. Over error e = (a + b − c) mod p: `by_error`
        and `key_by_error`, the means of both along the diagonals.

    Raises:
        InvalidInput: as `key_part`.
    """
    logits = checked_logits(logits)
    p = len(logits)
    by_sum = sum_means(logits)
    tables = {"logit": by_sum - by_sum.mean(axis=0), "key_part": _key_waves(logits, keys)}
    error = np.arange(p)
    diagonal = (error[:, None], (error[:, None] - error[None, :]) % p)
    return xr.Dataset(
        {
            **{name: (("sum", "class"), table) for name, table in tables.items()},
            "by_error": ("error", tables["logit"][diagonal].mean(axis=0)),
            "key_by_error": ("error", tables["key_part"][diagonal].mean(axis=0)),
        },
        coords=dict.fromkeys(("sum", "class", "error"), error),
    )


def sum_shares(logits: Any) -> Float64[np.ndarray, " frequency"]:
    """Share of the logits' variance that is a wave of a + b, for each k = 1 … (p − 1)/2.

    `key_share` of each frequency by itself; what depends on a and b otherwise is in none. NaN where
    the logits are the same for all inputs.
    """
    logits = checked_logits(logits)
    p = len(logits)
    power = np.sum(np.abs(fft.rfft(sum_means(logits), axis=0)[1:]) ** 2, axis=1) * 2 / p
    return np.array([_ratio(p * float(part), variation(logits)) for part in power])


def variation(logits: Logits) -> float:
    """Squared length of the logits, each class about its mean over the inputs."""
    return float(np.sum((logits - logits.mean(axis=(0, 1))) ** 2))


def _key_waves(logits: Logits, keys: Any) -> Float64[np.ndarray, "sum class"]:
    p = len(logits)
    transformed = fft.rfft(sum_means(logits), axis=0)
    kept = np.zeros_like(transformed)
    keys = checked_keys(keys, p)
    kept[keys] = transformed[keys]
    return fft.irfft(kept, n=p, axis=0)


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else float("nan")
