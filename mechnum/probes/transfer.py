"""Does a probe read states that it was not trained on: other layers, models, contexts, texts?

Source: Štefánik et al. 2026 (arXiv 2510.26285), sections on transfer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

import numpy as np
import xarray as xr
from sklearn.base import clone

from mechnum.errors import InvalidInput
from mechnum.inputs import seed_sequence
from mechnum.intervals import CONFIDENCE, RESAMPLES
from mechnum.probes.base import NumberProbe
from mechnum.probes.evaluation import evaluate
from mechnum.probes.space_maps import MapKind, fit_map
from mechnum.probes.tables import Label, StateTable, hold_out, said_of
from mechnum.progress import track

Align = Literal["none"] | MapKind
Pairing = Literal["same", "shuffled"]


def probe_transfer(
    probe: NumberProbe,
    tables: Mapping[Label, StateTable],
    align: Align = "none",
    value_share: float = 0.2,
    template_share: float = 0.25,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    sources: Sequence[Label] | None = None,
    pairing: Pairing = "same",
) -> xr.Dataset:
    """Train a probe on each table and test it on all of them.

    The same numbers are held out of all tables, and the same templates: a test row has neither
    its number nor its template in common with a training row of any table.

    Args:
        probe: with its parameters, fitted or not; it is not changed.
        tables: of `layer_tables`, `context_tables`, or one for each model or kind of text.
        align: what states are taken through before a probe of another table reads them. "none"
            reads them as they are; "procrustes" turns, scales and shifts them, "regression" is any
            affine map. Both are fitted from the mean states of the training numbers in one table to
            those in the other. Tables of different width need one.
        value_share, template_share: of the numbers and of each table's templates, held out;
            0 of the templates holds out numbers alone.
        seed: of what is held out, and of the pairing.
        sources: the tables that probes are trained on; all by default.
        pairing: "shuffled" fits alignments to mean states of other numbers, each training number
            paired with one at random: what an alignment alone achieves.

    Returns:
        Over (trained_on, tested_on): `accuracy`, with `low` and `high` by numbers (see
        `evaluate`), and `absolute_error`. Over trained_on `train_rows`, over tested_on `test_rows`
        and `test_values`; `chance`.

    Raises:
        InvalidInput: on an unknown alignment, pairing or source, on tables of different width
            without an alignment, on tables without a training number in common, and as `hold_out`
            and `fit`.
    """
    _check(align, tables)
    chosen = list(tables if sources is None else sources)
    if sources is not None and (not chosen or any(name not in tables for name in chosen)):
        raise InvalidInput(f"sources {chosen}: name one or more of {list(tables)}")
    if pairing not in get_args(Pairing):
        raise InvalidInput(f"unknown pairing {pairing!r}: use 'same' or 'shuffled'")
    held = hold_out(tables, value_share, template_share, seed)
    train = {name: held.train(table) for name, table in tables.items()}
    test = {name: held.test(table) for name, table in tables.items()}
    fresh = competing(probe, list(tables.values()))
    mapped = train
    if pairing == "shuffled":
        mapped = {name: _repaired(table, seed) for name, table in train.items()}
    rows = []
    for own in track(chosen, "training on each table"):
        fitted = cast(NumberProbe, clone(fresh))
        fitted.fit(train[own].states, train[own].values)
        cells = []
        for other in tables:
            states = test[other].states
            if align != "none" and other != own:
                states = fit_map(align, mapped[other], train[own])(states)
            cells.append(evaluate(fitted, states, test[other].values, seed, confidence, resamples))
        rows.append(_joined(cells, "tested_on", list(tables)))
    found = _joined(rows, "trained_on", chosen)
    train_rows = {"train_rows": ("trained_on", [len(train[name]) for name in chosen])}
    return found.assign(train_rows | _sizes(test)).assign_attrs(
        said_of(tables),
        probe=repr(probe),
        align=align,
        pairing=pairing,
        seed=seed,
        confidence=confidence,
    )


def leave_one_out_transfer(
    probe: NumberProbe,
    tables: Mapping[Label, StateTable],
    value_share: float = 0.2,
    template_share: float = 0.25,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
) -> xr.Dataset:
    """Train one probe on all tables but one, and test it on that one, for each.

    With layers, it shows whether one code goes through the model: Štefánik et al. 2026 read
    98–100 % in the middle of Llama-3.2-1B, and next to nothing at its ends. Held out are numbers
    and templates as in `probe_transfer`.

    Returns:
        Over tested_on: `accuracy`, `low`, `high`, `absolute_error`, `test_rows`, `test_values`;
        `chance`.

    Raises:
        InvalidInput: on fewer than two tables, and as `probe_transfer`.
    """
    if len(tables) < 2:
        raise InvalidInput("1 table leaves none to train on: give two or more")
    _check("none", tables)
    held = hold_out(tables, value_share, template_share, seed)
    test = {name: held.test(table) for name, table in tables.items()}
    fresh = competing(probe, list(tables.values()))
    cells = []
    for left_out in track(list(tables), "leaving out each table"):
        others = [held.train(table) for name, table in tables.items() if name != left_out]
        fitted = cast(NumberProbe, clone(fresh)).fit(
            np.concatenate([table.states for table in others]),
            np.concatenate([table.values for table in others]),
        )
        own = test[left_out]
        cells.append(evaluate(fitted, own.states, own.values, seed, confidence, resamples))
    found = _joined(cells, "tested_on", list(tables)).assign(_sizes(test))
    return found.assign_attrs(said_of(tables), probe=repr(probe), seed=seed, confidence=confidence)


def competing(probe: NumberProbe, tables: Sequence[StateTable]) -> NumberProbe:
    """A clone that all numbers between the extremes of the tables compete in, unless it says."""
    fresh = cast(NumberProbe, clone(probe))
    if "numbers" in fresh.get_params() and fresh.numbers is None:
        low = min(int(table.values.min()) for table in tables)
        high = max(int(table.values.max()) for table in tables)
        fresh.set_params(numbers=np.arange(low, high + 1))
    return fresh


def _repaired(table: StateTable, seed: int) -> StateTable:
    """The states of each number as those of another."""
    numbers, which = np.unique(table.values, return_inverse=True)
    generator = np.random.default_rng(seed_sequence(seed).spawn(2)[1])
    return StateTable(table.states, generator.permutation(numbers)[which], table.templates)


def _check(align: str, tables: Mapping[Label, StateTable]) -> None:
    if align not in ("none", *get_args(MapKind)):
        raise InvalidInput(f"unknown alignment {align!r}: use 'none', 'procrustes' or 'regression'")
    widths = {name: table.states.shape[1] for name, table in tables.items()}
    if align == "none" and len(set(widths.values())) > 1:
        raise InvalidInput(f"the tables have different widths ({widths}): align them")


def _joined(cells: list[xr.Dataset], dim: str, labels: list[Label]) -> xr.Dataset:
    """Cells side by side, without what is of single numbers; `chance` is the same in all."""
    kept = [cell.drop_vars(["right", "n", "value", "chance"], errors="ignore") for cell in cells]
    joined = xr.concat(
        kept, xr.DataArray(labels, dims=dim, name=dim), combine_attrs="drop", coords="minimal"
    )
    return cast(xr.Dataset, joined).assign(chance=cells[0]["chance"])


def _sizes(test: Mapping[Label, StateTable]) -> dict[str, tuple[str, list[int]]]:
    return {
        "test_rows": ("tested_on", [len(table) for table in test.values()]),
        "test_values": ("tested_on", [len(np.unique(table.values)) for table in test.values()]),
    }
