"""Ridge regression whose strength is chosen on numbers that a fit has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int
from sklearn.model_selection import GroupKFold

from mechnum.errors import InvalidInput
from mechnum.inputs import positive_integer, seed_sequence

_CUTOFF = 1e-12  # Directions with less than this part of the largest variance count as none.


@dataclass(frozen=True)
class RidgeFit:
    """Targets ≈ states · coefᵀ + intercept.

    Attributes:
        alphas: the strength chosen for each target, relative to the states' mean variance.
        heldout: what each row's targets are predicted to be while its number is held out.
    """

    coef: Float64[np.ndarray, "target d"]
    intercept: Float64[np.ndarray, " target"]
    alphas: Float64[np.ndarray, " target"]
    heldout: Float64[np.ndarray, "row target"]


def ridge_by_value(
    states: Float[np.ndarray, "row d"],
    targets: Float64[np.ndarray, "row target"],
    values: Int[np.ndarray, " row"],
    groups: Int[np.ndarray, " target"],
    alphas: Sequence[float],
    folds: int,
    seed: int,
) -> RidgeFit:
    """Ridge regression of the targets on the states, with a constant.

    Each group of targets has the strength with the least squared error on held-out folds. The
    folds are of numbers, not of rows. All strengths come from one eigendecomposition a fold
    (Hastie, Tibshirani & Friedman 2009, section 3.4.1), and the folds' covariances from sums over
    the folds.

    Args:
        groups: which targets share a strength; 0 … n − 1.
        alphas: the strengths to choose from, relative to the mean variance of the states in the
            directions that they span; 0 is least squares, of least norm where states have more
            dimensions than rows.
        folds: how many; fewer where there are fewer numbers.

    Raises:
        InvalidInput: on fewer than 2 folds, and on strengths below 0.
    """
    strengths = _strengths(alphas)
    splits = _splits(values, folds, seed)
    centre, mean = states.mean(axis=0, dtype=np.float64), targets.mean(axis=0)
    spread, back = _in_span(states - centre)
    outputs = targets - mean
    sums = [_Sums.of(spread[rows], outputs[rows]) for rows in splits]
    total = sum(sums[1:], sums[0])
    predicted = np.empty((len(strengths), *targets.shape))
    for rows, own in zip(splits, sums, strict=True):
        left = _Solver.of(total - own)
        seen = spread[rows] @ left.axes - left.mean @ left.axes
        for index, strength in enumerate(strengths):
            predicted[index, rows] = seen @ left.scaled(strength) + left.target_mean
    errors = np.square(predicted - outputs).sum(axis=1)
    by_group = np.stack([errors[:, groups == group].sum(axis=1) for group in np.unique(groups)], 1)
    chosen = by_group.argmin(axis=0)[np.unique(groups, return_inverse=True)[1].reshape(-1)]
    whole = _Solver.of(total)
    coef = np.empty((targets.shape[1], states.shape[1]))
    for index in np.unique(chosen):
        own = chosen == index
        coef[own] = (whole.axes @ whole.scaled(strengths[index])[:, own]).T @ back
    heldout = np.take_along_axis(predicted, chosen[None, None, :], axis=0)[0] + mean
    return RidgeFit(coef, mean - coef @ centre, np.array(strengths)[chosen], heldout)


@dataclass(frozen=True)
class _Sums:
    """Sums over rows, from which a covariance comes; those of two sets of rows add."""

    n: int
    states: Float64[np.ndarray, " d"]
    targets: Float64[np.ndarray, " target"]
    squares: Float64[np.ndarray, "d d"]
    products: Float64[np.ndarray, "d target"]

    @classmethod
    def of(cls, states: np.ndarray, targets: np.ndarray) -> _Sums:
        return cls(
            len(states), states.sum(0), targets.sum(0), states.T @ states, states.T @ targets
        )

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.n + other.n,
            self.states + other.states,
            self.targets + other.targets,
            self.squares + other.squares,
            self.products + other.products,
        )

    def __sub__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.n - other.n,
            self.states - other.states,
            self.targets - other.targets,
            self.squares - other.squares,
            self.products - other.products,
        )


@dataclass(frozen=True)
class _Solver:
    """Fits of any strength to one set of rows."""

    mean: Float64[np.ndarray, " d"]
    target_mean: Float64[np.ndarray, " target"]
    variances: Float64[np.ndarray, " axis"]
    axes: Float64[np.ndarray, "d axis"]
    covariances: Float64[np.ndarray, "axis target"]

    @classmethod
    def of(cls, sums: _Sums) -> _Solver:
        mean, target_mean = sums.states / sums.n, sums.targets / sums.n
        variances, axes = np.linalg.eigh(sums.squares / sums.n - np.outer(mean, mean))
        covariances = axes.T @ (sums.products / sums.n - np.outer(mean, target_mean))
        return cls(mean, target_mean, variances, axes, covariances)

    def scaled(self, strength: float) -> Float64[np.ndarray, "axis target"]:
        """Coefficients along the axes."""
        real = self.variances > _CUTOFF * max(self.variances[-1], 0)
        denominator = self.variances + strength * self.variances.clip(0).mean()
        inverse = np.divide(1, denominator, out=np.zeros_like(denominator), where=real)
        return inverse[:, None] * self.covariances


def _in_span(
    spread: Float64[np.ndarray, "row d"],
) -> tuple[Float64[np.ndarray, "row axis"], Float64[np.ndarray, "axis d"]]:
    """Coordinates in the span of the rows, and its axes: what ridge regression does not leave.

    Where states have more dimensions than there are rows, that is a much smaller problem.
    """
    rows, d = spread.shape
    if d <= rows:
        return spread, np.eye(d)
    left, sizes, axes = np.linalg.svd(spread, full_matrices=False)
    return left * sizes, axes


def _strengths(alphas: Sequence[float]) -> tuple[float, ...]:
    found = tuple(float(alpha) for alpha in alphas)
    if not found or not all(np.isfinite(alpha) and alpha >= 0 for alpha in found):
        raise InvalidInput(f"alphas {found} are no strengths: give numbers of 0 or more")
    return found


def _splits(values: Int[np.ndarray, " row"], folds: int, seed: int) -> list[Int[np.ndarray, " _"]]:
    """The rows of each fold."""
    distinct = len(np.unique(values))
    if positive_integer("folds", folds) < 2:
        raise InvalidInput("1 fold leaves nothing to fit: give 2 or more")
    state = int(seed_sequence(seed).generate_state(1)[0])
    splitter = GroupKFold(min(folds, distinct), shuffle=True, random_state=state)
    return [held for _, held in splitter.split(values[:, None], groups=values)]
