"""Weighted linear regression with a singular-value cut-off, all at once and out of fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mechnum.errors import InvalidInput
from mechnum.inputs import known_numbers, training_data

CUTOFF = 1e-6
"""Singular values below this share of the largest one count as zero: float32 states are no better."""


class BeliefReadout(RegressorMixin, BaseEstimator):
    """Beliefs as an affine function of states: min Σ w |b − (Wa + c)|² (Shai et al. 2024).

    Args:
        cutoff: directions whose singular value is a smaller share of the largest one are left out.

    Attributes:
        coef_: [state coordinate, d], the W. intercept_: the c.
    """

    coef_: np.ndarray
    intercept_: np.ndarray

    def __init__(self, cutoff: float = CUTOFF) -> None:
        self.cutoff = cutoff

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BeliefReadout:
        """Fit to states X [row, d] and beliefs y [row, coordinate], or y [row].

        Raises:
            InvalidInput: on values that are not finite, lengths that differ, and weights below 0.
        """
        states, beliefs = training_data(self, X, y)
        self._one_output = beliefs.ndim == 1
        weights = checked_weights(sample_weight, len(states))
        triangle = _triangle(states, beliefs.reshape(len(states), -1), weights)
        self.coef_, self.intercept_ = _solved(triangle, states.shape[1], self.cutoff)
        if self._one_output:
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Beliefs of states [row, d]; nothing forces them into the simplex."""
        check_is_fitted(self)
        return known_numbers(self, X) @ self.coef_.T + self.intercept_

    def subspace(self) -> Float64[np.ndarray, "direction d"]:
        """An orthonormal basis of the directions that the beliefs are read from.

        Probabilities sum to 1, so that there is one direction fewer than states at least.
        """
        check_is_fitted(self)
        _, sizes, directions = np.linalg.svd(np.atleast_2d(self.coef_), full_matrices=False)
        return directions[sizes > 1e-9 * max(sizes[0], np.finfo(float).tiny)]


@dataclass(frozen=True, eq=False)
class Folds:
    """Rows in parts, each of which is predicted from a regression on the others.

    Attributes:
        weights: of the rows, 1 in all.
        fold: the part of each row.
    """

    weights: Float64[np.ndarray, " row"]
    fold: Int[np.ndarray, " row"]
    cutoff: float = CUTOFF

    def predicted(
        self, features: Float64[np.ndarray, "row d"], targets: Float64[np.ndarray, "row target"]
    ) -> Float64[np.ndarray, "row target"]:
        """Each row's targets from a `BeliefReadout` that has not seen its part.

        Every part is brought to triangular form once; the regressions on the other parts are then
        as small as the number of columns, and as exact as those on the rows themselves.
        """
        parts = [self.fold == index for index in range(int(self.fold.max()) + 1)]
        triangles = [_triangle(features[part], targets[part], self.weights[part]) for part in parts]
        predicted = np.empty_like(targets)
        for index, part in enumerate(parts):
            others = np.vstack([own for other, own in enumerate(triangles) if other != index])
            fitted = _solved(np.linalg.qr(others, mode="r"), features.shape[1], self.cutoff)
            predicted[part] = features[part] @ fitted[0].T + fitted[1]
        return predicted


def checked_weights(weights: Any, n_rows: int) -> Float64[np.ndarray, " row"]:
    """Weights as given or equal ones, 1 in all.

    Raises:
        InvalidInput: where they are of another length, negative, not finite or all 0.
    """
    found = np.ones(n_rows) if weights is None else np.array(weights, dtype=np.float64)
    if found.shape != (n_rows,) or not np.isfinite(found).all() or found.min() < 0:
        raise InvalidInput(f"the weights are not {n_rows} numbers from 0: give one for each row")
    if found.sum() == 0:
        raise InvalidInput("all weights are 0: give a positive one")
    return found / found.sum()


def _triangle(
    features: Float64[np.ndarray, "row d"],
    targets: Float64[np.ndarray, "row target"],
    weights: Float64[np.ndarray, " row"],
) -> Float64[np.ndarray, "_ column"]:
    """R of the QR decomposition of (1, features, targets), each row times √weight."""
    table = np.empty((len(features), 1 + features.shape[1] + targets.shape[1]))
    table[:, 0] = 1.0
    table[:, 1 : 1 + features.shape[1]] = features
    table[:, 1 + features.shape[1] :] = targets
    table *= np.sqrt(weights)[:, None]
    return np.linalg.qr(table, mode="r")


def _solved(
    triangle: Float64[np.ndarray, "_ column"], d: int, cutoff: float
) -> tuple[Float64[np.ndarray, "target d"], Float64[np.ndarray, " target"]]:
    """W and c. What the first row leaves is centred, so that c has no part in the cut-off."""
    first, rest = triangle[0], triangle[1 : 1 + d]
    coef = np.linalg.lstsq(rest[:, 1 : 1 + d], rest[:, 1 + d :], rcond=cutoff)[0]
    intercept = (first[1 + d :] - first[1 : 1 + d] @ coef) / first[0]
    return coef.T, intercept
