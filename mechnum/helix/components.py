"""Principal components of training states, found once for all fits to them.

All fits of one layer work on the same principal components, which cost an eigendecomposition.
Beside them a fit is a matrix product: what it predicts is a weighted mean of the training states,
and the weights depend on the numbers alone (`BasisRegressor.weights`), not on the layer.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float64
from scipy import linalg

from mechnum.helix.basis import TOLERANCE


class TrainingStates:
    """Training states [row, d] with their principal components.

    Attributes:
        mean: [d].
    """

    def __init__(self, states: Float64[np.ndarray, "row d"]) -> None:
        self.mean = states.mean(axis=0)
        self._centred = states - self.mean

    @cached_property
    def axes(self) -> Float64[np.ndarray, "component d"]:
        """Orthonormal principal components by falling variance, those without any left out."""
        rows, d = self._centred.shape
        wide = rows <= d
        gram = self._centred @ self._centred.T if wide else self._centred.T @ self._centred
        values, vectors = linalg.eigh(gram)
        # Below this they are rounding errors of the largest.
        sure = values > max(values[-1], 0.0) * len(gram) * np.finfo(float).eps
        values, vectors = values[sure][::-1], vectors[:, sure][:, ::-1]
        return vectors.T @ self._centred / np.sqrt(values)[:, None] if wide else vectors.T

    def predicted(
        self, weights: Float64[np.ndarray, "asked row"], components: int
    ) -> Float64[np.ndarray, "asked d"]:
        """What a fit within the leading components predicts, by its weights of the rows (sum 1)."""
        axes = self.axes[:components]
        return self.mean + weights @ self._centred @ axes.T @ axes

    def rebuilt(
        self, states: Float64[np.ndarray, "asked d"], components: int
    ) -> Float64[np.ndarray, "asked d"]:
        """Other states rebuilt from the leading components."""
        axes = self.axes[:components]
        return self.mean + (states - self.mean) @ axes.T @ axes

    def span(
        self, weights: Float64[np.ndarray, "column row"], components: int
    ) -> Float64[np.ndarray, "direction d"]:
        """Orthonormal directions that the coefficients of a fit span.

        Args:
            weights: how much of each row a coefficient is: the pseudo-inverse of the design matrix,
                without the constant.
        """
        axes = self.axes[:components]
        _, sizes, directions = np.linalg.svd(
            weights @ self._centred @ axes.T @ axes, full_matrices=False
        )
        return directions[sizes > TOLERANCE * sizes.max(initial=0.0)]
