"""Rows with weights that belong to sequences: means, held-out parts, resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int
from sklearn.model_selection import GroupKFold

from mechnum.beliefs.readout import Folds, checked_weights
from mechnum.beliefs.streams import Stream, stream
from mechnum.errors import InvalidInput
from mechnum.inputs import positive_integer
from mechnum.intervals import CHUNK_VALUES


@dataclass(frozen=True, eq=False)
class Rows:
    """What is averaged over, and what is held out and resampled together.

    Attributes:
        folds: the parts that are held out in turn.
        group: sequence of each row, 0 to n_groups − 1.
        seed: of folds, resamples and shuffles.
    """

    folds: Folds
    group: Int[np.ndarray, " row"]
    seed: int

    @classmethod
    def of(
        cls,
        n_rows: int,
        weights: Any,
        groups: Any,
        folds: int,
        cutoffs: Sequence[float],
        seed: int,
    ) -> Rows:
        """Sequences dealt to folds.

        Raises:
            InvalidInput: as `mechnum.beliefs.belief_regression`.
        """
        given = np.arange(n_rows) if groups is None else np.asarray(groups)
        if given.shape != (n_rows,):
            raise InvalidInput(
                f"the groups are not {n_rows} sequences: give the sequence of each row"
            )
        group = np.unique(given, return_inverse=True)[1].reshape(-1)
        n_groups = int(group.max()) + 1
        if not 2 <= positive_integer("folds", folds) <= n_groups:
            raise InvalidInput(
                f"{n_groups} sequences cannot be held out in {folds} folds: give 2 folds or more, "
                "and a sequence for each at least"
            )
        dealt = int(stream(seed, Stream.FOLDS).generate_state(1)[0])
        split = GroupKFold(folds, shuffle=True, random_state=dealt)
        fold = np.empty(n_rows, dtype=np.int64)
        for index, (_, held) in enumerate(split.split(group[:, None], groups=group)):
            fold[held] = index
        shares = checked_weights(weights, n_rows)
        if not np.bincount(fold, shares).all():
            raise InvalidInput(
                "all weight is on too few sequences to hold some out: give more, or fewer folds"
            )
        parts = Folds(shares, fold, _checked(cutoffs))
        return cls(parts, group, seed)

    def mean(self, values: Float64[np.ndarray, "row *cell"]) -> Float64[np.ndarray, "*cell"]:
        """Weighted over the rows."""
        return np.tensordot(self.folds.weights, values, axes=1)

    def variance(self, values: Float64[np.ndarray, "row column"]) -> float:
        """Weighted, summed over the columns."""
        return float(self.mean((values - self.mean(values)) ** 2).sum())

    def sums(self, values: Float64[np.ndarray, " row"]) -> Float64[np.ndarray, " group"]:
        """Weighted, over the rows of each sequence."""
        return np.bincount(self.group, self.folds.weights * values)

    def resampled(
        self, sums: Float64[np.ndarray, "group cell"], resamples: int
    ) -> Float64[np.ndarray, "resample cell"]:
        """Weighted means in resamples of the sequences, all cells in the same ones."""
        own = np.column_stack([sums, self.sums(np.ones(len(self.group)))])
        generator = np.random.default_rng(stream(self.seed, Stream.RESAMPLES))
        n_groups = len(own)
        share = np.full(n_groups, 1 / n_groups)
        size = max(1, CHUNK_VALUES // n_groups)
        totals = []
        for first in range(0, resamples, size):
            count = min(size, resamples - first)
            counts = generator.multinomial(n_groups, share, size=count)
            totals.append(counts.astype(np.float64) @ own)
        drawn = np.concatenate(totals)
        # A resample may miss all rows that have weight.
        return drawn[drawn[:, -1] > 0, :-1] / drawn[drawn[:, -1] > 0, -1:]

    def permutations(self, n: int) -> list[Int[np.ndarray, " row"]]:
        """Orders in which rows are dealt anew; the same ones at each call."""
        generator = np.random.default_rng(stream(self.seed, Stream.SHUFFLES))
        return [generator.permutation(len(self.group)) for _ in range(n)]


def _checked(cutoffs: Sequence[float]) -> tuple[float, ...]:
    if not len(cutoffs) or not all(np.isfinite(own) and own >= 0 for own in cutoffs):
        raise InvalidInput(f"cut-offs {tuple(cutoffs)}: give numbers from 0, such as (1e-6,)")
    return tuple(float(own) for own in cutoffs)
