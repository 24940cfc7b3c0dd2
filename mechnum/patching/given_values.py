"""Values of one's own for some nodes, one for each pair, as what a patch puts in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.inputs import to_numpy
from mechnum.models.decoder import StateName
from mechnum.models.model import Model
from mechnum.models.run import Run
from mechnum.models.spec import ModelSpec
from mechnum.patching.batches import Batch
from mechnum.patching.intervention import Intervention
from mechnum.patching.local import replaced_states, states_to_keep
from mechnum.patching.node_names import parse_node
from mechnum.patching.nodes import Node
from mechnum.patching.propagate import states_for
from mechnum.patching.sources import Source
from mechnum.patching.values import Values, kept
from mechnum.tasks.pairs import Pairs

# Nodes whose value is more than one state, or as wide as a prompt is long.
_NOT_GIVEN = {"kv": "give k and v, each by itself", "pattern": "give z of the head instead"}

# The values of some nodes for all pairs of a measurement.
Table = Mapping[Node, Float[Tensor, "all width"]]


@dataclass(frozen=True)
class GivenValues(Values):
    """Given values of some nodes at the first kept position, and the base run's everywhere else.

    Attributes:
        pairs: which rows of the table belong to the base run's prompts.
    """

    base: Run
    pairs: Int[Tensor, " pair"]
    table: Table

    def at(self, name: StateName, layer: int) -> Float[Tensor, "pair pos ..."]:
        """The base run's state with the given values in it, in float32 at least."""
        state = kept(self.base, name, layer)
        state = state.to(torch.promote_types(state.dtype, torch.float32), copy=True)
        for node, rows in self.table.items():
            if (node.layer or 0) == layer and name in replaced_states(node.kind):
                place = state[:, 0] if node.index is None else state[:, 0, node.index]
                place.copy_(rows[self.pairs].view_as(place))
        return state

    def from_position(self, start: int) -> GivenValues:
        """From a later position on, where nothing is given."""
        table = self.table if start == self.base.start else {}
        return GivenValues(self.base.from_position(start), self.pairs, table)

    def of(self, table: Table) -> GivenValues:
        """Other values for the same pairs."""
        return replace(self, table=table)


@dataclass(frozen=True)
class GivenSource(Source):
    """A source that puts in given values."""

    table: Table

    def values(self, batch: Batch, base: Run, other: Run) -> Values:
        """Those of the batch's pairs."""
        return GivenValues(base, batch.index, self.table)


def given_source(model: Model, intervention: Intervention, table: Table) -> GivenSource:
    """What puts the table's values in, for nodes of any of its kinds."""
    own, replaced = states_to_keep({node.kind for node in table})
    states: set[StateName] = {*own, *replaced, *states_for(model.decoder)}
    return GivenSource(
        model.decoder, intervention, tuple(sorted(states)), (), None, {}, pair_bytes=0, table=table
    )


def checked_table(model: Model, pairs: Pairs, values: Mapping[Any, Any]) -> dict[Node, Tensor]:
    """The values by node, in the order given.

    Raises:
        MechnumError: on nodes that do not exist, are there twice or hold no value that can be
            given, on none, on values of another shape, and on values that are not finite.
    """
    if not values:
        raise MechnumError("no values were given: give [pair, width] for at least one node")
    table: dict[Node, Tensor] = {}
    for name, given in values.items():
        node = parse_node(name) if isinstance(name, str) else name
        if not isinstance(node, Node):
            raise MechnumError(f"{node!r} is no node: give each node's values by itself")
        node.check(model.spec)
        if not node.sends or node.kind in _NOT_GIVEN:
            hint = _NOT_GIVEN.get(node.kind, "it only reads, give what it reads")
            raise MechnumError(f"{node} takes no value of one's own: {hint}")
        if node in table:
            raise MechnumError(f"{node} is there twice: give its values once")
        table[node] = _checked(node, given, (len(pairs), width(node, model.spec)), model)
    return table


def width(node: Node, spec: ModelSpec) -> int:
    """How many numbers a node's value has: d_head of a head's z, 1 of a neuron, else d_model."""
    if node.kind == "neuron":
        return 1
    return spec.d_head if node.index is not None else spec.d_model


def _checked(node: Node, given: Any, expected: tuple[int, int], model: Model) -> Tensor:
    try:
        array = np.asarray(to_numpy(given), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise MechnumError(f"the values of {node} are not numbers: give [pair, width]") from error
    if node.kind == "neuron" and array.ndim == 1:
        array = array[:, None]
    if array.shape != expected:
        raise MechnumError(
            f"values of shape {array.shape} do not fit {node}: give {expected}, one row for each "
            "pair in the order of the pairs' index"
        )
    if not np.isfinite(array).all():
        raise MechnumError(f"values of {node} are not finite: leave out its pairs or the node")
    wide = torch.promote_types(model.dtype, torch.float32)
    return torch.from_numpy(array).to(device=model.device, dtype=wide)
