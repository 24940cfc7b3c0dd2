"""Which nodes a measurement is asked for, and the shape of its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec
from mechnum.patching.edges import named
from mechnum.patching.node_names import NodeNames, as_targets, parse_targets
from mechnum.patching.nodes import (
    GROUPED,
    Node,
    NodeKind,
    Target,
    check_all,
    grouped,
    layers_above,
    members,
    n_parts,
    written_at,
)

# Tables of all nodes of a kind, by the name that is asked for.
TABLES: Mapping[str, NodeKind] = {
    "heads": "head",
    "attn": "attn",
    "mlps": "mlp",
    "neurons": "neuron",
    "q": "q",
    "k": "k",
    "v": "v",
    "kv": "kv",
    "pattern": "pattern",
    "residual": "resid_post",
}
_PART_NAME: Mapping[NodeKind, str] = {
    "head": "head",
    "q": "head",
    "pattern": "head",
    **dict.fromkeys(GROUPED, "group"),
    "neuron": "neuron",
}  # type: ignore[assignment]  # GROUPED holds node kinds


@dataclass(frozen=True)
class Cell:
    """Single nodes of one kind in one layer.

    Attributes:
        parts: heads, groups or neurons; None for all that the layer has.
        columns: where in the flat table their results go.
    """

    kind: NodeKind
    layer: int
    parts: Int[Tensor, " part"] | None
    columns: Int[np.ndarray, " part"]


@dataclass(frozen=True)
class Selection:
    """What is measured, as cells of single nodes and as sets that are patched together.

    Attributes:
        dims: dimensions of the table, after those of the measurement.
        coords: labels of each dimension.
        sets: column of the flat table → nodes.
        said: for the attributes of the result.
    """

    dims: tuple[str, ...]
    coords: Mapping[str, Sequence[int] | Sequence[str]]
    said: str
    cells: tuple[Cell, ...] = ()
    sets: Mapping[int, frozenset[Node]] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the table."""
        return tuple(len(self.coords[dim]) for dim in self.dims)

    @property
    def kinds(self) -> set[NodeKind]:
        """Every kind of node in it."""
        kinds: set[NodeKind] = set()
        kinds.update(cell.kind for cell in self.cells)
        kinds.update(node.kind for nodes in self.sets.values() for node in nodes)
        return kinds

    def of_layers(self, layers: Sequence[int]) -> Selection:
        """These layers of a table of all heads, groups or neurons."""
        own = [cell for cell in self.cells if cell.layer in layers]
        count = int(np.prod(self.shape[1:]))
        cells = [
            replace(cell, columns=np.arange(count) + count * row) for row, cell in enumerate(own)
        ]
        coords = {**self.coords, "layer": [cell.layer for cell in cells]}
        return replace(self, coords=coords, cells=tuple(cells))

    def n_layers_run(self, spec: ModelSpec) -> float:
        """Layers that the patched runs of all columns recompute."""
        single = sum(
            layers_above(written_at(cell.kind, cell.layer, spec), spec) * len(cell.columns)
            for cell in self.cells
        )
        # A set is run from the first layer that it changes.
        firsts = [min(node.layer or 0 for node in nodes) for nodes in self.sets.values()]
        return float(single + sum(spec.n_layers - first for first in firsts))


def select(nodes: NodeNames, spec: ModelSpec) -> Selection:
    """A table of all nodes of a kind, or a list of nodes and sets.

    Args:
        nodes: one of "heads", "attn", "mlps", "neurons", "q", "k", "v", "kv", "pattern",
            "residual"; a list in words such as "head 9-13.*, mlp 19"; or nodes and sets of them.

    Raises:
        MechnumError: on names that are not known, on nodes that the model does not have or that
            hold nothing to patch, and on a node that is there twice.
    """
    if isinstance(nodes, str) and nodes in TABLES:
        return _table(nodes, TABLES[nodes], spec)
    if isinstance(nodes, str):
        try:
            targets = parse_targets(nodes, spec)
        except MechnumError as unknown:
            if any(character in nodes for character in " .,+["):
                raise
            raise MechnumError(
                f"unknown nodes {nodes!r}: use one of {', '.join(TABLES)}, or a list such as "
                "'head 9.6, mlp 10'"
            ) from unknown
    else:
        targets = as_targets(nodes)
    return _listed(targets, spec)


def _table(name: str, kind: NodeKind, spec: ModelSpec) -> Selection:
    if kind in ("mlp", "neuron") and spec.d_mlp == 0:
        raise MechnumError("the model has no MLPs: use nodes='heads' or nodes='attn'")
    count = n_parts(kind, spec)
    layers = list(range(spec.n_layers))
    places: list[tuple[NodeKind, int]] = [(kind, layer) for layer in layers]
    if kind == "resid_post":
        # Layer −1 is the embedding.
        layers, places = [-1, *layers], [("embed", 0), *places]
    cells = [
        Cell(of, layer, None, np.arange(count) + count * row)
        for row, (of, layer) in enumerate(places)
    ]
    coords: dict[str, list[int]] = {"layer": layers}
    if kind in _PART_NAME:
        coords[_PART_NAME[kind]] = list(range(count))
    return Selection(tuple(coords), coords, name, tuple(cells))


def _listed(targets: Sequence[Target], spec: ModelSpec) -> Selection:
    if not targets:
        raise MechnumError("no nodes were named: name at least one, such as 'head 9.6'")
    for target in targets:
        if not isinstance(target, Node) and not target:
            raise MechnumError("a set of nodes is empty: name at least one, such as 'head 9.6'")
    check_all(targets, spec)
    labels = named(targets)
    singles: list[tuple[int, Node]] = []
    sets: dict[int, frozenset[Node]] = {}
    for column, target in enumerate(targets):
        for node in members(target):
            if not node.sends:
                holder = {"mlp_in": "mlp", "neuron_in": "neuron"}.get(node.kind)
                hint = f"patch the {holder} instead" if holder else "patch what it reads"
                raise MechnumError(f"{node} holds no value to patch: {hint}")
        if isinstance(target, Node):
            singles.append((column, target))
        else:
            sets[column] = target
    cells = [
        Cell(
            own.kind,
            own.layer,
            None if own.parts is None else torch.tensor(own.parts),
            np.array(own.rows),
        )
        for own in grouped(singles)
    ]
    said = ", ".join(labels[:8]) + (f" and {len(labels) - 8} more" if len(labels) > 8 else "")
    return Selection(("node",), {"node": labels}, said, tuple(cells), sets)
