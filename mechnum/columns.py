"""Which columns of a design matrix a least-squares fit can tell apart."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64

TOLERANCE = 1e-6
"""Root mean square below which a column, all of which are of order 1, counts as zero."""


def independent_columns(matrix: Float64[np.ndarray, "row column"]) -> Bool[np.ndarray, " column"]:
    """Which columns to keep: those that the columns kept before them do not span.

    A column goes when the part of it outside that span has a root mean square below `TOLERANCE`.
    Earlier columns win, so the order of the columns decides between duplicates.
    """
    rows, columns = matrix.shape
    directions = np.zeros((rows, 0))
    keep = np.zeros(columns, dtype=bool)
    for column in range(columns):
        rest = matrix[:, column]
        # Twice, since one projection leaves rounding errors of the size of what it removed.
        for _ in range(2):
            rest = rest - directions @ (directions.T @ rest)
        size = np.linalg.norm(rest)
        if size > TOLERANCE * np.sqrt(rows):
            keep[column] = True
            directions = np.column_stack([directions, rest / size])
    return keep
