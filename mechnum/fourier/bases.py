"""Fourier bases over the numbers 0 … n − 1, with a label for every row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float64, Int

from mechnum.errors import InvalidInput

BasisKind = Literal["orthonormal", "paper"]


@dataclass(frozen=True)
class FourierBasis:
    """A real Fourier basis; made by `fourier_basis`.

    Attributes:
        kind: "orthonormal" or "paper".
        matrix: one wave a row: the constant, then sine and cosine of each frequency.
        frequency: k of each row, in waves over `length` numbers; 0 for the constant.
        length: how many numbers a wave of frequency 1 takes.
    """

    kind: BasisKind
    matrix: Float64[np.ndarray, "row number"]
    frequency: Int[np.ndarray, " row"]
    length: int

    @property
    def n_numbers(self) -> int:
        """How many numbers, from 0 on, the waves run over."""
        return self.matrix.shape[1]

    @property
    def frequencies(self) -> Int[np.ndarray, " frequency"]:
        """Every k above 0, once."""
        return np.arange(1, int(self.frequency.max()) + 1)

    @property
    def periods(self) -> Float64[np.ndarray, " frequency"]:
        """The period of each of `frequencies`, in numbers."""
        return self.length / self.frequencies

    @cached_property
    def inverse(self) -> Float64[np.ndarray, "number row"]:
        """The pseudo-inverse; only for the orthonormal basis is it the transpose."""
        if self.kind == "orthonormal":
            return self.matrix.T
        # The sine that is 0 has entries of rounding, which the default cut-off inverts.
        return np.linalg.pinv(self.matrix, rcond=1e-10)

    def coefficients(self, values: Any) -> Float64[np.ndarray, "row *d"]:
        """Inner products of every row with values [number] or [number, d].

        Raises:
            InvalidInput: if there is not one value for each number.
        """
        values = np.asarray(values, dtype=np.float64)
        if len(values) != self.n_numbers:
            raise InvalidInput(
                f"{len(values)} values do not fit a basis over {self.n_numbers} numbers: "
                f"give one for each of 0 to {self.n_numbers - 1}"
            )
        return self.matrix @ values

    def rebuild(self, coefficients: Float64[np.ndarray, "row *d"]) -> Float64[np.ndarray, "n *d"]:
        """The values nearest to those that have these coefficients."""
        return self.inverse @ coefficients

    def power(self, coefficients: Float64[np.ndarray, "row *d"]) -> Float64[np.ndarray, "k *d"]:
        """Squared coefficients, sine and cosine together, of each of `frequencies`."""
        power = np.zeros((len(self.frequencies) + 1, *np.shape(coefficients)[1:]))
        np.add.at(power, self.frequency, np.square(coefficients))
        return power[1:]


def fourier_basis(n_numbers: int, kind: BasisKind = "orthonormal") -> FourierBasis:
    """Waves over the numbers 0 … n − 1.

    - "orthonormal": angle 2πkx/n, every row of norm 1. With an even n the last frequency has no
      sine, which would be zero on all integers.
    - "paper": the basis of Zhou et al. 2024 (section 2), for comparison. Its angle is 2πkx/(n − 1)
      over n numbers, so that its rows are neither orthogonal nor, at the highest frequency of an
      odd n, of norm 1: the sine is 0 and the cosine √2 times too long, which overstates T = 2.
      `rebuild` undoes this by a pseudo-inverse, as far as the rank of n − 1 allows.

    Raises:
        InvalidInput: on another kind, and on fewer than 3 numbers.
    """
    if kind not in get_args(BasisKind):
        raise InvalidInput(f"unknown basis {kind!r}: use 'orthonormal' or 'paper'")
    if n_numbers < 3:
        raise InvalidInput(f"{n_numbers} numbers have no waves: give 3 or more")
    length = n_numbers if kind == "orthonormal" else n_numbers - 1
    rows, frequency = [np.full(n_numbers, 1 / np.sqrt(length))], [0]
    for k in range(1, length // 2 + 1):
        angle = 2 * np.pi * k * np.arange(n_numbers) / length
        nyquist = kind == "orthonormal" and 2 * k == length
        if not nyquist:
            rows.append(np.sqrt(2 / length) * np.sin(angle))
            frequency.append(k)
        rows.append(np.sqrt((1 if nyquist else 2) / length) * np.cos(angle))
        frequency.append(k)
    return FourierBasis(kind, np.stack(rows), np.array(frequency), length)
