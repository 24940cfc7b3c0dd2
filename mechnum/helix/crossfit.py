"""Predictions for numbers from fits that have not seen them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from mechnum.errors import InvalidInput
from mechnum.helix.components import TrainingStates
from mechnum.helix.estimators import PCAReconstruction
from mechnum.helix.heldout import Estimator
from mechnum.inputs import positive_integer


@dataclass(frozen=True)
class Part:
    """One fit and what it predicts.

    Attributes:
        train: rows to fit on.
        asked: rows, of another table, to predict.
    """

    train: Int[np.ndarray, " train"]
    asked: Int[np.ndarray, " asked"]


def parts_by_value(
    numbers: Float64[np.ndarray, "row variable"],
    asked: Float64[np.ndarray, "asked variable"],
    folds: int | None,
    seed: int,
) -> list[Part]:
    """Splits `asked` into parts, each with the rows whose numbers it does not contain.

    The values of each variable are dealt into `folds` random folds. A row is fitted for an asked
    row only if no variable's value lies in the same fold in both. None: all rows are fitted for
    all, in sample.

    Raises:
        InvalidInput: if `folds` is not None or at least 2, or leaves no rows to fit.
    """
    if folds is None:
        return [Part(np.arange(len(numbers)), np.arange(len(asked)))]
    if positive_integer("folds", folds) < 2:
        raise InvalidInput("1 fold leaves nothing to fit: give 2 or more, or None to fit in sample")
    generator = np.random.default_rng(seed)
    places, asked_places = [], []
    for column, asked_column in zip(numbers.T, asked.T, strict=True):
        values, which = np.unique(np.concatenate([column, asked_column]), return_inverse=True)
        fold = generator.permutation(len(values)) % folds
        places.append(fold[which[: len(column)]])
        asked_places.append(fold[which[len(column) :]])
    table, asked_table = np.column_stack(places), np.column_stack(asked_places)
    parts = []
    for combination in np.unique(asked_table, axis=0):
        train = np.flatnonzero((table != combination).all(axis=1))
        if len(train) == 0:
            raise InvalidInput(
                f"{folds} folds leave no rows to fit: give more folds, or more prompts to fit on"
            )
        parts.append(Part(train, np.flatnonzero((asked_table == combination).all(axis=1))))
    return parts


@dataclass(frozen=True)
class CrossFits:
    """Several fits of the same numbers, made ready for states of any layer.

    Attributes:
        parts: of `parts_by_value`.
        weights: for each part and method, see `BasisRegressor.weights`; None for PCA.
    """

    estimators: Mapping[str, Estimator]
    parts: Sequence[Part]
    weights: Sequence[Mapping[str, Float64[np.ndarray, "_ _"] | None]]

    @classmethod
    def of(
        cls,
        estimators: Mapping[str, Estimator],
        numbers: Float64[np.ndarray, "row variable"],
        asked: Float64[np.ndarray, "asked variable"],
        parts: Sequence[Part],
    ) -> CrossFits:
        """Fits to `numbers`, for predictions at `asked`.

        Raises:
            InvalidInput: if a part has fewer distinct numbers than a fit has columns.
        """
        weights = [
            {
                name: None
                if isinstance(estimator, PCAReconstruction)
                else estimator.weights(numbers[part.train], asked[part.asked])
                for name, estimator in estimators.items()
            }
            for part in parts
        ]
        return cls(estimators, parts, weights)

    def predictions(
        self,
        states: Float64[np.ndarray, "row d"],
        true: Float64[np.ndarray, "asked d"],
    ) -> dict[str, Float64[np.ndarray, "asked d"]]:
        """What each method predicts for the asked numbers, from its part's training states.

        Equal to fitting a clone of each estimator to each part. The principal components, which
        are what costs, are found once for all methods.

        Args:
            true: states of the asked numbers, which `PCAReconstruction` alone sees.
        """
        found = {name: np.full(true.shape, np.nan) for name in self.estimators}
        for part, weights in zip(self.parts, self.weights, strict=True):
            training = TrainingStates(states[part.train])
            for name, estimator in self.estimators.items():
                own = weights[name]
                if own is None:
                    count = estimator.components
                    found[name][part.asked] = training.rebuilt(true[part.asked], count)
                else:
                    found[name][part.asked] = training.predicted(own, estimator.components)
        return found
