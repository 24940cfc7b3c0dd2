"""A linear classifier for states of more dimensions than there are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64, Int
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.utils.validation import check_is_fitted, validate_data

from mechnum.errors import InvalidInput

_LEAST_SHRINKAGE = 1e-3  # Classes without any spread of their own would divide by 0.


class ShrunkDiscriminant(ClassifierMixin, BaseEstimator):
    """Linear discriminant analysis with a shrunk covariance and equal priors.

    The covariance within classes is moved towards a multiple of the identity, by the share that
    Ledoit & Wolf 2004 derive for that of all inputs. That share does not look at the classes, so
    permuted classes are fitted as freely as true ones. Equal priors, since a held-out row is
    missing from its own class: with priors as found, guesses would lean towards the others.

    Fits many labellings of the same rows at once, which permutation tests need.

    Attributes:
        classes_: the classes; with several labellings those of all.
        coef_: [dimension, labelling, class], intercept_: [labelling, class].
        shrinkage_: 0 to 1.
    """

    def fit(self, X: Any, y: Any) -> ShrunkDiscriminant:
        """Fit to inputs X [row, dimension] and classes y [row] or [row, labelling].

        Raises:
            InvalidInput: if they do not match, are empty or not finite, or have a single class.
        """
        try:
            X = np.asarray(validate_data(self, X, dtype=np.float64))
        except ValueError as error:
            raise InvalidInput(f"{' '.join(str(error).split())}: give finite inputs") from error
        y = np.asarray(y)
        self._one_labelling = y.ndim == 1
        y = y[:, None] if y.ndim == 1 else y
        if y.ndim != 2 or len(y) != len(X):
            raise InvalidInput(f"classes of shape {y.shape} for {len(X)} rows: give one for each")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInput("there is one class alone: give rows of two or more")
        mean = X.mean(axis=0)
        variances, axes = np.linalg.eigh(np.cov(X, rowvar=False, bias=True).reshape(X.shape[1], -1))
        self.shrinkage_ = max(float(ledoit_wolf_shrinkage(X)), _LEAST_SHRINKAGE)
        kept = 1 - self.shrinkage_
        shrunk = kept * variances.clip(0) + self.shrinkage_ * variances.mean()
        if not shrunk[0] > 0:
            raise InvalidInput("all rows are the same: give rows that differ")
        weights, squares, counts = _directions(
            (X - mean) @ axes, codes.reshape(y.shape), shrunk, kept
        )
        self.coef_ = np.einsum("dk,klc->dlc", axes, weights)
        offsets = np.einsum("d,dlc->lc", mean, self.coef_)
        self.intercept_ = np.where(counts > 0, -squares / 2 - offsets, -np.inf)
        return self

    def decision_function(self, X: Any) -> Float64[np.ndarray, "row labelling klass"]:
        """The discriminant of each class, up to a constant of the row."""
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        flat = X @ self.coef_.reshape(len(self.coef_), -1)
        return flat.reshape(len(X), *self.intercept_.shape) + self.intercept_

    def predict(self, X: Any) -> np.ndarray:
        """Classes [row] or [row, labelling]."""
        found = self.classes_[self.decision_function(X).argmax(axis=-1)]
        return found[:, 0] if self._one_labelling else found


def _directions(
    inputs: Float64[np.ndarray, "row axis"],
    codes: Int[np.ndarray, "row labelling"],
    shrunk: Float64[np.ndarray, " axis"],
    kept: float,
) -> tuple[
    Float64[np.ndarray, "axis labelling klass"],
    Float64[np.ndarray, "labelling klass"],
    Float64[np.ndarray, "labelling klass"],
]:
    """Weights Σ⁻¹m and squares m·Σ⁻¹m of each class mean m, and how many rows the class has.

    Σ, the shrunk covariance within classes, is the shrunk total one, which is diagonal here, minus
    what lies between the classes: an inverse of classes × classes gives its inverse (Woodbury).
    """
    n_classes = int(codes.max()) + 1
    members = (codes[:, :, None] == np.arange(n_classes)).astype(np.float64)
    counts = members.sum(axis=0)
    sums = (inputs.T @ members.reshape(len(inputs), -1)).reshape(-1, *counts.shape)
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    scaled = means / shrunk[:, None, None]
    between = np.einsum("klc,kle->lce", means, scaled, optimize=True)
    share = (kept * counts / len(inputs))[:, :, None]
    undone = np.linalg.inv(np.eye(n_classes) - share * between)
    weights = np.einsum("klc,lce->kle", scaled, undone, optimize=True)
    return weights, np.einsum("lce,lec->lc", between, undone), counts
