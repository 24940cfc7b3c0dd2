"""Spectra over numbers."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy import fft


def power_by_frequency(rows: Float[np.ndarray, "number d"]) -> Float[np.ndarray, " frequency"]:
    """Share of the centred rows' power at each frequency k = 1 … N/2 (periods N/k).

    Row i must belong to number i of 0 … N − 1. The power of k sums its cosine and sine over all
    dimensions; the Nyquist frequency counts (Nanda et al. 2023, section 4.1, for embeddings).
    """
    transformed = fft.rfft(rows - rows.mean(axis=0), axis=0)
    power = (np.abs(transformed) ** 2).sum(axis=1)[1:]
    # Each frequency but the Nyquist one stands for a pair of conjugate bins.
    power[: (len(rows) - 1) // 2] *= 2
    return power / power.sum()


def strongest_frequencies(
    rows: Float[np.ndarray, "number d"], n: int
) -> Int[np.ndarray, " frequency"]:
    """The `n` frequencies that hold most power, strongest first."""
    return 1 + np.argsort(power_by_frequency(rows))[::-1][:n]


def key_frequencies(rows: Float[np.ndarray, "number d"]) -> Int[np.ndarray, " frequency"]:
    """The frequencies with more than twice the power of a flat spectrum, strongest first."""
    share = power_by_frequency(rows)
    return strongest_frequencies(rows, int((share > 2 / len(share)).sum()))
