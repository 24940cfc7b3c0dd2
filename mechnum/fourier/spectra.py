"""Spectra over numbers."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy import fft


def strongest_frequencies(
    rows: Float[np.ndarray, "number d"], n: int
) -> Int[np.ndarray, " frequency"]:
    """The frequencies k (periods N/k) that hold most power of the centred rows, strongest first.

    Row i must belong to number i of 0 … N − 1. The power of k sums its cosine and sine over all
    dimensions; the Nyquist frequency counts (Nanda et al. 2023, section 4.1, for embeddings).
    """
    transformed = fft.rfft(rows - rows.mean(axis=0), axis=0)
    power = (np.abs(transformed) ** 2).sum(axis=1)[1:]
    # Each frequency but the Nyquist one stands for a pair of conjugate bins.
    power[: (len(rows) - 1) // 2] *= 2
    return 1 + np.argsort(power)[::-1][:n]
