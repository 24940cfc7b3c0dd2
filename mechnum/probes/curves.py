"""How well each probe reads each table, on numbers and templates that are held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr

from mechnum.errors import InvalidInput
from mechnum.inputs import seed_sequence
from mechnum.intervals import CONFIDENCE, RESAMPLES
from mechnum.probes.base import NumberProbe
from mechnum.probes.evaluation import evaluate
from mechnum.probes.tables import Label, StateTable, hold_out, said_of
from mechnum.probes.transfer import competing
from mechnum.progress import track

_MEASURED = ("accuracy", "low", "high", "absolute_error", "chance")


def probe_curves(
    probes: Mapping[str, NumberProbe],
    tables: Mapping[Label, StateTable],
    dim: str = "layer",
    value_share: float = 0.2,
    template_share: float = 0.25,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    fitted: Callable[[str, Label, NumberProbe], None] | None = None,
) -> xr.Dataset:
    """Train and test each probe on each table, such as the layers of `layer_tables`.

    What is held out is the same as in `probe_transfer` and `lens_accuracy` with these shares and
    this seed: a test row has neither its number nor its template in common with a training row.

    Args:
        probes: name → probe, which is not changed.
        dim: what the tables are, as the result calls it.
        fitted: is given the name of each probe, the label of each table, and the fitted probe.

    Returns:
        Over (probe, `dim`): `accuracy` with `low` and `high` by numbers (see `evaluate`),
        `absolute_error`, and `chance`. Over `dim`: `train_rows`, `test_rows`, `train_values` and
        `test_values`.

    Raises:
        InvalidInput: on no probes, and as `hold_out` and `fit`.
    """
    if not probes:
        raise InvalidInput("there are no probes: give one or more")
    held = hold_out(tables, value_share, template_share, seed)
    train = {label: held.train(table) for label, table in tables.items()}
    test = {label: held.test(table) for label, table in tables.items()}
    cells: dict[str, list[float]] = {name: [] for name in _MEASURED}
    todo = [(name, label) for name in probes for label in tables]
    for name, label in track(todo, "training probes"):
        probe = competing(probes[name], list(tables.values()))
        probe.fit(train[label].states, train[label].values)
        own = evaluate(probe, test[label].states, test[label].values, seed, confidence, resamples)
        for part in _MEASURED:
            cells[part].append(float(own[part]))
        if fitted is not None:
            fitted(name, label, probe)
    shape = (len(probes), len(tables))
    sizes = {}
    for part, some in (("train", train), ("test", test)):
        sizes[f"{part}_rows"] = (dim, [len(table) for table in some.values()])
        sizes[f"{part}_values"] = (dim, [len(np.unique(table.values)) for table in some.values()])
    return xr.Dataset(
        {
            **{part: (("probe", dim), np.reshape(own, shape)) for part, own in cells.items()},
            **sizes,
        },
        coords={"probe": list(probes), dim: list(tables)},
        attrs=said_of(tables)
        | {
            "value_share": value_share,
            "template_share": template_share,
            "seed": seed,
            "confidence": confidence,
        },
    )


def permuted(table: StateTable, seed: int = 0) -> StateTable:
    """The table with its numbers dealt anew to each other: what a probe reads of it is chance.

    All rows of a number get the same other one, so that rows of a number still go together.
    """
    values, which = np.unique(table.values, return_inverse=True)
    generator = np.random.default_rng(seed_sequence(seed))
    dealt = generator.permutation(values)[which.reshape(-1)]
    return StateTable(table.states, dealt, table.templates, {**table.said, "numbers": "permuted"})
