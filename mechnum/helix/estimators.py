"""The helix and its rivals as scikit-learn estimators.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), sections 4 and 5: PCA of the states, ordinary
least squares from the columns of the number to the principal components, and back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float64
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.decomposition import PCA
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mechnum.errors import InvalidInput
from mechnum.helix.basis import HelixBasis, NumberBasis, PolynomialBasis
from mechnum.inputs import (
    as_columns,
    as_states,
    known_numbers,
    positive_integer,
    to_numpy,
    training_data,
    training_numbers,
)


def explained_variance(states: Any, predicted: Any, sample_weight: Any = None) -> float:
    """R² of predicted states: 1 - Σ|y - ŷ|² / Σ|y - ȳ|², summed over rows and dimensions.

    NaN where the states are all the same, so that there is nothing to explain.

    Dimensions count by their variance; a plain mean over dimensions would let those in which
    nothing happens decide.
    """
    known = to_numpy(states)
    if np.ptp(known, axis=0).max() == 0:
        return float("nan")
    return float(
        r2_score(
            known,
            predicted,
            sample_weight=sample_weight,
            multioutput="variance_weighted",
        )
    )


def principal_components(states: Float64[np.ndarray, "row d"], components: int) -> PCA:
    """PCA of training states, with no more components than centred rows and dimensions allow."""
    rows, d = states.shape
    wanted = positive_integer("components", components)
    if rows == 1:
        raise InvalidInput("n_samples=1 state has no principal components: give two or more")
    count = min(wanted, rows - 1, d)
    # Both solvers are exact and without random numbers; the second is fast for many rows.
    solver = "full" if rows < 2 * d else "covariance_eigh"
    with np.errstate(invalid="ignore"):  # the variance ratios of constant states are 0/0
        return PCA(count, svd_solver=solver).fit(states)


Fitted = TypeVar("Fitted", bound="BasisRegressor")


class BasisRegressor(RegressorMixin, BaseEstimator):
    """States as a linear function of columns of the number; the subclasses say which columns.

    Attributes:
        columns_, dropped_, rank_: of the basis, see `mechnum.helix.basis.NumberBasis`. The first
            column is the constant.
        coef_: [column, d], the columns' directions in residual space. The row of the constant is
            the state where all the others are 0; the rest is the transpose of the paper's C.
        components_: [component, d], the principal components in use: `components` of them, or
            fewer where the training states have fewer.
        basis_: the fitted basis.
    """

    components: int
    n_features_in_: int

    @abstractmethod
    def make_basis(self) -> NumberBasis:
        """The basis of these parameters, unfitted."""

    def fit(self: Fitted, X: Any, y: Any) -> Fitted:
        """Fit to numbers X [row] or [row, variable] and their states y [row, d].

        Raises:
            InvalidInput: if numbers or states are empty, not finite or of different lengths, if
                there are fewer distinct numbers than columns, or on impossible parameters.
        """
        _, states = training_data(self, X, y)
        self._one_output = states.ndim == 1
        states = states.reshape(len(states), -1)
        # Columns get their names from the numbers as given.
        basis = self.make_basis().fit(as_columns(X))
        design = basis.transform(as_columns(X))
        pca = principal_components(states, self.components)
        weights = np.linalg.lstsq(design, pca.transform(states), rcond=None)[0]
        self.coef_ = weights @ pca.components_
        self.coef_[0] += pca.mean_
        self.components_ = np.asarray(pca.components_)
        self.basis_ = basis
        self.columns_, self.dropped_, self.rank_ = basis.columns_, basis.dropped_, basis.rank_
        return self

    def weights(self, numbers: Any, asked: Any) -> Float64[np.ndarray, "asked row"]:
        """How much of each training state a fit's prediction is; each row sums to 1.

        A fit to states y at `numbers` predicts `weights @ y` at `asked`, where `components` leaves
        all principal components in. The estimator itself need not be fitted, and is not changed.

        Raises:
            InvalidInput: as `fit`, on the numbers.
        """
        basis = self.make_basis().fit(as_columns(numbers))
        return basis.transform(as_columns(asked)) @ np.linalg.pinv(
            basis.transform(as_columns(numbers))
        )

    def predict(self, X: Any) -> Float64[np.ndarray, "row *d"]:
        """States of numbers X [row] or [row, variable]."""
        check_is_fitted(self)
        known_numbers(self, X)
        states = self.basis_.transform(as_columns(X)) @ self.coef_
        return states[:, 0] if self._one_output else states

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predicted states, dimensions weighted by variance (`explained_variance`)."""
        return explained_variance(y, self.predict(X), sample_weight)

    def project(self, states: Any) -> Float64[np.ndarray, "row column"]:
        """Coordinates of states [row, d] along the columns, by pseudo-inverse of `coef_`.

        The constant's coordinate is 1, so that `inverse_project(project(states))` is the point of
        the fitted surface's span that is nearest to the states. Where the directions of `coef_`
        are independent, `project(predict(n))` gives back the columns of n.
        """
        check_is_fitted(self)
        states = as_states(states, self.coef_.shape[1])
        coordinates = (states - self.coef_[0]) @ np.linalg.pinv(self.coef_[1:])
        return np.column_stack([np.ones(len(states)), coordinates])

    def inverse_project(
        self, coordinates: Float64[np.ndarray, "row column"]
    ) -> Float64[np.ndarray, "row d"]:
        """States with these coordinates."""
        check_is_fitted(self)
        return as_states(coordinates, self.rank_) @ self.coef_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # A few waves of fixed periods cannot follow arbitrary regression data.
        tags.regressor_tags.poor_score = True
        return tags


class Helix(BasisRegressor):
    """Generalised helix: state ≈ C·[n, cos(2πn/T), sin(2πn/T), ...] + constant (section 4).

    Several variables give one block of columns each and one constant: `helix(a, b)` is fitted on
    X = [a, b], `helix(a, b, a+b)` on X = [a, b, a+b] (section 5).

    Args:
        periods: the T.
        linear: whether the linear column is there.
        components: principal components of the training states that are fitted, at most.
    """

    def __init__(
        self,
        periods: Sequence[float | int] = (2, 5, 10, 100),
        linear: bool = True,
        components: int = 100,
    ) -> None:
        self.periods = periods
        self.linear = linear
        self.components = components

    def make_basis(self) -> NumberBasis:
        """The basis of these parameters, unfitted."""
        return HelixBasis(self.periods, self.linear)


class Circle(Helix):
    """The helix without its linear column."""

    def __init__(
        self, periods: Sequence[float | int] = (2, 5, 10, 100), components: int = 100
    ) -> None:
        super().__init__(periods, linear=False, components=components)


class Polynomial(BasisRegressor):
    """Polynomial of the number; `degree` 2k+1 has as many parameters as a helix of k periods.

    Fitted in Legendre polynomials of the scaled number: the same under n -> αn + β, and free of
    the rank deficiency of raw powers.
    """

    def __init__(self, degree: int = 9, components: int = 100) -> None:
        self.degree = degree
        self.components = components

    def make_basis(self) -> NumberBasis:
        """The basis of these parameters, unfitted."""
        return PolynomialBasis(self.degree)


class PCAReconstruction(BaseEstimator):
    """The states' own principal components: what any linear fit of that size could reach.

    Unlike the other rivals it sees the state that it is to predict: X is the states, not the
    numbers.

    Attributes:
        coef_: [component, d], the principal components.
        mean_: [d], the training mean.
        n_components_: `components`, or fewer where the training states have fewer.
    """

    def __init__(self, components: int = 9) -> None:
        self.components = components

    def fit(self, X: Any, y: Any = None) -> PCAReconstruction:
        """Fit to states X [row, d]; y is not used.

        Raises:
            InvalidInput: if the states are empty or not finite.
        """
        pca = principal_components(training_numbers(self, X), self.components)
        self.coef_, self.mean_ = np.asarray(pca.components_), pca.mean_
        self.n_components_ = int(pca.n_components_)
        return self

    def project(self, states: Any) -> Float64[np.ndarray, "row component"]:
        """Scores of states [row, d]."""
        check_is_fitted(self)
        return (known_numbers(self, states) - self.mean_) @ self.coef_.T

    def inverse_project(
        self, coordinates: Float64[np.ndarray, "row component"]
    ) -> Float64[np.ndarray, "row d"]:
        """States with these scores."""
        check_is_fitted(self)
        return as_states(coordinates, self.n_components_) @ self.coef_ + self.mean_

    def predict(self, X: Any) -> Float64[np.ndarray, "row d"]:
        """States X [row, d] rebuilt from their scores."""
        return self.inverse_project(self.project(X))

    def score(self, X: Any, y: Any = None) -> float:
        """R² of the rebuilt states, dimensions weighted by variance (`explained_variance`)."""
        return explained_variance(as_columns(X), self.predict(X))
