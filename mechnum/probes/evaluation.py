"""How well a probe reads numbers that it was not fitted to, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import xarray as xr
from sklearn.base import clone

from mechnum.errors import InvalidInput
from mechnum.intervals import CONFIDENCE, RESAMPLES, mean_interval
from mechnum.probes.accuracy import accuracy_by_value, value_interval
from mechnum.probes.base import NumberProbe
from mechnum.probes.residues import ResidueProbe
from mechnum.probes.values import numbers_of_states, states_and_values, value_split
from mechnum.progress import track


def evaluate(
    probe: NumberProbe,
    states: Any,
    values: Any,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> xr.Dataset:
    """Accuracy of a fitted probe, with a bootstrap interval over numbers.

    Rows of one number are read right or wrong together, so that numbers are resampled and not
    rows. A percentile interval (Efron 1979) has no width where all rows are right, or all wrong;
    then 3 / (how many numbers) bounds the rest with a confidence of 95 %.

    Args:
        states, values: [row, d] and [row], of numbers that the probe has not seen.
        seed: of the resamples.

    Returns:
        `accuracy` (share of rows), `low` and `high`; `absolute_error`, the mean distance of read
        and true number (of residues, around the circle). Over `value`: `right`, the share of its
        rows, and `n`, how many there are. `chance` is the accuracy of a guess among `classes_`.

    Raises:
        InvalidInput: as `probe.predict`, on values that are not whole or not one a row, and on a
            negative seed.
    """
    read = probe.predict(states)
    true = numbers_of_states(values, len(read))
    if isinstance(probe, ResidueProbe):
        wanted = true % probe.modulus
        distance = np.abs(read - wanted)
        distance = np.minimum(distance, probe.modulus - distance)
    else:
        wanted = true
        distance = np.abs(read - wanted)
    found = accuracy_by_value(read == wanted, true, seed, confidence, resamples)
    return found.assign(
        absolute_error=float(distance.mean()), chance=1 / len(probe.classes_)
    ).assign_attrs(probe=repr(probe))


def probe_accuracy(
    probe: NumberProbe,
    states: Any,
    values: Any,
    test_share: float = 0.05,
    seeds: Sequence[int] = range(5),
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> xr.Dataset:
    """Accuracy on held-out numbers, with intervals over seeds and over numbers.

    For each seed a share of the numbers is held out, and a clone of the probe with that seed is
    fitted to the rows of the others. Every probe gets the same rows; those that stop early hold out
    numbers of their own from them.

    Args:
        probe: with its parameters, fitted or not; it is not changed. Its `numbers` should be given,
            or are all between the extremes of `values`.
        states, values: [row, d] and [row].
        test_share: of the distinct numbers.
        seeds: of the splits and of the probe.

    Returns:
        Over `seed`: `accuracy`, with `low` and `high` over that seed's numbers, and
        `absolute_error`, `train_rows` and `test_rows`. Over (seed, value): `right`, NaN where the
        seed did not hold the number out. `mean`, the mean accuracy over seeds, with `seed_low`,
        `seed_high` resampling seeds (NaN for a single one) and `value_low`, `value_high` resampling
        the numbers that any seed held out. `chance` is the accuracy of a guess.

    Raises:
        InvalidInput: as `fit`, on no seeds or one that is given twice, and on an impossible share.
    """
    chosen = [int(seed) for seed in seeds]
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidInput(f"seeds {tuple(chosen)}: give one or more, each once")
    if not 0 < test_share < 1:
        raise InvalidInput(f"test_share is {test_share}: give a share above 0 and below 1")
    fresh = cast(NumberProbe, clone(probe))
    # Also keeps the width, against which the test states are checked.
    states, values = states_and_values(fresh, states, values)
    if "numbers" in fresh.get_params() and fresh.numbers is None:
        fresh.set_params(numbers=np.arange(values.min(), values.max() + 1))
    found = []
    for seed in track(chosen, f"fitting {type(probe).__name__}"):
        train, test = value_split(values, (1 - test_share, test_share), seed)
        fitted = cast(NumberProbe, clone(fresh)).set_params(seed=seed)
        fitted.fit(states[train], values[train])
        one = evaluate(fitted, states[test], values[test], seed, confidence, resamples)
        found.append(one.assign(train_rows=len(train), test_rows=len(test)))
    joined = cast(
        xr.Dataset,
        xr.concat(
            found,
            xr.DataArray(chosen, dims="seed", name="seed"),
            join="outer",
            combine_attrs="drop",
        ),
    )
    over_seeds = mean_interval(joined["accuracy"], "seed", chosen[0], confidence, resamples)
    n = joined["n"].fillna(0).astype(np.float64)
    right = (joined["right"].fillna(0) * n).sum("seed").values
    low, high = value_interval(right, n.sum("seed").values, chosen[0], confidence, resamples)
    return (
        joined.drop_vars(["n", "chance"])
        .assign(
            mean=over_seeds["mean"],
            seed_low=over_seeds["low"],
            seed_high=over_seeds["high"],
            value_low=low,
            value_high=high,
            chance=found[0]["chance"],
        )
        .assign_attrs(probe=repr(probe), test_share=test_share, confidence=confidence)
    )
