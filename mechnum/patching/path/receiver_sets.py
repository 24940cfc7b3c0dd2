"""Receivers that are patched together, in one run."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.models.decoder import StateName
from mechnum.patching.direct import NormHandling
from mechnum.patching.local import Place
from mechnum.patching.metrics import Metric
from mechnum.patching.nodes import Node, read_at
from mechnum.patching.path.receivers import ReceiverKind, input_scale, received
from mechnum.patching.propagate import state_at

# The state that a receiver's value is.
_STATE: Mapping[str, StateName] = {
    "q": "q",
    "k": "k",
    "v": "v",
    "mlp_in": "mlp_hidden",
    "neuron_in": "mlp_hidden",
}


class ReceiverSet:
    """Several receivers whose inputs change together.

    Args:
        differences: what each sender changes in the residual stream, by the point that is read.
        live: each receiver reads the stream as the receivers below it have left it, with the
            sender's difference added; otherwise its value is the one that it has when the
            difference meets the base run's stream.
    """

    def __init__(
        self,
        place: Place,
        nodes: Collection[Node],
        differences: Mapping[int, Float[Tensor, "sender pair pos d_model"]],
        norm: NormHandling,
        live: bool,
    ) -> None:
        self.place = place
        self.nodes = [node for node in nodes if node.kind != "logits"]
        self.reads_logits = len(self.nodes) < len(nodes)
        self.differences = differences
        self.norm: NormHandling = norm
        self.live = live

    def scores(self, metric: Metric) -> Float[Tensor, "sender pair"]:
        """The metric with all receivers patched, one sender a row."""
        decoder, base = self.place.decoder, self.place.base
        n_rows = len(next(iter(self.differences.values())))
        first = min((node.layer or 0 for node in self.nodes), default=decoder.spec.n_layers)
        rows = state_at(base, 2 * first).expand(n_rows, *base.last.shape)
        for layer in range(first, decoder.spec.n_layers):
            receiving = [node for node in self.nodes if node.layer == layer]
            if receiving:
                visitor = _Visitor(self, layer, receiving)
                rows = decoder.block(layer, rows, base.past(layer), visitor)
            else:
                rows = decoder.block(layer, rows, base.past(layer))
        last = rows[:, :, -1]
        if not self.reads_logits:
            return metric(decoder.final_norm(last))
        scale = decoder.final_scale(base.last[:, -1]) if self.norm == "frozen" else None
        end = self.differences[2 * decoder.spec.n_layers][:, :, -1]
        return metric(decoder.final_norm(last.to(end.dtype) + end, scale))


class _Visitor:
    """Puts the receivers' values in, in one layer."""

    def __init__(self, of: ReceiverSet, layer: int, nodes: list[Node]) -> None:
        self.of = of
        self.layer = layer
        self.nodes = nodes
        self.stream: Tensor | None = None

    def __call__(self, name: StateName, value: Tensor) -> Tensor:
        if name in ("resid_pre", "resid_mid"):
            self.stream = value
            return value
        own = [node for node in self.nodes if _STATE[node.kind] == name]
        if not own:
            return value
        new = self._received(own[0].kind)  # type: ignore[arg-type]  # nodes that receive
        if own[0].kind == "mlp_in":
            return new
        part_axis = 3
        chosen = torch.tensor([node.index for node in own], device=value.device)
        return value.index_copy(part_axis, chosen, new.index_select(part_axis, chosen))

    def _received(self, kind: ReceiverKind) -> Tensor:
        decoder, base = self.of.place.decoder, self.of.place.base
        point = read_at(kind, self.layer, decoder.spec)
        difference = self.of.differences[point]
        assert self.stream is not None, "a block's input is visited before its other states"
        read = self.stream if self.of.live else state_at(base, point).unsqueeze(0)
        stream = (read.to(difference.dtype) + difference).to(decoder.dtype)
        scale = input_scale(decoder, base, point, self.of.norm)
        return received(decoder, kind, self.layer, stream, base.start, scale)
