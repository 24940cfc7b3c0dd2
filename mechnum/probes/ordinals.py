"""Is the order of words read? Each word is left out once, and nothing is chosen by it.

Source: Štefánik et al. 2026 (arXiv 2510.26285), ordinals. The paper's counts are the best of all
training steps as seen on the word left out; here steps and strengths are chosen on the other words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import xarray as xr
from jaxtyping import Int
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut

from mechnum.errors import InvalidInput
from mechnum.inputs import seed_sequence
from mechnum.probes.base import NumberProbe
from mechnum.probes.tables import StateTable
from mechnum.progress import track


def leave_one_value_out(
    probe: NumberProbe,
    table: StateTable,
    grid: Mapping[str, Sequence[Any]] | None = None,
    permutations: int = 0,
    seed: int = 0,
) -> xr.Dataset:
    """Read each value with a probe that has seen all others.

    A value is read right when most of its rows are: ties between numbers go to none. Probes that
    stop early hold out values of their own among those that they are given, and the best
    parameters of `grid` are found by leaving out each of those in turn, so that nothing is chosen
    by the value that is tested.

    Args:
        probe: with its parameters; it is not changed. All values of the table compete.
        table: a few values, with several rows each.
        grid: parameters of the probe and what to choose from for each.
        permutations: how often everything is done again with the values dealt to the words at
            random, for `p`; each costs as much as the measurement.
        seed: of the permutations.

    Returns:
        Over `value`: `accuracy` of its rows, `read`, the number that most of them are read as (−1
        for none), and `right`, whether it is the value. `n_right` is their sum, of which a blind
        guess gets 1. With permutations `null`, over permutation, has `n_right` of each, and `p` is
        how often it is as large. Attribute `chosen` has the parameters for each value.

    Raises:
        InvalidInput: on fewer than 4 values, unknown parameters, and as `fit`.
    """
    values = np.unique(table.values)
    if len(values) < 4:
        raise InvalidInput(f"{len(values)} values leave too few to learn from: give 4 or more")
    unknown = [name for name in grid or {} if name not in probe.get_params()]
    if unknown:
        raise InvalidInput(f"{type(probe).__name__} has no parameter {unknown[0]!r}: correct it")
    fresh = cast(NumberProbe, clone(probe)).set_params(numbers=values)
    generator = np.random.default_rng(seed_sequence(seed))
    orders = [np.arange(len(values))]
    orders += [generator.permutation(len(values)) for _ in range(permutations)]
    what = "leaving out each value"
    counts, found = [], None
    for order in track(orders, what):
        dealt = values[order][np.searchsorted(values, table.values)]
        one = _read_each(fresh, StateTable(table.states, dealt), grid)
        counts.append(int(one["right"].sum()))
        found = one if found is None else found
    assert found is not None
    found = found.assign(n_right=counts[0])
    if permutations:
        null = np.array(counts[1:])
        p = (1 + int((null >= counts[0]).sum())) / (1 + permutations)
        found = found.assign(null=("permutation", null), p=p)
    return found.assign_attrs(table.said, probe=repr(fresh), seed=seed)


def _read_each(
    probe: NumberProbe, table: StateTable, grid: Mapping[str, Sequence[Any]] | None
) -> xr.Dataset:
    values = np.unique(table.values)
    accuracy, read, chosen = [], [], []
    for value in values:
        own = table.values == value
        fitted = _fitted(probe, table.select(~own), grid)
        numbers = fitted.predict(table.states[own])
        accuracy.append(float(np.mean(numbers == value)))
        read.append(_most(numbers))
        chosen.append({name: fitted.get_params()[name] for name in grid or {}})
    return xr.Dataset(
        {
            "accuracy": ("value", accuracy),
            "read": ("value", read),
            "right": ("value", np.array(read) == values),
        },
        coords={"value": values},
        attrs={"chosen": repr(chosen)},
    )


def _fitted(
    probe: NumberProbe, table: StateTable, grid: Mapping[str, Sequence[Any]] | None
) -> NumberProbe:
    if not grid:
        return cast(NumberProbe, clone(probe)).fit(table.states, table.values)
    search = GridSearchCV(
        probe, {name: list(options) for name, options in grid.items()}, cv=LeaveOneGroupOut()
    )
    search.fit(table.states, table.values, groups=table.values)
    return cast(NumberProbe, search.best_estimator_)


def _most(numbers: Int[np.ndarray, " row"]) -> int:
    """The commonest number; −1 where two are."""
    distinct, counts = np.unique(numbers, return_counts=True)
    best = distinct[counts == counts.max()]
    return int(best[0]) if len(best) == 1 else -1
