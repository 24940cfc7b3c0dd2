"""Rows with planted codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def circles(
    numbers: np.ndarray, periods: Sequence[float], d: int, noise: float, seed: int = 0
) -> np.ndarray:
    """A circle for each period in random directions, with Gaussian noise: [number, d]."""
    generator = np.random.default_rng(seed)
    waves = [wave(2 * np.pi * numbers / period) for period in periods for wave in (np.cos, np.sin)]
    directions = generator.normal(size=(len(waves), d))
    return np.stack(waves, axis=1) @ directions + noise * generator.normal(size=(len(numbers), d))
