"""Maps from states of one model or layer to those of another, fitted on numbers of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from jaxtyping import Float, Float64
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import RidgeCV

from mechnum.errors import InvalidInput
from mechnum.inputs import value_means
from mechnum.probes.tables import StateTable

MapKind = Literal["procrustes", "regression"]
SpaceMap = Callable[[Float[np.ndarray, "row d"]], Float64[np.ndarray, "row e"]]

_STRENGTHS = np.logspace(-4, 4, 9)


def fit_map(kind: MapKind, source: StateTable, target: StateTable) -> SpaceMap:
    """The map that takes the mean state of each number in `source` nearest to that in `target`.

    "procrustes" (Schönemann 1966, with a scale) keeps angles; where the widths differ, the narrower
    states get dimensions of 0. "regression" is ridge regression, its strength chosen by
    leaving out one number at a time.

    Raises:
        InvalidInput: on fewer than three numbers that both have, and on states that are all the
            same.
    """
    numbers, ours, theirs = _common(source, target)
    if len(numbers) < 3:
        raise InvalidInput(
            f"{len(numbers)} training numbers are in both tables: give tables that share three or "
            "more"
        )
    centre, goal = ours.mean(axis=0), theirs.mean(axis=0)
    spread, wanted = ours - centre, theirs - goal
    size = float(np.linalg.norm(spread))
    if size == 0:
        raise InvalidInput("all states of a table are the same: give states that differ")
    if kind == "regression":
        scale = size / np.sqrt(spread.size)
        ridge = RidgeCV(alphas=_STRENGTHS).fit(spread / scale, wanted)
        return lambda states: np.asarray(ridge.predict((states - centre) / scale)) + goal
    d, e = spread.shape[1], wanted.shape[1]
    width = max(d, e)
    turn, total = orthogonal_procrustes(_widened(spread, width), _widened(wanted, width))
    matrix = turn[:d, :e] * (total / size**2)
    return lambda states: (states - centre) @ matrix + goal


def _common(
    source: StateTable, target: StateTable
) -> tuple[np.ndarray, Float64[np.ndarray, "number d"], Float64[np.ndarray, "number e"]]:
    """The numbers of both and their mean states."""
    values, means = [], []
    for table in (source, target):
        own, mean, _, _ = value_means(
            table.values[:, None].astype(np.float64), table.states.astype(np.float64)
        )
        values.append(own[:, 0])
        means.append(mean)
    numbers, first, second = np.intersect1d(*values, return_indices=True)
    return numbers, means[0][first], means[1][second]


def _widened(rows: Float64[np.ndarray, "number d"], width: int) -> Float64[np.ndarray, "number w"]:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))
