"""Runs of a model in which only the edges of a circuit carry live values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mechnum.models.decoder import StateName
from mechnum.models.memory import rows_at_a_time
from mechnum.models.spec import ModelSpec
from mechnum.patching.circuit.graph import Graph
from mechnum.patching.local import Place
from mechnum.patching.nodes import Node, NodeKind
from mechnum.patching.propagate import state_at


def pair_bytes(graph: Graph, n_positions: int) -> int:
    """About what one circuit holds for one pair, in bytes."""
    inputs = 3 * graph.spec.n_heads + len(graph.neurons)
    return 4 * n_positions * graph.spec.d_model * (len(graph.senders) + 2 * inputs)


@torch.no_grad()
def circuit_scores(
    place: Place,
    graph: Graph,
    masks: Bool[Tensor, "circuit sender receiver"],
    score: Callable[[Float[Tensor, "row pair d_model"]], Float[Tensor, "row pair"]],
) -> Float[Tensor, "circuit pair"]:
    """The score of each circuit: edges outside it carry the other values.

    A receiver reads the live residual stream, with the write of each sender whose edge is not in
    the circuit replaced by its other value.
    """
    n_pairs, n_positions, _ = place.base.last.shape
    size = rows_at_a_time(n_pairs * pair_bytes(graph, n_positions))
    scores = [
        score(_CircuitRun(place, graph, part.to(place.decoder.device)).last())
        for part in masks.split(size)
    ]
    return torch.cat(scores)


class _CircuitRun:
    """Some circuits on the pairs of a place, from the embedding to the last residual.

    Attributes:
        changes: other value minus live value of every sender that has been computed.
    """

    def __init__(
        self, place: Place, graph: Graph, masks: Bool[Tensor, "circuit sender receiver"]
    ) -> None:
        self.place = place
        self.decoder = place.decoder
        self.graph = graph
        # Heads of a parallel block write before its MLP is computed, which reads none of it.
        possible = torch.from_numpy(graph.possible).to(masks.device)
        self.removed = (possible & ~masks).to(place.wide)
        self.row_of = {node: row for row, node in enumerate(graph.senders)}
        self.column_of = {node: column for column, node in enumerate(graph.receivers)}
        self.changes = torch.zeros(
            len(graph.senders),
            len(masks),
            *place.base.last.shape,
            dtype=place.wide,
            device=self.decoder.device,
        )

    def last(self) -> Float[Tensor, "circuit pair d_model"]:
        """What the final norm reads at the last position."""
        base = state_at(self.place.base, 0)
        resid = base.expand(len(self.removed), *base.shape)
        self._changed([Node("embed")], self.place.difference("resid_pre", 0)[None, None])
        for layer in range(self.decoder.spec.n_layers):
            attention = self._attention(layer, resid)
            mid = resid + attention
            reads = resid if self.decoder.spec.parallel else mid
            resid = mid + self._mlp(layer, reads) if self.decoder.spec.d_mlp else mid
        return self._inputs([Node("logits")], resid)[:, 0, :, -1]

    def _inputs(
        self, receivers: Sequence[Node], resid: Float[Tensor, "circuit pair pos d_model"]
    ) -> Float[Tensor, "circuit receiver pair pos d_model"]:
        """What each of the receivers reads."""
        columns = [self.column_of[node] for node in receivers]
        removed = self.removed[:, :, columns]
        carried = torch.einsum("scptd,csr->crptd", self.changes, removed)
        return (resid.to(carried.dtype).unsqueeze(1) + carried).to(self.decoder.dtype)

    def _attention(
        self, layer: int, resid: Float[Tensor, "circuit pair pos d_model"]
    ) -> Float[Tensor, "circuit pair pos d_model"]:
        decoder, base = self.decoder, self.place.base
        attn = decoder.weights.blocks[layer].attn
        q = self._projected(layer, "q", attn.W_Q, attn.b_Q, resid)
        k = self._projected(layer, "k", attn.W_K, attn.b_K, resid)
        v = self._projected(layer, "v", attn.W_V, attn.b_V, resid)
        past = base.past(layer)
        pattern = decoder.pattern(
            decoder.rotated(q, base.start), decoder.rotated(k, base.start), past
        )
        z = decoder.mix(pattern, v, past)
        change = self.place.values.at("z", layer).to(self.place.wide) - z.to(self.place.wide)
        heads = [Node("head", layer, head) for head in range(decoder.spec.n_heads)]
        W_O = attn.W_O.to(self.place.wide)
        self._changed(heads, torch.einsum("cpthd,hdm->hcptm", change, W_O))
        return decoder.attn_out(layer, z)

    def _projected(
        self, layer: int, kind: NodeKind, weight: Tensor, bias: Tensor | None, resid: Tensor
    ) -> Float[Tensor, "circuit pair pos part d_head"]:
        """Queries, keys or values, each part from an input of its own."""
        parts = [Node(kind, layer, part) for part in range(len(weight))]
        normed = self.decoder.attn_norm(layer, self._inputs(parts, resid))
        projected = torch.einsum("cgptm,gmd->cptgd", normed, weight)
        return projected if bias is None else projected + bias

    def _mlp(
        self, layer: int, resid: Float[Tensor, "circuit pair pos d_model"]
    ) -> Float[Tensor, "circuit pair pos d_model"]:
        decoder = self.decoder
        whole = self._inputs([Node("mlp_in", layer)], resid)[:, 0]
        hidden = decoder.mlp_hidden(layer, decoder.mlp_norm(layer, whole))
        neurons = [node for node in self.graph.neurons if node.layer == layer]
        if not neurons:
            out = decoder.mlp_out(layer, hidden)
            change = self.place.values.at("mlp_out", layer).to(self.place.wide) - out
            self._changed([Node("mlp", layer)], change.unsqueeze(0))
            return out
        apart = torch.tensor([node.index for node in neurons], device=hidden.device)
        inputs = self._inputs([Node("neuron_in", layer, node.index) for node in neurons], resid)
        own = [
            decoder.mlp_hidden(layer, decoder.mlp_norm(layer, read), neuron)
            for read, neuron in zip(inputs.unbind(1), apart.unsqueeze(1), strict=True)
        ]
        hidden = hidden.index_copy(3, apart, torch.cat(own, dim=3))
        self._neurons_changed(layer, neurons, apart, hidden)
        return decoder.mlp_out(layer, hidden)

    def _neurons_changed(
        self,
        layer: int,
        neurons: Sequence[Node],
        apart: Tensor,
        hidden: Float[Tensor, "circuit pair pos d_mlp"],
    ) -> None:
        """Each neuron apart writes for itself, the MLP's node for all others."""
        wide = self.place.wide
        change = self.place.values.at("mlp_hidden", layer).to(wide) - hidden.to(wide)
        mlp = self.decoder.weights.blocks[layer].mlp
        assert mlp is not None, "a net without MLPs has no neurons"
        W_out = mlp.W_out.to(wide)
        self._changed(neurons, torch.einsum("cptn,nm->ncptm", change[..., apart], W_out[apart]))
        rest = change.index_fill(3, apart, 0.0)
        self._changed([Node("mlp", layer)], (rest @ W_out).unsqueeze(0))

    def _changed(
        self, senders: Sequence[Node], changes: Float[Tensor, "sender #circuit pair pos d_model"]
    ) -> None:
        self.changes[[self.row_of[node] for node in senders]] = changes.expand(
            -1, self.changes.shape[1], -1, -1, -1
        ).to(self.changes.dtype)


def needs(spec: ModelSpec) -> tuple[StateName, ...]:
    """The states that the run of the other values must keep."""
    states: tuple[StateName, ...] = ("resid_pre", "z")
    return (*states, "mlp_out", "mlp_hidden") if spec.d_mlp else states
