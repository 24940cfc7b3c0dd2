"""What a probe is trained and tested on: states at numbers, with the templates that they are of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from mechnum.errors import InvalidInput, MechnumError
from mechnum.inputs import seed_sequence
from mechnum.probes.values import value_split

Label = str | int


@dataclass(frozen=True, eq=False)
class StateTable:
    """States of one place, a row for each number in each text.

    Attributes:
        templates: the template of each row; None where texts have none in common.
        said: where the states are from, such as the fingerprints of model and prompts; results
            of the table carry it.

    Raises:
        InvalidInput: the lengths differ.
    """

    states: Float[np.ndarray, "row d"]
    values: Int[np.ndarray, " row"]
    templates: Int[np.ndarray, " row"] | None = None
    said: Mapping[str, str | int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("values", "templates"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.states):
                raise InvalidInput(
                    f"{len(self.states)} states and {len(column)} {name}: give one a state"
                )

    def __len__(self) -> int:
        return len(self.values)

    def select(self, rows: Bool[np.ndarray, " row"] | Int[np.ndarray, " chosen"]) -> StateTable:
        """Some of the rows."""
        templates = None if self.templates is None else self.templates[rows]
        return StateTable(self.states[rows], self.values[rows], templates, self.said)

    def joined(self, *others: StateTable) -> StateTable:
        """The rows of this table and of others, from all of which templates are known or not."""
        tables = [self, *others]
        templates = [table.templates for table in tables if table.templates is not None]
        return StateTable(
            np.concatenate([table.states for table in tables]),
            np.concatenate([table.values for table in tables]),
            np.concatenate(templates) if len(templates) == len(tables) else None,
            said_of(dict(enumerate(tables))),
        )


def layer_table(collected: xr.Dataset, layer: int) -> StateTable:
    """The states of one layer of `collect_states`.

    Raises:
        MechnumError: the layer was not collected.
    """
    layers = collected["layer"].values.tolist()
    if layer not in layers:
        raise MechnumError(f"layer {layer} was not collected: use one of {layers}")
    states = collected["states"].values[layers.index(layer)]
    return StateTable(
        np.asarray(states),
        collected["value"].values,
        collected["template"].values,
        {**collected.attrs, "layer": layer},
    )


def layer_tables(collected: xr.Dataset) -> dict[Label, StateTable]:
    """All layers of `collect_states`, each a table of the same rows."""
    return {layer: layer_table(collected, layer) for layer in collected["layer"].values.tolist()}


def context_tables(collected: xr.Dataset, layer: int) -> dict[Label, StateTable]:
    """One layer of `collect_states`, a table for each context.

    Raises:
        MechnumError: the layer was not collected.
    """
    table, names = layer_table(collected, layer), collected["context"].values
    return {str(name): table.select(names == name) for name in np.unique(names)}


def said_of(tables: Mapping[Label, StateTable]) -> dict[str, str | int | float]:
    """What is said of the origin of all tables; where they differ, JSON of table → value."""
    names = dict.fromkeys(name for table in tables.values() for name in table.said)
    found: dict[str, str | int | float] = {}
    for name in names:
        own = {label: table.said.get(name) for label, table in tables.items()}
        first, *others = own.values()
        alike = first is not None and all(other == first for other in others)
        found[name] = first if alike else json.dumps(own)  # type: ignore[assignment]
    return found


@dataclass(frozen=True, eq=False)
class Held:
    """Numbers and templates that are kept from training.

    Attributes:
        templates: none where a table says nothing of templates, or has only one.
    """

    values: Int[np.ndarray, " value"]
    templates: Int[np.ndarray, " template"]

    def train_rows(self, table: StateTable) -> Bool[np.ndarray, " row"]:
        """Whether neither the number nor the template is held out."""
        rows = ~np.isin(table.values, self.values)
        if table.templates is not None:
            rows &= ~np.isin(table.templates, self.templates)
        return rows

    def test_rows(self, table: StateTable) -> Bool[np.ndarray, " row"]:
        """Whether number and template are both held out."""
        rows = np.isin(table.values, self.values)
        if table.templates is not None and len(self.templates):
            rows &= np.isin(table.templates, self.templates)
        return rows

    def train(self, table: StateTable) -> StateTable:
        """The training rows."""
        return table.select(self.train_rows(table))

    def test(self, table: StateTable) -> StateTable:
        """The test rows."""
        return table.select(self.test_rows(table))


def hold_out(
    tables: Mapping[Label, StateTable],
    value_share: float = 0.2,
    template_share: float = 0.25,
    seed: int = 0,
) -> Held:
    """Deal the numbers and the templates of all tables, the same for each table.

    Templates are dealt table by table, so that each has some of its own held out.

    Raises:
        InvalidInput: on no tables, on shares that are not above 0 and below 1 (`template_share`
            may be 0), and where a table has no rows to train on or to test on.
    """
    if not tables:
        raise InvalidInput("there are no tables of states: give one or more")
    if not 0 < value_share < 1 or not 0 <= template_share < 1:
        raise InvalidInput(
            f"shares of {value_share} and {template_share} cannot be held out: give shares above "
            "0 and below 1"
        )
    values = np.unique(np.concatenate([table.values for table in tables.values()]))
    held = values[value_split(values, (1 - value_share, value_share), seed)[1]]
    generator = np.random.default_rng(seed_sequence(seed).spawn(1)[0])
    templates: set[int] = set()
    dealt: set[int] = set()
    for table in tables.values():
        own = set() if table.templates is None else set(np.unique(table.templates).tolist())
        fresh = np.array(sorted(own - dealt), dtype=np.int64)
        if len(fresh) > 1 and template_share:
            count = min(max(1, round(template_share * len(fresh))), len(fresh) - 1)
            templates |= set(generator.permutation(fresh)[:count].tolist())
        dealt |= own
    found = Held(held, np.array(sorted(templates), dtype=np.int64))
    for name, table in tables.items():
        if not len(found.train(table)) or not len(found.test(table)):
            raise InvalidInput(
                f"{name} has no rows to train on or none to test on: give more texts or numbers"
            )
    return found
