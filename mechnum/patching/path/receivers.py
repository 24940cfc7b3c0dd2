"""Receivers: what a node computes from an input of its own, and what that changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.models.decoder import Decoder, StateName
from mechnum.models.run import Run
from mechnum.patching.direct import NormHandling
from mechnum.patching.nodes import GROUPED, read_at, written_at
from mechnum.patching.propagate import Patches, state_at
from mechnum.patching.values import kept

ReceiverKind = Literal["q", "k", "v", "mlp_in", "neuron_in"]


def received(
    decoder: Decoder,
    kind: ReceiverKind,
    layer: int,
    stream: Float[Tensor, "row pair pos d_model"],
    start: int,
    scale: Float[Tensor, "#row pair pos 1"] | None,
) -> Float[Tensor, "row pair pos ..."]:
    """What all receivers of one kind in one layer compute from `stream` as their input.

    Queries and keys (rotated) and values [row, pair, pos, part, d_head], activations of neurons
    [row, pair, pos, neuron].

    Args:
        start: position of the stream's first entry.
        scale: keeps the norm's scale; None recomputes it.
    """
    if kind in ("mlp_in", "neuron_in"):
        return decoder.mlp_hidden(layer, decoder.mlp_norm(layer, stream, scale))
    normed = decoder.attn_norm(layer, stream, scale)
    return decoder.queries_keys_values(layer, normed, start)[("q", "k", "v").index(kind)]


def input_scale(
    decoder: Decoder, base: Run, point: int, norm: NormHandling
) -> Float[Tensor, "1 pair pos 1"] | None:
    """The base run's scale of the norm that reads at `point`, where it is frozen."""
    if norm == "exact":
        return None
    return decoder.block_scale(state_at(base, point)).unsqueeze(0)


@dataclass(frozen=True)
class ReceivedDifference:
    """What receivers of one kind in one layer write, for each sender and each receiver alone.

    Attributes:
        point: where the writes enter the residual stream.
        weights: change of z of heads or groups [sender, pair, pos, part, width] or of activations
            [sender, pair, pos, neuron, 1]; a whole MLP is one part that is as wide as it is.
        directions: what the weights multiply.
    """

    point: int
    weights: Float[Tensor, "sender pair pos part width"]
    directions: Float[Tensor, "part width d_model"]

    def changing(self) -> Int[Tensor, " row"]:
        """Rows (sender × part, senders first) that change anything."""
        changes = (self.weights != 0).transpose(1, 3).flatten(2).any(2)
        return changes.flatten().nonzero().flatten()

    def patches(self, rows: Int[Tensor, " row"]) -> Patches:
        """These rows for the engine."""

        def delta(chosen: slice) -> Float[Tensor, "row pair pos d_model"]:
            n_parts = len(self.directions)
            own = rows[chosen]
            first, last = int(own[0]) // n_parts, int(own[-1]) // n_parts
            every = torch.einsum(
                "sptkw,kwm->skptm",
                self.weights[first : last + 1],
                self.directions.to(self.weights.dtype),
            )
            return every.flatten(0, 1)[own - first * n_parts]

        return Patches(self.point, len(rows), delta)


def received_difference(
    decoder: Decoder,
    base: Run,
    kind: ReceiverKind,
    layer: int,
    parts: Sequence[int] | None,
    difference: Float[Tensor, "sender pair pos d_model"],
    norm: NormHandling,
) -> ReceivedDifference:
    """What the receivers write when their input alone, of all that read, has `difference` in it.

    Both sides are computed alike, so that no difference in the input gives exactly none here.

    Args:
        parts: heads, groups or neurons; None for a whole MLP.
        difference: in the residual stream that the receivers read.
    """
    point = read_at(kind, layer, decoder.spec)
    state = state_at(base, point).unsqueeze(0)
    # The last row is the base run itself.
    stream = torch.cat([state.to(difference.dtype) + difference, state.to(difference.dtype)])
    scale = input_scale(decoder, base, point, norm)
    values = received(decoder, kind, layer, stream.to(decoder.dtype), base.start, scale)
    if kind in ("mlp_in", "neuron_in"):
        hidden = _minus_last(values, difference.dtype)
        mlp = decoder.weights.blocks[layer].mlp
        assert mlp is not None, "nodes are checked against the model before they are patched"
        end = written_at("mlp", layer, decoder.spec)
        if parts is None:
            return ReceivedDifference(end, hidden.unsqueeze(3), mlp.W_out.unsqueeze(0))
        chosen = torch.tensor(parts, device=hidden.device)
        return ReceivedDifference(
            end, hidden[..., chosen].unsqueeze(-1), mlp.W_out[chosen].unsqueeze(1)
        )
    z = _minus_last(_attended(decoder, base, kind, layer, values), difference.dtype)
    W_O = decoder.weights.blocks[layer].attn.W_O
    if kind in GROUPED:
        z = z.unflatten(3, (decoder.spec.n_kv_heads, -1)).flatten(4)
        W_O = W_O.unflatten(0, (decoder.spec.n_kv_heads, -1)).flatten(1, 2)
    chosen = torch.tensor(parts, device=z.device)
    end = written_at("head", layer, decoder.spec)
    return ReceivedDifference(end, z[..., chosen, :], W_O[chosen])


def _attended(
    decoder: Decoder, base: Run, kind: ReceiverKind, layer: int, values: Tensor
) -> Float[Tensor, "row pair pos head d_head"]:
    """z of every head with `values` as its queries, keys or values and the base run's others."""

    def state(name: StateName) -> Tensor:
        if name == kind:
            return values
        own = kept(base, name, layer)
        return own.expand(len(values), *own.shape)

    past = base.past(layer)
    if kind == "v":
        pattern = kept(base, "pattern", layer).transpose(1, 2)
        return decoder.mix(pattern.expand(len(values), *pattern.shape), values, past)
    pattern = decoder.pattern(state("q"), state("k"), past)
    return decoder.mix(pattern, state("v"), past)


def _minus_last(values: Tensor, dtype: torch.dtype) -> Tensor:
    wide = values.to(dtype)
    return wide[:-1] - wide[-1:]
