"""What all number probes are: states in, the number out, all numbers competing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Float64, Int
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mechnum.models.memory import batches
from mechnum.probes.values import candidates, known_states, numbers_of_states, states_and_values

# The numbers that compete: any whole numbers; None for all between the extremes that fit sees.
Numbers = Sequence[int] | np.ndarray | None
Fitted = TypeVar("Fitted", bound="NumberProbe")


class NumberProbe(BaseEstimator):
    """Reads a whole number from a state.

    A scikit-learn estimator with the methods of a classifier, but none in name: a classifier's
    classes are those that it was shown, while a probe is judged on numbers that it was not.

    Attributes:
        classes_: [number], the numbers that compete, in order.
        n_features_in_: d, the width of the states.
    """

    numbers: Numbers
    classes_: Int[np.ndarray, " number"]
    n_features_in_: int

    def fit(self: Fitted, X: Any, y: Any) -> Fitted:
        """Fit to states X [row, d] and their numbers y [row], in any order, with any repeats.

        Raises:
            InvalidInput: on states that are empty, not finite or all the same, on numbers that are
                not whole, below 0 or all the same, and on impossible parameters.
        """
        states, values = states_and_values(self, X, y)
        self.classes_ = candidates(self.numbers, values)
        self._fit(states, values)
        return self

    @abstractmethod
    def _fit(self, states: Float[np.ndarray, "row d"], values: Int[np.ndarray, " row"]) -> None:
        """Fit to checked states, `classes_` being set."""

    @abstractmethod
    def _scores(self, states: Float[np.ndarray, "row d"]) -> Float64[np.ndarray, "row number"]:
        """Logits of checked states."""

    def decision_function(self, X: Any) -> Float64[np.ndarray, "row number"]:
        """Logits of the numbers in `classes_`, up to a constant of the row."""
        return np.concatenate(list(self._batches(X)))

    def predict(self, X: Any) -> Int[np.ndarray, " row"]:
        """The number of each state of X [row, d]."""
        best = [scores.argmax(axis=1) for scores in self._batches(X)]
        return self.classes_[np.concatenate(best)]

    def predict_proba(self, X: Any) -> Float64[np.ndarray, "row number"]:
        """How likely each number in `classes_` is; rows sum to 1."""
        return softmax(self.decision_function(X), axis=1)

    def score(self, X: Any, y: Any) -> float:
        """Accuracy: the share of rows whose number is read exactly."""
        read = self.predict(X)
        return float(np.mean(read == numbers_of_states(y, len(read))))

    def _batches(self, X: Any) -> Iterator[Float64[np.ndarray, "row number"]]:
        """Logits of all rows, as many at a time as memory is meant to hold."""
        check_is_fitted(self)
        states = known_states(self, X)
        row_bytes = 8 * (len(self.classes_) + 2 * states.shape[1])
        for rows in batches(len(states), row_bytes):
            yield self._scores(states[rows])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags


class CodeProbe(NumberProbe):
    """A probe that compares a linear reading z = W x + b with a code of each number.

    The logit of a number is ⟨z, its code⟩ + its offset.

    Attributes:
        coef_: W [latent, d] and intercept_: b [latent].
        codes_: [latent, number] and offsets_: [number].
    """

    coef_: Float64[np.ndarray, "latent d"]
    intercept_: Float64[np.ndarray, " latent"]
    codes_: Float64[np.ndarray, "latent number"]
    offsets_: Float64[np.ndarray, " number"]

    def readings(self, X: Any) -> Float64[np.ndarray, "row latent"]:
        """The reading z of states X [row, d]."""
        check_is_fitted(self)
        return known_states(self, X) @ self.coef_.T + self.intercept_

    def _scores(self, states: Float[np.ndarray, "row d"]) -> Float64[np.ndarray, "row number"]:
        return (states @ self.coef_.T + self.intercept_) @ self.codes_ + self.offsets_
