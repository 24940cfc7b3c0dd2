"""What the weights alone show: sparse spectra, a readout of few directions, small norms."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy import fft

from mechnum.errors import InvalidInput
from mechnum.fourier.bases import fourier_basis
from mechnum.grokking.modulus import check_prime, checked_keys
from mechnum.inputs import to_numpy

HELD = 0.99
"""Share of the squared length that the directions counted by `numerical_rank` hold."""


def gini(values: Any) -> float:
    """Gini coefficient: 0 where all values are the same, near 1 where one has all.

    NaN where all are zero.

    Raises:
        InvalidInput: on no values, and on ones below 0 or not finite.
    """
    ordered = np.sort(np.asarray(to_numpy(values), dtype=np.float64).ravel())
    if not ordered.size or not np.isfinite(ordered).all() or ordered[0] < 0:
        raise InvalidInput("a Gini coefficient is of finite values of 0 or more: give some")
    total = ordered.sum()
    if total == 0:
        return float("nan")
    n = len(ordered)
    ranks = 2 * np.arange(1, n + 1) - n - 1
    return float(ranks @ ordered / (n * total))


def fourier_gini(rows: Any) -> float:
    """Gini coefficient of the lengths of a table's Fourier components (Nanda et al. 2023, 5.1).

    Each cosine and each sine over the numbers is a component. The constant is none: a shift of all
    rows would change it.

    Args:
        rows: [p, d], one row for each number: W_E, or W_L with the classes first.

    Raises:
        InvalidInput: on other shapes, on values that are not finite, on a p that is no prime ≥ 3.
    """
    rows = _checked_table(rows)
    coefficients = fourier_basis(check_prime(len(rows))).coefficients(rows)[1:]
    return gini(np.linalg.norm(coefficients, axis=1))


def numerical_rank(matrix: Any, held: float = HELD) -> int:
    """The fewest singular directions that hold a share of the squared length of a matrix.

    Raises:
        InvalidInput: on a matrix that is not finite, and on a share outside 0 … 1.
    """
    if not 0 < held <= 1:
        raise InvalidInput(f"held={held} is no share: give a number above 0 and up to 1")
    squares = np.linalg.svd(_checked_table(matrix), compute_uv=False) ** 2
    if squares.sum() == 0:
        return 0
    kept = np.cumsum(squares) / squares.sum()
    return int(np.argmax(kept >= held * (1 - 1e-12)) + 1)


def readout_residual(readout: Any, keys: Any) -> float:
    """Length of W_L outside cos and sin of the key frequencies over classes, as a share of its own.

    Nanda et al. 2023, section 4.2: W_L = W_U · W_out ≈ Σ_k cos(w_k c) u_k + sin(w_k c) v_k. NaN for
    a readout that is zero.

    Args:
        readout: W_L [p, neuron], one row for each class.
        keys: key frequencies.

    Raises:
        InvalidInput: as `fourier_gini`, and on keys that are not frequencies of p.
    """
    rows = _checked_table(readout)
    p = check_prime(len(rows))
    transformed = fft.rfft(rows, axis=0)
    transformed[checked_keys(keys, p)] = 0
    whole = np.linalg.norm(rows)
    rest = np.linalg.norm(fft.irfft(transformed, n=p, axis=0))
    return float(rest / whole) if whole > 0 else float("nan")


def _checked_table(rows: Any) -> Float64[np.ndarray, "row d"]:
    values = np.asarray(to_numpy(rows), dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise InvalidInput(f"the table has shape {values.shape}: give [row, d]")
    if not np.isfinite(values).all():
        raise InvalidInput("the table is not all finite: look for NaN in the weights")
    return values
