"""Edges: what one node reads of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec
from mechnum.patching.node_names import parse_node
from mechnum.patching.nodes import RECEIVING, Node, Target, all_nodes, label, members


@dataclass(frozen=True, order=True)
class Edge:
    """The part of `receiver`'s input that `sender` wrote.

    Raises:
        MechnumError: where the sender writes nothing, or the receiver has no input of its own.
    """

    sender: Node
    receiver: Node

    def __post_init__(self) -> None:
        if not self.sender.sends:
            raise MechnumError(f"{self.sender} writes nothing, so no path begins there")
        if not self.receiver.receives:
            raise MechnumError(
                f"{self.receiver} has no input of its own: a path ends at one of "
                f"{', '.join(sorted(RECEIVING))}"
            )

    def __str__(self) -> str:
        return f"{self.sender} -> {self.receiver}"

    @classmethod
    def parse(cls, text: str) -> Edge:
        """`head 0.1 -> q 2.0`.

        Raises:
            MechnumError: on text that names no edge.
        """
        sender, arrow, receiver = text.partition("->")
        if not arrow:
            raise MechnumError(f"{text!r} names no edge: write it as 'head 0.1 -> q 2.0'")
        return cls(parse_node(sender), parse_node(receiver))

    def check(self, spec: ModelSpec) -> None:
        """Can the receiver read what the sender writes?

        Raises:
            MechnumError: where one of the nodes does not exist in the model, or the receiver reads
                the residual stream before the sender has written.
        """
        self.sender.check(spec)
        self.receiver.check(spec)
        if not is_possible(self.sender, self.receiver, spec):
            same = "in a parallel block both read resid_pre, " if spec.parallel else ""
            raise MechnumError(
                f"{self} is impossible: {same}{self.receiver} reads the residual stream before "
                f"{self.sender} writes to it: choose a later receiver"
            )


def is_possible(sender: Target, receiver: Target, spec: ModelSpec) -> bool:
    """Whether some receiver of the set reads after some sender of the set has written."""
    first = min(node.written_at(spec) for node in members(sender))
    last = max(node.read_at(spec) for node in members(receiver))
    return first <= last


def possible(
    senders: Sequence[Target], receivers: Sequence[Target], spec: ModelSpec
) -> Bool[np.ndarray, "sender receiver"]:
    """Which of the edges can carry something."""
    written = np.array([min(n.written_at(spec) for n in members(s)) for s in senders])
    read = np.array([max(n.read_at(spec) for n in members(r)) for r in receivers])
    return written[:, None] <= read[None, :]


def component_senders(spec: ModelSpec) -> list[Node]:
    """The parts that the residual stream is the sum of: embedding, heads and MLPs."""
    senders = [Node("embed")]
    for layer in range(spec.n_layers):
        senders += [Node("head", layer, head) for head in range(spec.n_heads)]
        if spec.d_mlp:
            senders.append(Node("mlp", layer))
    return senders


def component_receivers(spec: ModelSpec) -> list[Node]:
    """Every input of its own that a component has: q, k and v of heads, MLPs, and the logits."""
    receivers: list[Node] = []
    for layer in range(spec.n_layers):
        receivers += [Node("q", layer, head) for head in range(spec.n_heads)]
        receivers += [Node("k", layer, group) for group in range(spec.n_kv_heads)]
        receivers += [Node("v", layer, group) for group in range(spec.n_kv_heads)]
        if spec.d_mlp:
            receivers.append(Node("mlp_in", layer))
    return [*receivers, Node("logits")]


def named(targets: Sequence[Target]) -> list[str]:
    """The labels of targets, for coordinates of tables.

    Raises:
        MechnumError: where a target is there twice.
    """
    labels = [label(target) for target in targets]
    if len(set(labels)) < len(labels):
        twice = next(name for name in labels if labels.count(name) > 1)
        raise MechnumError(f"{twice} is there twice: name each target once")
    return labels


def receivers_of(kind: str, spec: ModelSpec) -> list[Node]:
    """All nodes of one receiving kind."""
    if kind not in RECEIVING:
        raise MechnumError(
            f"unknown receivers {kind!r}: use one of {', '.join(sorted(RECEIVING))}, or nodes"
        )
    return all_nodes(kind, spec)  # type: ignore[arg-type]  # a member of RECEIVING
