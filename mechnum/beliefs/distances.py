"""Do states lie as beliefs lie, or only as what they predict next?

Source: Shai et al. 2024, section 4.3: distances of states go with those of beliefs, also between
beliefs that predict the same next token.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int64

Pairs = tuple[Int64[np.ndarray, " pair"], Int64[np.ndarray, " pair"]]


def draw_pairs(weights: Float[np.ndarray, " row"], n: int, seed: np.random.SeedSequence) -> Pairs:
    """Pairs of different rows, both drawn by their weights."""
    generator = np.random.default_rng(seed)
    first, second = generator.choice(len(weights), size=(2, n), p=weights)
    different = first != second
    return first[different].astype(np.int64), second[different].astype(np.int64)


def distances(points: Float[np.ndarray, "row d"], pairs: Pairs) -> Float[np.ndarray, " pair"]:
    """Euclidean ones."""
    gap = points[pairs[0]].astype(np.float64) - points[pairs[1]]
    return np.linalg.norm(gap, axis=1)


def agreement(
    own: Float[np.ndarray, " pair"], others: Mapping[str, Float[np.ndarray, " pair"]]
) -> list[float]:
    """R² of the line from each of the others to `own`; NaN where one of the two is constant."""
    found = []
    for other in others.values():
        constant = len(own) < 2 or min(np.ptp(own), np.ptp(other)) <= 1e-12
        found.append(float("nan") if constant else float(np.corrcoef(own, other)[0, 1] ** 2))
    return found
