"""Circuits: some of a model's edges, with their scores."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec
from mechnum.patching.circuit.graph import Graph, graph_of
from mechnum.patching.edges import Edge
from mechnum.patching.node_names import parse_node
from mechnum.patching.nodes import Node, NodeKind
from mechnum.tasks.numbers import check_integer

FileFormat = Literal["eap-ig", "neuronpedia", "graphml"]

# The component that a receiver is an input of; keys and values belong to several heads.
_OWNER: Mapping[str, NodeKind] = {"q": "head", "mlp_in": "mlp", "neuron_in": "neuron"}


@dataclass(frozen=True)
class Circuit:
    """Edges of a model.

    Attributes:
        edges: the circuit.
        scores: what its edges were chosen by, in units of the metric; empty where unknown.
        intervals: 95 % intervals of the scores; empty where unknown.
        attrs: model, task, metric and how the circuit was found.
    """

    edges: frozenset[Edge]
    scores: Mapping[Edge, float] = field(default_factory=dict)
    intervals: Mapping[Edge, tuple[float, float]] = field(default_factory=dict)
    attrs: Mapping[str, str | int | float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.edges)

    def __repr__(self) -> str:
        return f"Circuit({len(self.edges)} edges, {len(self.nodes)} nodes)"

    @classmethod
    def of(cls, edges: Iterable[Edge | str]) -> Circuit:
        """The circuit of these edges; text is read as `head 0.1 -> q 2.0`."""
        return cls(frozenset(Edge.parse(one) if isinstance(one, str) else one for one in edges))

    @classmethod
    def from_scores(
        cls,
        scores: xr.DataArray,
        n: int | None = None,
        fraction: float | None = None,
        threshold: float | None = None,
        signed: bool = False,
    ) -> Circuit:
        """The edges with the largest absolute scores.

        Args:
            scores: over (sender, receiver), as `mechnum.attribute` and `mechnum.path_effects` give;
                other dimensions are averaged, and NaN stands for no edge.
            n, fraction, threshold: how many, which share of the scored edges, or all of at least
                this size; one of them.
            signed: the largest scores, rather than the largest absolute ones.

        Raises:
            MechnumError: on scores without these dimensions, and unless one size is given.
        """
        if sum(given is not None for given in (n, fraction, threshold)) != 1:
            raise MechnumError("a circuit needs one size: give n, fraction or threshold")
        if n is not None:
            check_integer(n)
        if fraction is not None and not 0 <= fraction <= 1:
            raise MechnumError(f"fraction {fraction} of edges is none: give one from 0 to 1")
        edges, values = scored_edges(scores)
        worth = values if signed else np.abs(values)
        order = np.argsort(-worth, kind="stable")
        if threshold is not None:
            order = order[worth[order] >= threshold]
        else:
            size = n if n is not None else round((fraction or 0.0) * len(edges))
            if not 0 <= size <= len(edges):
                raise MechnumError(
                    f"{size} edges are not among {len(edges)} scored ones: ask for at most these"
                )
            order = order[:size]
        chosen = {edges[row]: float(values[row]) for row in order}
        return cls(frozenset(chosen), chosen, attrs=dict(scores.attrs))

    @classmethod
    def random(cls, spec: ModelSpec, n: int, seed: int = 0, like: Circuit | None = None) -> Circuit:
        """`n` edges of the model, each as likely: a null for circuits of that size.

        Args:
            like: its neurons are nodes of their own here too.

        Raises:
            MechnumError: where the model has fewer edges.
        """
        edges = graph_of(spec, like.edges if like else ()).edges()
        if not 0 <= n <= len(edges):
            raise MechnumError(
                f"{n} edges are not among the {len(edges)} of the model: ask for at most these"
            )
        generator = np.random.default_rng(np.random.SeedSequence(seed))
        chosen = generator.permutation(len(edges))[:n]
        return cls(frozenset(edges[row] for row in chosen), attrs={"random": seed})

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Senders, and the components that own the receivers; of keys and values the group."""
        found = {edge.sender for edge in self.edges}
        found |= {owner(edge.receiver) for edge in self.edges}
        return tuple(sorted(found, key=lambda node: (node.layer or 0, node)))

    def without(self, edges: Collection[Edge]) -> Circuit:
        """The circuit less some edges."""
        kept = self.edges - frozenset(edges)
        return Circuit(
            kept,
            {edge: score for edge, score in self.scores.items() if edge in kept},
            {edge: interval for edge, interval in self.intervals.items() if edge in kept},
            self.attrs,
        )

    def complement(self, spec: ModelSpec) -> Circuit:
        """All other edges of the model; neurons of the circuit stay nodes of their own."""
        return Circuit(frozenset(self.graph(spec).edges()) - self.edges)

    def graph(self, spec: ModelSpec) -> Graph:
        """The graph that the circuit is a part of."""
        return graph_of(spec, self.edges)

    def save(
        self, path: str | Path, spec: ModelSpec, file_format: FileFormat | None = None
    ) -> Path:
        """Write the circuit for another program, whole or not at all; `load` gives it back.

        Args:
            spec: of the circuit's model.
            file_format: "eap-ig", the graph JSON of EAP-IG and of the MIB benchmark (heads and
                whole MLPs); "neuronpedia", an attribution graph for its viewer; "graphml", for
                graph tools. Without one, `.json` is EAP-IG's and `.graphml` is GraphML.

        Raises:
            MechnumError: on another name, on edges that the model or the format does not have, on
                numbers that are not finite, and on a place that cannot be written.
        """
        from mechnum.patching.circuit.files import write_circuit

        return write_circuit(self, path, spec, file_format)

    @classmethod
    def load(cls, path: str | Path, spec: ModelSpec | None = None) -> Circuit:
        """Read a circuit that `save`, EAP-IG or MIB wrote; the content tells the format.

        Args:
            spec: of the model that the circuit is for. It says which heads share keys and values,
                which the JSON of other programs does not.

        Raises:
            MechnumError: on a file that is no circuit, or of another model than `spec`.
        """
        from mechnum.patching.circuit.files import read_circuit

        return read_circuit(path, spec)


def readers(receiver: Node, spec: ModelSpec) -> tuple[Node, ...]:
    """The components that read what a receiver does: of keys and values the heads of the group."""
    if receiver.kind not in ("k", "v") or receiver.index is None:
        return (owner(receiver),)
    first = receiver.index * spec.heads_per_group
    heads = range(first, first + spec.heads_per_group)
    return tuple(Node("head", receiver.layer, head) for head in heads)


def owner(receiver: Node) -> Node:
    """The component that reads: `head` of a q, `mlp` of an mlp_in; k and v are their group's."""
    if receiver.kind in ("k", "v"):
        return Node("kv", receiver.layer, receiver.index)
    if receiver.kind not in _OWNER:
        return receiver
    return Node(_OWNER[receiver.kind], receiver.layer, receiver.index)


def scored_edges(scores: xr.DataArray) -> tuple[list[Edge], np.ndarray]:
    """The edges that have a score, with it; dimensions but sender and receiver are averaged.

    Raises:
        MechnumError: on scores of something else, and on none.
    """
    if not isinstance(scores, xr.DataArray) or not {"sender", "receiver"} <= set(scores.dims):
        raise MechnumError("scores of edges have the dimensions sender and receiver: give such")
    rest = [dim for dim in scores.dims if dim not in ("sender", "receiver")]
    table = scores.mean(rest).transpose("sender", "receiver")
    senders = [parse_node(str(name)) for name in table["sender"].values]
    receivers = [parse_node(str(name)) for name in table["receiver"].values]
    rows, columns = np.nonzero(np.isfinite(table.values))
    if not len(rows):
        raise MechnumError("none of the edges has a score: give finite scores of some edges")
    edges = [Edge(senders[row], receivers[at]) for row, at in zip(rows, columns, strict=True)]
    return edges, table.values[rows, columns]
