"""Columns of a number: constant, linear, cosines and sines, or Legendre polynomials.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 4 and its released design matrix.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float64
from numpy.polynomial import legendre
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mechnum.columns import TOLERANCE, independent_columns
from mechnum.errors import InvalidInput
from mechnum.inputs import known_numbers, positive_integer, training_numbers

CONSTANT = "constant"

Fitted = TypeVar("Fitted", bound="NumberBasis")


class NumberBasis(TransformerMixin, BaseEstimator):
    """Numbers -> independent columns; the subclasses say which columns.

    The first column is always the constant. Each variable is moved and scaled to [-1, 1] over the
    fitted numbers where a column needs a scale, which makes the columns comparable and
    well-conditioned and does not change what they span.

    Attributes:
        columns_: names of the columns, in order.
        dropped_: names of the columns left out: zero on these numbers, as sin(T=2) on integers, or
            spanned by the columns before them (see `independent_columns`).
        rank_: number of columns, the constant included.
        centre_, half_range_: the scale of each variable.
    """

    @abstractmethod
    def _block(
        self, numbers: Float64[np.ndarray, " row"], scaled: Float64[np.ndarray, " row"]
    ) -> list[tuple[str, Float64[np.ndarray, " row"]]]:
        """Named columns of one variable, without the constant."""

    @abstractmethod
    def _check(self) -> None:
        """Refuse impossible parameters."""

    def fit(self: Fitted, X: Any, y: Any = None) -> Fitted:
        """Fix scale and columns on numbers X [row] or [row, variable].

        Raises:
            InvalidInput: if the numbers are empty, not finite, or fewer than the columns.
        """
        self._check()
        numbers = training_numbers(self, X)
        low, high = numbers.min(axis=0), numbers.max(axis=0)
        self.centre_ = low / 2 + high / 2
        self.half_range_ = np.where(high > low, high / 2 - low / 2, 1.0)
        names, matrix = self._all_columns(numbers)
        nonzero = int(np.sum(np.sqrt(np.mean(matrix**2, axis=0)) > TOLERANCE))
        distinct = len(np.unique(numbers, axis=0))
        if distinct < nonzero:
            raise InvalidInput(
                f"{distinct} distinct numbers (n_samples={len(numbers)}) cannot fix {nonzero} "
                "columns: give more numbers, or fewer periods or degrees"
            )
        self._keep = independent_columns(matrix)
        self.columns_ = tuple(n for n, k in zip(names, self._keep, strict=True) if k)
        self.dropped_ = tuple(n for n, k in zip(names, self._keep, strict=True) if not k)
        self.rank_ = len(self.columns_)
        return self

    def transform(self, X: Any) -> Float64[np.ndarray, "row column"]:
        """Columns of numbers X [row] or [row, variable]."""
        check_is_fitted(self)
        return self._all_columns(known_numbers(self, X))[1][:, self._keep]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns, for scikit-learn."""
        check_is_fitted(self)
        return np.asarray(self.columns_, dtype=object)

    def _all_columns(
        self, numbers: Float64[np.ndarray, "row variable"]
    ) -> tuple[list[str], Float64[np.ndarray, "row all_columns"]]:
        names, columns = [CONSTANT], [np.ones(len(numbers))]
        variables = numbers.shape[1]
        labels = getattr(self, "feature_names_in_", [f"x{i}" for i in range(variables)])
        scaled = (numbers - self.centre_) / self.half_range_
        for variable in range(variables):
            for name, column in self._block(numbers[:, variable], scaled[:, variable]):
                names.append(name if variables == 1 else f"{name} of {labels[variable]}")
                columns.append(column)
        return names, np.column_stack(columns)


class HelixBasis(NumberBasis):
    """Constant, linear, then cos and sin of 2πn/T for each period T, for each variable.

    Args:
        periods: T > 0, in units of the numbers; not only whole ones.
        linear: whether the linear column is there (a helix) or not (circles).
    """

    def __init__(
        self, periods: Sequence[float | int] = (2, 5, 10, 100), linear: bool = True
    ) -> None:
        self.periods = periods
        self.linear = linear

    def _check(self) -> None:
        check_periods(self.periods)

    def _block(
        self, numbers: Float64[np.ndarray, " row"], scaled: Float64[np.ndarray, " row"]
    ) -> list[tuple[str, Float64[np.ndarray, " row"]]]:
        block = [("linear", scaled)] if self.linear else []
        for period in self.periods:
            angle = 2 * np.pi * numbers / period
            block.append((cosine_name(period), np.cos(angle)))
            block.append((sine_name(period), np.sin(angle)))
        return block


class PolynomialBasis(NumberBasis):
    """Legendre polynomials of degree 0 to `degree` of the scaled numbers, for each variable.

    Legendre polynomials on [-1, 1] span what a, a², ... span, without their rank deficiency in
    floating point, and the scaling makes the fit the same under n -> αn + β.
    """

    def __init__(self, degree: int = 9) -> None:
        self.degree = degree

    def _check(self) -> None:
        positive_integer("degree", self.degree)

    def _block(
        self, numbers: Float64[np.ndarray, " row"], scaled: Float64[np.ndarray, " row"]
    ) -> list[tuple[str, Float64[np.ndarray, " row"]]]:
        values = legendre.legvander(scaled, self.degree)
        return [(f"legendre({k})", values[:, k]) for k in range(1, self.degree + 1)]


def cosine_name(period: float | int) -> str:
    """Name of the cosine column of a period."""
    return f"cos(T={period:g})"


def sine_name(period: float | int) -> str:
    """Name of the sine column of a period."""
    return f"sin(T={period:g})"


def check_periods(periods: Any) -> tuple[float, ...]:
    """The periods as a tuple.

    Raises:
        InvalidInput: if one of them is not a finite number above 0.
    """
    try:
        if isinstance(periods, str):
            raise TypeError("a text")
        values = tuple(float(period) for period in periods)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"periods {periods!r} are not numbers: give for example (2, 5, 10, 100)"
        ) from error
    for value in values:
        if not (np.isfinite(value) and value > 0):
            raise InvalidInput(f"period {value:g} is not a finite number above 0: leave it out")
    return values


def parse_periods(text: str) -> tuple[float, ...]:
    """The periods of a list with commas: "2,5,10,100".

    Raises:
        InvalidInput: as `check_periods`, and on an empty list.
    """
    periods = check_periods([part for part in text.split(",") if part.strip()])
    for period in periods:
        if period < 2:
            raise InvalidInput(
                f"whole numbers cannot tell period {period:g} from a longer one: give 2 or more"
            )
    if not periods:
        raise InvalidInput("no periods were named: give for example 2,5,10,100")
    return periods
