"""How far predicted beliefs are from true ones, for the states and for the controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float64

from mechnum.beliefs.rows import Rows
from mechnum.beliefs.verdict import verdict
from mechnum.intervals import CONFIDENCE

STATES, SHUFFLED = "states", "shuffled beliefs"
Table = Float64[np.ndarray, "row _"]
TINY = 1e-20
"""Variance below which probabilities are all the same, but for rounding."""


@dataclass(frozen=True, eq=False)
class Errors:
    """Of one predictor, out of fold.

    Attributes:
        sums: squared error, mean over coordinates, weighted and summed over each sequence.
        rmse: of each coordinate.
        spread: variance of the predictions as a share of that of the truth.
        r2: of each output of the `Judge`.
    """

    sums: Float64[np.ndarray, " group"]
    rmse: Float64[np.ndarray, " coordinate"]
    spread: float
    r2: Float64[np.ndarray, " output"]


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges predictions of the same beliefs.

    Attributes:
        beliefs: [row, state].
        outputs: matrices [state, column] that make of beliefs what is judged: the first one gives
            the coordinates, others give distributions of later tokens, say. Regression is linear,
            so that predictions of these are the predicted beliefs times the matrix.
        shuffles: how often the beliefs are dealt anew for the shuffled control.
    """

    rows: Rows
    beliefs: Table
    outputs: tuple[Float64[np.ndarray, "state _"], ...]
    shuffles: int

    @property
    def coordinates(self) -> Table:
        """The true ones."""
        return self.beliefs @ self.outputs[0]

    def predicted(self, features: Table) -> Table:
        """Beliefs out of fold."""
        return self.rows.folds.predicted(features, self.beliefs)

    def errors(self, predicted: Table, truth: Table) -> Errors:
        """Of predicted beliefs."""
        coordinates, guesses = truth @ self.outputs[0], predicted @ self.outputs[0]
        squared = (guesses - coordinates) ** 2
        variance = self.rows.variance(coordinates)
        return Errors(
            self.rows.sums(squared.mean(axis=1)),
            np.sqrt(self.rows.mean(squared)),
            self.rows.variance(guesses) / variance if variance > TINY else np.nan,
            np.array([self._r2(predicted @ own, truth @ own) for own in self.outputs]),
        )

    def place(
        self, states: Table, controls: Mapping[str, Table]
    ) -> tuple[Table, dict[str, Errors]]:
        """Beliefs predicted from `states`, and the errors of all predictors.

        Args:
            controls: beliefs that were predicted from other features.
        """
        own = self.predicted(states)
        dealt = [self.beliefs[order] for order in self.rows.permutations(self.shuffles)]
        # Some prefixes have most of the weight: weighted, their beliefs would be learned by heart.
        folds = self.rows.folds.unweighted()
        shuffled = np.split(folds.predicted(states, np.hstack(dealt)), self.shuffles, axis=1)
        of_shuffled = [self.errors(*pair) for pair in zip(shuffled, dealt, strict=True)]
        return own, {
            STATES: self.errors(own, self.beliefs),
            SHUFFLED: _mean(of_shuffled),
            **{name: self.errors(guess, self.beliefs) for name, guess in controls.items()},
        }

    def _r2(self, guesses: Table, truth: Table) -> float:
        variance = self.rows.variance(truth)
        if variance <= TINY:
            return float("nan")
        return 1 - float(self.rows.mean((guesses - truth) ** 2).sum()) / variance


def _mean(parts: Sequence[Errors]) -> Errors:
    return Errors(
        np.mean([own.sums for own in parts], axis=0),
        np.mean([own.rmse for own in parts], axis=0),
        float(np.mean([own.spread for own in parts])),
        np.mean([own.r2 for own in parts], axis=0),
    )


def ends(drawn: Float64[np.ndarray, "resample *cell"]) -> Float64[np.ndarray, "2 *cell"]:
    """Of the 95 % interval, from resamples."""
    return np.quantile(drawn, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2), axis=0)


def compared(judge: Judge, places: Sequence[Mapping[str, Errors]], resamples: int) -> xr.Dataset:
    """The table of all places, with intervals from the same resamples, and the verdicts.

    Returns:
        The variables of `mechnum.beliefs.belief_regression` over (`place`, …), and `r2_output`
        (place, predictor, output).
    """
    predictors, controls = list(places[0]), list(places[0])[1:]
    sums = np.stack([[own[name].sums for name in predictors] for own in places])
    mse = sums.sum(axis=-1)
    flat = np.moveaxis(sums, -1, 0).reshape(sums.shape[-1], -1)
    drawn = judge.rows.resampled(flat, resamples).reshape(-1, *mse.shape)
    low, high = ends(drawn)
    gain_low, gain_high = ends(drawn[..., 1:] - drawn[..., :1])
    coordinates = judge.coordinates
    variance = judge.rows.variance(coordinates) / coordinates.shape[1]
    verdicts = [
        verdict(
            dict(zip(controls, own[1:], strict=True)),
            dict(zip(controls, least, strict=True)),
            variance,
        )
        for own, least in zip(mse.tolist(), gain_low.tolist(), strict=True)
    ]
    of, against = ("place", "predictor"), ("place", "control")
    each = [[own[name] for name in predictors] for own in places]
    r2 = np.array([[own.r2 for own in row] for row in each])
    return xr.Dataset(
        {
            "mse": (of, mse),
            "mse_low": (of, low),
            "mse_high": (of, high),
            "r2": (of, r2[..., 0]),
            "spread": (of, [[own.spread for own in row] for row in each]),
            "rmse": ((*of, "coordinate"), [[own.rmse for own in row] for row in each]),
            "r2_output": ((*of, "output"), r2),
            "gain": (against, mse[:, 1:] - mse[:, :1]),
            "gain_low": (against, gain_low),
            "gain_high": (against, gain_high),
            "verdict": ("place", [own.verdict for own in verdicts]),
            "reason": ("place", [own.reason for own in verdicts]),
            "variance": ((), variance),
        },
        coords={"predictor": predictors, "control": controls},
    )
