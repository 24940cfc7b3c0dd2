"""Centred kernel alignment, by which tables of any widths are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64


def linear_cka(x: Any, y: Any) -> float:
    """Linear CKA of two tables with a row for each input: ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖), centred.

    NaN where one is constant. Source: Kornblith et al. 2019, section 3.
    """
    x, y = (np.asarray(table, dtype=np.float64) for table in (x, y))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    if len(x) < max(x.shape[1], y.shape[1]):
        return gram_cosine(x @ x.T, y @ y.T)
    lengths = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return float(np.sum((y.T @ x) ** 2) / lengths) if lengths > 0 else float("nan")


def gram_cosine(k: Float64[np.ndarray, "row row"], m: Float64[np.ndarray, "row row"]) -> float:
    """Linear CKA from the inner products of centred rows: the same, and less to do for few rows."""
    lengths = np.linalg.norm(k) * np.linalg.norm(m)
    return float(np.vdot(k, m) / lengths) if lengths > 0 else float("nan")
