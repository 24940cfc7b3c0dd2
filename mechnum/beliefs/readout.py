"""Weighted linear regression with a singular-value cut-off, all at once and out of fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float64, Int
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mechnum.errors import InvalidInput
from mechnum.inputs import known_numbers, training_data

CUTOFFS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, 2.0)
"""Shares of the largest singular value that a cut-off is chosen from.

Float32 states know nothing below the first; the last leaves no direction, and so the mean.
"""


class BeliefReadout(RegressorMixin, BaseEstimator):
    """Beliefs as an affine function of states: min Σ w |b − (Wa + c)|² (Shai et al. 2024).

    Args:
        cutoff: directions whose singular value is a smaller share of the largest one are left out.

    Attributes:
        coef_: [state coordinate, d], the W. intercept_: the c.
    """

    coef_: np.ndarray
    intercept_: np.ndarray

    def __init__(self, cutoff: float = CUTOFFS[0]) -> None:
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
        ((self.coef_, self.intercept_),) = _solutions(triangle, states.shape[1], (self.cutoff,))
        if self._one_output:
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

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

    Every part is brought to triangular form once; regressions on some of the parts are then as
    small as the number of columns, and as exact as those on the rows themselves.

    Attributes:
        weights: of the rows, 1 in all.
        fold: the part of each row, from 0.
        cutoffs: the regression takes the one that predicts best parts that it was not fitted to,
            chosen anew, for each part that is held out, among all others.
    """

    weights: Float64[np.ndarray, " row"]
    fold: Int[np.ndarray, " row"]
    cutoffs: tuple[float, ...] = CUTOFFS

    def unweighted(self) -> Folds:
        """The same parts, in which each row counts alike."""
        return replace(self, weights=np.full_like(self.weights, 1 / len(self.weights)))

    def predicted(
        self, features: Float64[np.ndarray, "row d"], targets: Float64[np.ndarray, "row target"]
    ) -> Float64[np.ndarray, "row target"]:
        """Each row's targets from a `BeliefReadout` that has not seen its part."""
        d = features.shape[1]
        triangles = self._triangles(features, targets)
        predicted = np.empty_like(targets)
        for index in range(len(triangles)):
            others = triangles[:index] + triangles[index + 1 :]
            cutoff = self._best(others, d)
            ((coef, intercept),) = _solutions(_joined(others), d, (cutoff,))
            part = self.fold == index
            predicted[part] = features[part] @ coef.T + intercept
        return predicted

    def best_cutoff(
        self, features: Float64[np.ndarray, "row d"], targets: Float64[np.ndarray, "row target"]
    ) -> float:
        """The cut-off whose predictions out of fold are best."""
        return self._best(self._triangles(features, targets), features.shape[1])

    def _triangles(self, features: np.ndarray, targets: np.ndarray) -> list[np.ndarray]:
        parts = [self.fold == index for index in range(int(self.fold.max()) + 1)]
        return [_triangle(features[part], targets[part], self.weights[part]) for part in parts]

    def _best(self, triangles: list[np.ndarray], d: int) -> float:
        if len(self.cutoffs) == 1 or len(triangles) == 1:
            return self.cutoffs[0]
        errors = np.zeros(len(self.cutoffs))
        for index, held in enumerate(triangles):
            others = _joined(triangles[:index] + triangles[index + 1 :])
            for row, (coef, intercept) in enumerate(_solutions(others, d, self.cutoffs)):
                # What the held-out rows leave has the length of what their triangle leaves.
                left = held[:, 1 + d :] - held[:, 1 : 1 + d] @ coef.T - held[:, :1] * intercept
                errors[row] += np.sum(left**2)
        return self.cutoffs[int(errors.argmin())]


def checked_weights(weights: Any, n_rows: int) -> Float64[np.ndarray, " row"]:
    """Weights as given or equal ones, 1 in all.

    Raises:
        InvalidInput: where they are of another length, negative, not finite or all 0.
    """
    found = np.ones(n_rows) if weights is None else np.array(weights, dtype=np.float64)
    if found.shape != (n_rows,) or not np.isfinite(found).all() or found.min() < 0:
        raise InvalidInput(f"the weights are not {n_rows} numbers from 0: give one for each row")
    if found.sum() == 0:
        raise InvalidInput(
            "Sample weights must contain at least one non-zero number: give a positive one"
        )
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
    return np.asarray(np.linalg.qr(table, mode="r"))


def _joined(triangles: list[np.ndarray]) -> np.ndarray:
    """The triangle of all the rows together."""
    return np.asarray(np.linalg.qr(np.vstack(triangles), mode="r"))


def _solutions(
    triangle: Float64[np.ndarray, "_ column"], d: int, cutoffs: tuple[float, ...]
) -> list[tuple[Float64[np.ndarray, "target d"], Float64[np.ndarray, " target"]]]:
    """W and c for each cut-off. What the first row leaves is centred, so that c is in none."""
    first, rest = triangle[0], triangle[1 : 1 + d]
    left, sizes, right = np.linalg.svd(rest[:, 1 : 1 + d], full_matrices=False)
    scores = left.T @ rest[:, 1 + d :]
    largest = sizes.max(initial=0.0)
    # Of constant states rounding is all that varies.
    rounding = 1e-13 * float(np.linalg.norm(first[: 1 + d]))
    found = []
    for cutoff in cutoffs:
        kept = sizes > max(cutoff * largest, rounding)
        coef = right[kept].T @ (scores[kept] / sizes[kept, None])
        found.append((coef.T, (first[1 + d :] - first[1 : 1 + d] @ coef) / first[0]))
    return found
