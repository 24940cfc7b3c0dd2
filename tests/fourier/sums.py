"""Prompts `a+b=` for the fixtures, where the token of a number n is 6 + n."""

from __future__ import annotations

import numpy as np
import torch
from numpy import ndarray as Array

from mechnum.tasks.prompts import Prompts, group_by_length

FIRST, N = 6, 50
NUMBERS = torch.arange(FIRST, FIRST + N)


def sums(n: int, seed: int = 0, long: int = 0) -> tuple[Prompts, ...]:
    """`n` random sums below N; `long` of them have one more token at the front."""
    a, b = np.random.default_rng(seed).integers(0, N // 2, size=(2, n)).tolist()
    rows = [[0, FIRST + x, 2, FIRST + y, 3] for x, y in zip(a, b)]
    rows = [[0, *row] if place < long else row for place, row in enumerate(rows)]
    answers = [x + y for x, y in zip(a, b)]
    extra = [int(place < long) for place in range(n)]
    return group_by_length(
        rows,
        {name: [at + more for more in extra] for name, at in (("a", 1), ("op", 2), ("b", 3))},
        [FIRST + answer for answer in answers],
        {"a": a, "b": b, "answer": answers},
        [" ".join(map(str, row)) for row in rows],
    )


def waves(n: int) -> tuple[Array, Array]:
    """An orthonormal real Fourier basis written out, and the frequency of each row."""
    numbers = np.arange(n)
    rows, frequency = [np.full(n, n**-0.5)], [0]
    for k in range(1, n // 2 + 1):
        for wave in (np.sin(2 * np.pi * k * numbers / n), np.cos(2 * np.pi * k * numbers / n)):
            if np.linalg.norm(wave) > 1e-6:
                rows.append(wave / np.linalg.norm(wave))
                frequency.append(k)
    return np.stack(rows), np.array(frequency)


def amplitudes(u: Array) -> Array:
    """Root of squared sine and cosine coefficients: [row, number] to [row, frequency]."""
    rows, frequency = waves(u.shape[-1])
    squares = (u @ rows.T) ** 2
    return np.stack(
        [np.sqrt(squares[:, frequency == k].sum(axis=1)) for k in range(1, frequency.max() + 1)], 1
    )
