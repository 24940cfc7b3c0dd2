"""The moduli that these measures are for, and the sums of all pairs."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from mechnum.errors import InvalidInput
from mechnum.inputs import to_numpy


def check_prime(p: int) -> int:
    """`p`, where it is a prime of 3 or more.

    With a composite p a wave whose frequency divides it is a wave of a smaller modulus, so that
    frequencies are no longer alike, and relabelling numbers does not turn one into another.

    Raises:
        InvalidInput: where it is not.
    """
    if p < 3:
        raise InvalidInput(f"p = {p} has no waves: use a net of a prime p of 3 or more")
    if divisor := next((q for q in range(2, isqrt(p) + 1) if p % q == 0), None):
        raise InvalidInput(
            f"p = {p} is not prime (it is {divisor} · {p // divisor}), so that its frequencies are "
            "not alike: use a net of a prime p"
        )
    return p


def sums(p: int) -> Int[np.ndarray, "p p"]:
    """(a + b) mod p of all pairs."""
    return np.add.outer(np.arange(p), np.arange(p)) % p


def checked_keys(keys: Any, p: int) -> Int[np.ndarray, " key"]:
    """Key frequencies as integers, in the order given.

    Raises:
        InvalidInput: on none, on ones given twice, and on ones outside 1 … (p − 1)/2.
    """
    values = np.asarray(to_numpy(list(keys) if isinstance(keys, (set, frozenset)) else keys))
    if values.ndim != 1 or not values.size:
        raise InvalidInput("there are no key frequencies: give at least one")
    if (values != np.round(values)).any() or values.min() < 1 or values.max() > p // 2:
        raise InvalidInput(
            f"key frequencies {values.tolist()} are not those of p = {p}: give whole numbers from "
            f"1 to {p // 2}"
        )
    if len(np.unique(values)) < len(values):
        raise InvalidInput(f"key frequencies {values.tolist()} repeat: give each once")
    return values.astype(np.int64)


def checked_pairs(pairs: Any, p: int) -> Bool[np.ndarray, "p p"]:
    """Which pairs are meant.

    Args:
        pairs: True for each pair [p, p], the indices a·p + b, or None for all.

    Raises:
        InvalidInput: on another shape, on indices of no pair, and on no pair at all.
    """
    if pairs is None:
        return np.ones((p, p), dtype=bool)
    values = np.asarray(pairs.cpu() if hasattr(pairs, "cpu") else pairs)
    if values.dtype == bool and values.shape == (p, p):
        mask = values
    elif values.ndim == 1 and values.dtype.kind in "iu":
        if values.size and (values.min() < 0 or values.max() >= p * p):
            raise InvalidInput(f"there is no pair of that index: give 0 to {p * p - 1}, a·{p} + b")
        mask = np.zeros(p * p, dtype=bool)
        mask[values] = True
        mask = mask.reshape(p, p)
    else:
        raise InvalidInput(
            f"pairs of shape {values.shape} fit no {p} × {p}: give booleans [p, p] or indices "
            "a·p + b"
        )
    if not mask.any():
        raise InvalidInput("there are no pairs: give at least one")
    return mask
