"""Numbers on a helix whose directions are known."""

from __future__ import annotations

import numpy as np

PERIODS = (2, 5, 10, 100)


def columns(numbers: np.ndarray) -> np.ndarray:
    """[1, linear on [-1, 1], cos(T=2), cos and sin of T = 5, 10, 100], written out by hand."""
    n = np.asarray(numbers, dtype=float)
    scaled = 2 * (n - n.min()) / (n.max() - n.min()) - 1
    waves = [np.cos(np.pi * n)]
    for period in (5, 10, 100):
        waves += [np.cos(2 * np.pi * n / period), np.sin(2 * np.pi * n / period)]
    return np.stack([np.ones_like(n), scaled, *waves], axis=1)


def helix(
    numbers: np.ndarray, d: int = 16, noise: float = 0.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """States [n, d] on a random helix, and its directions [column, d]."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(9, d))
    states = columns(numbers) @ directions
    return states + noise * rng.normal(size=states.shape), directions
