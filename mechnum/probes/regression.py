"""Probes in closed form: regression to a code of the number, then the number whose code is nearest.

Sources: Štefánik et al. 2026 (arXiv 2510.26285) for the linear and the logarithmic probe; Feucht et
al. 2026 (arXiv 2605.01148) for regressions to the waves of a number; Levy & Geva 2025 (arXiv
2410.11781) for circular digits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from mechnum.errors import InvalidInput
from mechnum.fourier.least_squares import checked_periods
from mechnum.inputs import positive_integer
from mechnum.probes.base import CodeProbe, NumberProbe, Numbers
from mechnum.probes.ridge import RidgeFit, ridge_by_value
from mechnum.probes.values import numbers_of_states

ALPHAS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
PERIODS = (1000, 500, 200, 100, 50, 20, 10, 5, 2.5, 2)
_LEAST_VARIANCE = 1e-6  # A target without errors would outweigh all others.


class CodeRegression(CodeProbe):
    """Ridge regression of a code on the state; the subclasses say which code.

    The number read is the one whose code is nearest to the reading, where each part of the code is
    weighted by 1 / its variance of errors on numbers that the regression had not seen. With
    Gaussian errors that are independent between the parts this is the likeliest number.

    Attributes:
        alphas_: the strength chosen for each target, relative to the states' mean variance.
        error_variance_: mean squared error of each target on held-out folds, pooled over the
            targets that belong together.
        r2_: of each group of targets on the held-out folds.
    """

    alphas: Sequence[float]
    folds: int
    seed: int
    alphas_: Float64[np.ndarray, " target"]
    error_variance_: Float64[np.ndarray, " target"]
    r2_: Float64[np.ndarray, " group"]

    @abstractmethod
    def _code(
        self, numbers: Int[np.ndarray, " number"]
    ) -> tuple[Float64[np.ndarray, "number target"], Int[np.ndarray, " target"]]:
        """Codes of numbers, and the group that each target belongs to, 0 … n − 1."""

    def _fit(self, states: Float[np.ndarray, "row d"], values: Int[np.ndarray, " row"]) -> None:
        codes, groups = self._code(self.classes_)
        targets = codes[np.searchsorted(self.classes_, values)]
        fit = ridge_by_value(states, targets, values, groups, self.alphas, self.folds, self.seed)
        errors = np.mean((fit.heldout - targets) ** 2, axis=0)
        spread = targets.var(axis=0)
        of_group = groups == np.unique(groups)[:, None]
        pooled = (of_group @ errors) / of_group.sum(axis=1)
        total = of_group @ spread
        unread = np.full(len(total), np.nan)
        self.r2_ = 1 - np.divide(of_group @ errors, total, out=unread, where=total > 0)
        self.error_variance_ = pooled @ of_group
        weights = 1 / np.maximum(self.error_variance_, _LEAST_VARIANCE)
        self.coef_, self.intercept_, self.alphas_ = fit.coef, fit.intercept, fit.alphas
        self.codes_ = (codes * weights).T
        self.offsets_ = -((codes**2) @ weights) / 2


class LinearNumberProbe(CodeRegression):
    """Least squares to the number, rounded and clipped: the nearest number that competes.

    Source: Štefánik et al. 2026 (arXiv 2510.26285), the linear probe.

    Args:
        numbers: the numbers that compete; None for all between the extremes that fit sees.
        folds, seed: of the errors that `predict_proba` goes by.
    """

    alphas = (0.0,)

    def __init__(self, numbers: Numbers = None, folds: int = 5, seed: int = 0) -> None:
        self.numbers = numbers
        self.folds = folds
        self.seed = seed

    def _code(
        self, numbers: Int[np.ndarray, " number"]
    ) -> tuple[Float64[np.ndarray, "number target"], Int[np.ndarray, " target"]]:
        return numbers[:, None].astype(np.float64), np.zeros(1, dtype=np.int64)


class LogNumberProbe(NumberProbe):
    """Least squares to log(1 + v), decoded as exp − 1, rounded and clipped.

    Source: Štefánik et al. 2026 (arXiv 2510.26285), the logarithmic probe; the released code adds 1
    after exp where it must subtract it.

    Args:
        numbers: the numbers that compete; None for all between the extremes that fit sees.
        folds, seed: of the errors that `predict_proba` goes by.

    Attributes:
        coef_: [1, d], intercept_: [1], of log(1 + v).
        error_variance_: mean squared error of the decoded number on numbers that the regression
            had not seen.
    """

    def __init__(self, numbers: Numbers = None, folds: int = 5, seed: int = 0) -> None:
        self.numbers = numbers
        self.folds = folds
        self.seed = seed

    def _fit(self, states: Float[np.ndarray, "row d"], values: Int[np.ndarray, " row"]) -> None:
        targets = np.log1p(values)[:, None]
        group = np.zeros(1, dtype=np.int64)
        fit: RidgeFit = ridge_by_value(
            states, targets, values, group, (0.0,), self.folds, self.seed
        )
        self.coef_, self.intercept_ = fit.coef, fit.intercept
        self.error_variance_ = float(np.mean((self._decoded(fit.heldout)[:, 0] - values) ** 2))

    def _decoded(self, read: Float64[np.ndarray, "row 1"]) -> Float64[np.ndarray, "row 1"]:
        """Numbers of logarithms, clipped to those that compete."""
        low, high = np.log1p(self.classes_[[0, -1]])
        return np.expm1(read.clip(low, high))

    def _scores(self, states: Float[np.ndarray, "row d"]) -> Float64[np.ndarray, "row number"]:
        decoded = self._decoded(states @ self.coef_.T + self.intercept_)
        variance = max(self.error_variance_, _LEAST_VARIANCE)
        return -((decoded - self.classes_) ** 2) / (2 * variance)


class FourierRegressionProbe(CodeRegression):
    """Ridge regression to cos(2πv/T) and sin(2πv/T) of chosen periods: the yardstick of param-sin.

    cos and sin of a period share their strength and their weight. Many periods are no better than
    few: a period that the states do not have gets no weight, but it must be found out from the
    data.

    Source: Feucht et al. 2026 (arXiv 2605.01148), Fourier probes with periods 2, 5, 10, 20, 50 and
    100; ridge regression and the decoding are ours.

    Args:
        periods: T of 2 or more.
        numbers: the numbers that compete; None for all between the extremes that fit sees.
        alphas: strengths to choose from for each period, on held-out folds of numbers; 0 is least
            squares, 1 is as strong as the states' mean variance.
        folds: of the numbers.
        seed: of the folds.

    Attributes:
        periods_: of each target; two for a period, but one where sin is 0 on all numbers (T = 2).
        r2_: [period], R² of each period on the held-out folds.
    """

    periods_: Float64[np.ndarray, " target"]

    def __init__(
        self,
        periods: Sequence[float | int] = PERIODS,
        numbers: Numbers = None,
        alphas: Sequence[float] = ALPHAS,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.periods = periods
        self.numbers = numbers
        self.alphas = alphas
        self.folds = folds
        self.seed = seed

    def _code(
        self, numbers: Int[np.ndarray, " number"]
    ) -> tuple[Float64[np.ndarray, "number target"], Int[np.ndarray, " target"]]:
        periods = np.array(checked_periods(self.periods))
        codes, groups = circles(numbers[:, None] / periods, periods != 2)
        self.periods_ = periods[groups]
        return codes, groups


class CircularDigitProbe(CodeRegression):
    """Ridge regression of each digit to a point on a circle, read as the nearest digit's angle.

    Source: Levy & Geva 2025 (arXiv 2410.11781), circular probes: base 10 reads the digits of
    numbers in language models, other bases do not.

    Args:
        base: of the digits, 2 or more.
        numbers: the numbers that compete; None for all between the extremes that fit sees.
        alphas: strengths to choose from for each digit, on held-out folds of numbers; 0 is least
            squares, 1 is as strong as the states' mean variance.
        folds: of the numbers.
        seed: of the folds.

    Attributes:
        n_digits_: digits of the largest number; the units come first.
        r2_: [digit], R² of each digit's circle on the held-out folds; NaN for a digit that is the
            same in all rows.
    """

    n_digits_: int

    def __init__(
        self,
        base: int = 10,
        numbers: Numbers = None,
        alphas: Sequence[float] = ALPHAS,
        folds: int = 5,
        seed: int = 0,
    ) -> None:
        self.base = base
        self.numbers = numbers
        self.alphas = alphas
        self.folds = folds
        self.seed = seed

    def predict_digits(self, X: Any) -> Int[np.ndarray, "row digit"]:
        """The digits of each state of X [row, d], each read on its own circle alone."""
        reading = self.readings(X)
        points, groups = self._points(np.arange(self.base)[:, None].repeat(self.n_digits_, axis=1))
        squares = (reading[:, None, :] - points) ** 2
        of_digit = groups == np.arange(self.n_digits_)[:, None]
        return (squares @ of_digit.T).argmin(axis=1)

    def digit_accuracy(self, X: Any, y: Any) -> Float64[np.ndarray, " digit"]:
        """The share of rows in which each digit is read, units first."""
        read = self.predict_digits(X)
        true = digits(numbers_of_states(y, len(read)), self.base, self.n_digits_)
        return np.mean(read == true, axis=0)

    def _code(
        self, numbers: Int[np.ndarray, " number"]
    ) -> tuple[Float64[np.ndarray, "number target"], Int[np.ndarray, " target"]]:
        if positive_integer("base", self.base) < 2:
            raise InvalidInput("base is 1: give 2 or more, such as 10")
        self.n_digits_ = n_digits(int(numbers[-1]), self.base)
        return self._points(digits(numbers, self.base, self.n_digits_))

    def _points(
        self, digits: Int[np.ndarray, "number digit"]
    ) -> tuple[Float64[np.ndarray, "number target"], Int[np.ndarray, " target"]]:
        return circles(digits / self.base, np.full(digits.shape[1], self.base != 2))


def circles(
    turns: Float64[np.ndarray, "number circle"], sines: Bool[np.ndarray, " circle"]
) -> tuple[Float64[np.ndarray, "number target"], Int[np.ndarray, " target"]]:
    """cos and, where asked for, sin of each circle, and the circle that each column belongs to."""
    # Whole turns are taken out first: a product with π of a large number loses its end.
    angle = 2 * np.pi * (turns % 1)
    columns, owner = [], []
    for circle, sine in enumerate(sines):
        for wave in (np.cos, np.sin) if sine else (np.cos,):
            columns.append(wave(angle[:, circle]))
            owner.append(circle)
    return np.stack(columns, axis=1), np.array(owner)


def digits(
    numbers: Int[np.ndarray, " number"], base: int, n: int
) -> Int[np.ndarray, "number digit"]:
    """The last n digits of numbers, units first."""
    return numbers[:, None] // base ** np.arange(n) % base


def n_digits(number: int, base: int) -> int:
    """How many digits a number has."""
    count = 1
    while number >= base:
        number //= base
        count += 1
    return count
