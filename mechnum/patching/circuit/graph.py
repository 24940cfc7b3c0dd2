"""The graph of a model: every write that the residual stream is the sum of, and every reader."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec
from mechnum.patching.edges import Edge, component_receivers, component_senders, possible
from mechnum.patching.nodes import Node


@dataclass(frozen=True)
class Graph:
    """Nodes and possible edges: heads by q, k and v, MLPs whole or with some neurons apart.

    Attributes:
        neurons: neurons that are nodes of their own; their MLP is then what is left of it.
    """

    spec: ModelSpec
    neurons: tuple[Node, ...] = ()

    @cached_property
    def senders(self) -> list[Node]:
        """Embedding, heads, MLPs and the neurons apart; they add up to the residual stream."""
        return [*component_senders(self.spec), *self.neurons]

    @cached_property
    def receivers(self) -> list[Node]:
        """q, k and v of heads, MLPs, the neurons apart, and the logits."""
        inputs = [Node("neuron_in", node.layer, node.index) for node in self.neurons]
        return [*component_receivers(self.spec), *inputs]

    @cached_property
    def possible(self) -> Bool[np.ndarray, "sender receiver"]:
        """Which edges exist."""
        return possible(self.senders, self.receivers, self.spec)

    @property
    def n_edges(self) -> int:
        """How many edges exist."""
        return int(self.possible.sum())

    def edges(self) -> list[Edge]:
        """All edges that exist."""
        return [
            Edge(self.senders[row], self.receivers[column])
            for row, column in zip(*np.nonzero(self.possible), strict=True)
        ]

    def mask(self, edges: Iterable[Edge]) -> Bool[Tensor, "sender receiver"]:
        """Which edges of the graph are among these.

        Raises:
            MechnumError: on an edge that the graph does not have.
        """
        mask = torch.zeros(self.possible.shape, dtype=torch.bool)
        places = torch.from_numpy(self.places(edges))
        mask[places[:, 0], places[:, 1]] = True
        return mask

    def places(self, edges: Iterable[Edge]) -> Int[np.ndarray, "edge 2"]:
        """Row and column of each edge in the table of senders and receivers.

        Raises:
            MechnumError: on an edge that the graph does not have.
        """
        row_of = {node: row for row, node in enumerate(self.senders)}
        column_of = {node: column for column, node in enumerate(self.receivers)}
        places = []
        for edge in edges:
            edge.check(self.spec)
            if edge.sender not in row_of or edge.receiver not in column_of:
                raise MechnumError(
                    f"{edge} is no edge of a circuit: circuits are made of heads, MLPs, neurons, "
                    "the embedding, q, k, v, mlp_in, neuron_in and logits"
                )
            places.append((row_of[edge.sender], column_of[edge.receiver]))
        return np.array(places, dtype=np.int64).reshape(-1, 2)


def graph_of(spec: ModelSpec, edges: Collection[Edge]) -> Graph:
    """The graph in which every neuron that the edges name is a node of its own."""
    neurons = {
        Node("neuron", node.layer, node.index)
        for edge in edges
        for node in (edge.sender, edge.receiver)
        if node.kind in ("neuron", "neuron_in")
    }
    for neuron in neurons:
        neuron.check(spec)
    return Graph(spec, tuple(sorted(neurons)))
