"""Predictions for numbers from fits that have not seen them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from jaxtyping import Float64, Int
from sklearn.base import clone

from mechnum.errors import InvalidInput
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


def predictions(
    estimator: Estimator,
    fitted_on: tuple[Float64[np.ndarray, "row variable"], Float64[np.ndarray, "row d"]],
    asked: tuple[Float64[np.ndarray, "asked variable"], Float64[np.ndarray, "asked d"]],
    parts: Sequence[Part],
) -> Float64[np.ndarray, "asked d"]:
    """States predicted for the asked numbers, each from a clone fitted to its part's rows.

    Args:
        fitted_on: numbers and states to fit.
        asked: numbers to predict, and their true states, which `PCAReconstruction` alone sees.
        parts: of `parts_by_value`.
    """
    # PCA rebuilds states from themselves, everything else predicts them from the numbers.
    own = int(isinstance(estimator, PCAReconstruction))
    predicted = np.full(asked[1].shape, np.nan)
    for part in parts:
        fitted = cast(Estimator, clone(estimator))
        fitted.fit(fitted_on[own][part.train], fitted_on[1][part.train])
        predicted[part.asked] = fitted.predict(asked[own][part.asked])
    return predicted
