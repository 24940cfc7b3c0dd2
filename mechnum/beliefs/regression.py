"""Are beliefs linearly there in states, and more so than in what knows little of the past?

Source: Shai et al. 2024 (arXiv 2405.15943), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from mechnum.beliefs.errors import SHUFFLED, STATES, Judge, compared
from mechnum.beliefs.readout import CUTOFFS
from mechnum.beliefs.rows import Rows
from mechnum.errors import InvalidInput
from mechnum.inputs import numbers_with_states, positive_integer


def belief_regression(
    states: Any,
    beliefs: Any,
    weights: Any = None,
    groups: Any = None,
    controls: Mapping[str, Any] | None = None,
    folds: int = 5,
    shuffles: int = 10,
    cutoffs: Sequence[float] = CUTOFFS,
    resamples: int = 1000,
    seed: int = 0,
) -> xr.Dataset:
    """Beliefs as an affine function of states, on sequences that the fit has not seen.

    Args:
        states: [row, d]. beliefs: [row, coordinate].
        weights: of the rows, such as the probability of each prefix; equal ones without them.
        groups: the sequence of each row; whole sequences are held out, and resampled. Each row is
            its own without them.
        controls: other features [row, …] by name, from which the same regression is made. The
            verdict knows "next-token distribution".
        folds: parts of the sequences that are held out in turn.
        shuffles: how often the beliefs are dealt anew to the rows, for the control "shuffled
            beliefs", which is fitted with equal weights and whose errors are means over them.
        cutoffs: of `BeliefReadout`; the one that predicts best is chosen within the training parts,
            since joined layers have more dimensions than there are likely prefixes.
        resamples: of the sequences, for the 95 % intervals.
        seed: of folds, shuffles and resamples.

    Returns:
        Over `predictor` ("states", "shuffled beliefs" and the controls), all out of fold: `mse`,
        the mean squared error over rows and coordinates, with `mse_low` and `mse_high`; `r2`,
        1 − MSE / variance, NaN where beliefs never change; `spread`, the variance of the
        predictions as a share of that of the beliefs, near 0 where they collapse to the centroid;
        `rmse` (…, coordinate). Over `control`: `gain`, how much less the states' MSE is, with
        `gain_low` and `gain_high`. `predicted` (row, coordinate), from the states; `variance` of
        the beliefs, mean over coordinates; `verdict` and `reason`, see
        `mechnum.beliefs.verdict.verdict`.

    Raises:
        InvalidInput: on values that are not finite, lengths that differ, fewer sequences than
            folds, fewer than 2 folds, and weights below 0.
    """
    truth, features = numbers_with_states(beliefs, states)
    own = {name: numbers_with_states(truth, given)[1] for name, given in (controls or {}).items()}
    if taken := {STATES, SHUFFLED} & set(own):
        raise InvalidInput(f"a control is called {taken.pop()!r}, which is made here: rename it")
    positive_integer("shuffles", shuffles)
    positive_integer("resamples", resamples)
    rows = Rows.of(len(truth), weights, groups, folds, cutoffs, seed)
    judge = Judge(rows, truth, (np.eye(truth.shape[1]),), shuffles)
    guesses = {name: judge.predicted(given) for name, given in own.items()}
    predicted, errors = judge.place(features, guesses)
    found = compared(judge, [errors], resamples).isel(place=0).drop_vars("r2_output")
    return found.assign(predicted=(("row", "coordinate"), predicted)).assign_attrs(
        folds=folds, shuffles=shuffles, cutoffs=list(cutoffs), resamples=resamples, seed=seed
    )
