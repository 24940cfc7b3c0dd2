"""Nodes: the places of a model where a value is read or written.

A node is named as the field names it: `head 13.4`, `mlp 19`, `neuron 20.7741`, `v 5.g1`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec

NodeKind = Literal[
    "embed",
    "head",
    "attn",
    "mlp",
    "neuron",
    "resid_pre",
    "resid_mid",
    "resid_post",
    "q",
    "k",
    "v",
    "kv",
    "pattern",
    "mlp_in",
    "neuron_in",
    "logits",
]

KINDS: frozenset[str] = frozenset(get_args(NodeKind))
# Keys and values have one entry for each group of query heads that shares them.
GROUPED: frozenset[str] = frozenset({"k", "v", "kv"})
PER_HEAD: frozenset[str] = frozenset({"head", "q", "pattern"})
PER_NEURON: frozenset[str] = frozenset({"neuron", "neuron_in"})
_INDEXED = GROUPED | PER_HEAD | PER_NEURON
_WITHOUT_LAYER = frozenset({"embed", "logits"})
_MLP = frozenset({"mlp", "neuron", "mlp_in", "neuron_in"})
_READ_ONLY = frozenset({"mlp_in", "neuron_in", "logits"})
RECEIVING: frozenset[str] = frozenset({"q", "k", "v"}) | _READ_ONLY
# What an index is called, for messages.
_INDEX_NAME = {
    **dict.fromkeys(PER_HEAD, "head"),
    **dict.fromkeys(GROUPED, "key-value group"),
    **dict.fromkeys(PER_NEURON, "neuron"),
}


@dataclass(frozen=True, order=True)
class Node:
    """One place of a model.

    Attributes:
        kind: `embed`, `head`, `attn`, `mlp`, `neuron` and the residual states `resid_pre`,
            `resid_mid`, `resid_post` hold what is written; `q`, `k`, `v` (by key-value group),
            `kv` (both of a group) and `pattern` are states of attention; `mlp_in`, `neuron_in`
            and `logits` only read.
        layer: counted from 0; None for `embed` and `logits`.
        index: head, key-value group or neuron; None for the other kinds.

    Raises:
        MechnumError: on another kind, and on a layer or an index that is missing or too many.
    """

    kind: NodeKind
    layer: int | None = None
    index: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise MechnumError(f"unknown node {self.kind!r}: use one of {', '.join(sorted(KINDS))}")
        if (self.layer is None) != (self.kind in _WITHOUT_LAYER):
            need = "has no layer" if self.kind in _WITHOUT_LAYER else "needs a layer"
            raise MechnumError(f"{self.kind} {need}: write it as {example(self.kind)!r}")
        if (self.index is None) != (self.kind not in _INDEXED):
            if self.kind in _INDEXED:
                raise MechnumError(
                    f"{self.kind} needs a {_INDEX_NAME[self.kind]}: "
                    f"write it as {example(self.kind)!r}"
                )
            raise MechnumError(
                f"{self.kind} has no parts, so no number {self.index} of them: "
                f"write it as {example(self.kind)!r}"
            )
        for number in (self.layer, self.index):
            if number is not None and number < 0:
                raise MechnumError(f"{self.kind} {number} is negative: count from 0")

    def __str__(self) -> str:
        if self.layer is None:
            return self.kind
        if self.index is None:
            return f"{self.kind} {self.layer}"
        return f"{self.kind} {self.layer}.{'g' if self.kind in GROUPED else ''}{self.index}"

    @property
    def receives(self) -> bool:
        """Whether a path can end here."""
        return self.kind in RECEIVING

    @property
    def sends(self) -> bool:
        """Whether a path can begin here, and whether a value can be patched here."""
        return self.kind not in _READ_ONLY

    def check(self, spec: ModelSpec) -> None:
        """Is there such a node?

        Raises:
            MechnumError: on layers, heads, groups and neurons that the model does not have, and on
                a middle residual in parallel blocks, where none exists.
        """
        if self.layer is not None and self.layer >= spec.n_layers:
            raise MechnumError(
                f"{self} does not exist: the model has layers 0 to {spec.n_layers - 1}"
            )
        if self.kind in _MLP and spec.d_mlp == 0:
            raise MechnumError(f"{self} does not exist: the model has no MLPs")
        if self.kind == "resid_mid" and spec.parallel:
            raise MechnumError(
                f"{self} does not exist: attention and MLP of a parallel block both read "
                "resid_pre: use resid_pre or resid_post"
            )
        if self.index is not None and self.index >= (count := n_parts(self.kind, spec)):
            raise MechnumError(
                f"{self} does not exist: a layer has {_INDEX_NAME[self.kind]}s 0 to {count - 1}"
            )

    def written_at(self, spec: ModelSpec) -> int:
        """The first point of the residual stream that holds what this node writes.

        Points are counted upwards: 2l is `resid_pre` of layer l, 2l + 1 its `resid_mid`, and
        2 × n_layers the last residual.
        """
        return written_at(self.kind, self.layer or 0, spec)

    def read_at(self, spec: ModelSpec) -> int:
        """The point of the residual stream that this node reads; counted as in `written_at`."""
        return read_at(self.kind, self.layer or 0, spec)


def written_at(kind: NodeKind, layer: int, spec: ModelSpec) -> int:
    """`Node.written_at` of the nodes of one kind in one layer."""
    if kind in _WITHOUT_LAYER:
        return 0 if kind == "embed" else 2 * spec.n_layers
    if kind in ("resid_pre", "resid_mid", "resid_post"):
        return 2 * layer + ("resid_pre", "resid_mid", "resid_post").index(kind)
    return 2 * layer + (2 if spec.parallel or kind in _MLP else 1)


def read_at(kind: NodeKind, layer: int, spec: ModelSpec) -> int:
    """`Node.read_at` of the nodes of one kind in one layer."""
    if kind in _WITHOUT_LAYER or kind in ("resid_pre", "resid_mid", "resid_post"):
        return written_at(kind, layer, spec)
    return 2 * layer + (1 if kind in _MLP and not spec.parallel else 0)


def layers_above(point: int, spec: ModelSpec) -> float:
    """How many layers read the residual stream at a point or above, halves counted."""
    return spec.n_layers - point / 2


# One node, or several that are patched together.
Target = Node | frozenset[Node]


def members(target: Target) -> tuple[Node, ...]:
    """The nodes of a target, in order."""
    return (target,) if isinstance(target, Node) else tuple(sorted(target, key=_order))


def label(target: Target) -> str:
    """`head 9.6`, or `head 9.6 + head 9.9` for a set."""
    return " + ".join(map(str, members(target)))


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of one kind in one layer, which are computed together.

    Attributes:
        layer: 0 for the embedding and the logits.
        parts: heads, groups or neurons; None where a layer has one node of the kind.
        rows: place of each of the nodes among those that were grouped.
    """

    kind: NodeKind
    layer: int
    parts: list[int] | None
    rows: list[int]


def grouped(nodes: Iterable[tuple[int, Node]]) -> list[NodeGroup]:
    """Numbered nodes by kind and layer, from the first layer to the last."""
    found: dict[tuple[int, NodeKind], list[tuple[int, Node]]] = {}
    for row, node in nodes:
        found.setdefault((node.layer or 0, node.kind), []).append((row, node))
    groups = []
    for (layer, kind), own in sorted(found.items(), key=lambda item: item[0]):
        parts = [node.index for _, node in own if node.index is not None]
        groups.append(NodeGroup(kind, layer, parts or None, [row for row, _ in own]))
    return groups


def n_parts(kind: str, spec: ModelSpec) -> int:
    """How many nodes of this kind a layer has."""
    if kind in GROUPED:
        return spec.n_kv_heads
    if kind in PER_HEAD:
        return spec.n_heads
    return spec.d_mlp if kind in PER_NEURON else 1


def layer_nodes(kind: NodeKind, layer: int, spec: ModelSpec) -> list[Node]:
    """All nodes of one kind in one layer; the embedding and the logits have none of their own."""
    if kind in _WITHOUT_LAYER:
        return [Node(kind)]
    if kind not in _INDEXED:
        return [Node(kind, layer)]
    return [Node(kind, layer, index) for index in range(n_parts(kind, spec))]


def all_nodes(kind: NodeKind, spec: ModelSpec) -> list[Node]:
    """All nodes of one kind, from the first layer to the last."""
    if kind in _WITHOUT_LAYER:
        return [Node(kind)]
    return [node for layer in range(spec.n_layers) for node in layer_nodes(kind, layer, spec)]


def example(kind: str) -> str:
    """How a node of this kind is written."""
    if kind in _WITHOUT_LAYER:
        return kind
    if kind not in _INDEXED:
        return f"{kind} 3"
    return f"{kind} 3.g1" if kind in GROUPED else f"{kind} 3.1"


def check_all(targets: Iterable[Target], spec: ModelSpec) -> None:
    """Refuses targets of which the model lacks a node; see `Node.check`."""
    for target in targets:
        for node in members(target):
            node.check(spec)


def _order(node: Node) -> tuple[int, str, int]:
    return (-1 if node.layer is None else node.layer, node.kind, node.index or 0)
