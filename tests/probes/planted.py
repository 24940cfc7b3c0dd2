"""States with planted codes of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def waves(numbers: np.ndarray, periods: Sequence[float]) -> np.ndarray:
    """cos and sin of each period: [number, wave]."""
    angles = 2 * np.pi * numbers[:, None] / np.array(periods)
    return np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(len(numbers), -1)


def circles(
    numbers: np.ndarray,
    periods: Sequence[float] = (10, 100, 1000),
    d: int = 48,
    noise: float = 0.05,
    seed: int = 0,
) -> np.ndarray:
    """Each period's circle in orthogonal directions, and Gaussian noise: [number, d]."""
    generator = np.random.default_rng(seed)
    axes = np.linalg.qr(generator.normal(size=(d, 2 * len(periods))))[0].T
    return waves(numbers, periods) @ axes + noise * generator.normal(size=(len(numbers), d))
