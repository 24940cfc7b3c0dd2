"""The control of every fit: the same fit to numbers that mean nothing."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from jaxtyping import Float64
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mechnum.helix.estimators import BasisRegressor, explained_variance
from mechnum.inputs import known_numbers, training_data


class PermutedLabels(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Fit `estimator` to shuffled numbers, then predict for the true ones.

    Distinct numbers trade places, so that all states of one number stay together under one wrong
    number: the fit keeps every property of the data but the one that is tested. Source: the
    shuffled-features control of Kantamneni & Tegmark 2025, section 4.

    Args:
        estimator: helix, circle or polynomial, unfitted; it is cloned.
        seed: of the permutation.

    Attributes:
        estimator_: the fitted clone.
        basis_, components_: of the clone.
    """

    def __init__(self, estimator: BasisRegressor, seed: int = 0) -> None:
        self.estimator = estimator
        self.seed = seed

    def fit(self, X: Any, y: Any) -> PermutedLabels:
        """Fit to numbers X [row] or [row, variable] and states y [row, d].

        Raises:
            InvalidInput: as the estimator's own fit.
        """
        numbers, states = training_data(self, X, y)
        unfitted = cast(BasisRegressor, clone(self.estimator))
        self.estimator_ = unfitted.fit(self._shuffled(numbers), states)
        self.basis_ = self.estimator_.basis_
        self.components_ = self.estimator_.components_
        return self

    def weights(
        self,
        numbers: Float64[np.ndarray, "row variable"],
        asked: Float64[np.ndarray, "asked variable"],
    ) -> Float64[np.ndarray, "asked row"]:
        """As `BasisRegressor.weights`, of the fit to the shuffled numbers."""
        return self.estimator.weights(self._shuffled(numbers), asked)

    def _shuffled(
        self, numbers: Float64[np.ndarray, "row variable"]
    ) -> Float64[np.ndarray, "row variable"]:
        values, which = np.unique(numbers, axis=0, return_inverse=True)
        order = np.random.default_rng(self.seed).permutation(len(values))
        return values[order][which.reshape(-1)]

    def predict(self, X: Any) -> Float64[np.ndarray, "row *d"]:
        """States of numbers X [row] or [row, variable]."""
        check_is_fitted(self)
        return self.estimator_.predict(known_numbers(self, X))

    @property
    def components(self) -> int:
        """Of the estimator."""
        return self.estimator.components

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predicted states, dimensions weighted by variance (`explained_variance`)."""
        return explained_variance(y, self.predict(X), sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True
        return tags
