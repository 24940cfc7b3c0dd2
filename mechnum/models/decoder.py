"""The canonical decoder: one plain-torch forward for every supported architecture.

It is driven by a `ModelSpec` and reads the wrapped model's weights by reference. It can be entered
anywhere: at any layer, at any position (with the keys and values of earlier ones given), and with a
stack of patched residual streams that share those earlier positions. Hook points cannot do this
work: on GPT-J edits of the pattern are discarded, grouped-query models are refused, and a restart
in the middle of the model saves nothing.

Shapes: residual streams are [stack, prompt, pos, d_model]. A plain run has a stack of 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.models.attention_rate import mixed_with_ones
from mechnum.models.norms import at_least_float32, centred_for, norm_scale, normalise
from mechnum.models.rotary import Rotary, rotate
from mechnum.models.spec import ModelSpec
from mechnum.models.weights import NormWeights, Weights

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}
# Unembedding columns that are cast to float32 at a time, so that no full copy of W_U is made.
_VOCAB_CHUNK = 8192


# States of a block, in the order in which it computes them.
StateName = Literal[
    "resid_pre",
    "q",
    "k",
    "v",
    "pattern",
    "z",
    "attn_out",
    "resid_mid",
    "mlp_pre",
    "mlp_hidden",
    "mlp_out",
    "resid_post",
]
# Those of the neurons.
NEURON_STATES: tuple[StateName, ...] = ("mlp_pre", "mlp_hidden")
Visit = Callable[[StateName, Tensor], Tensor]


def _unseen(name: StateName, value: Tensor) -> Tensor:
    return value


class KeysValues(NamedTuple):
    """Keys (rotated) and values of earlier positions, shared by a whole stack."""

    k: Float[Tensor, "prompt past kv_head d_head"]
    v: Float[Tensor, "prompt past kv_head d_head"]


class AttentionStates(NamedTuple):
    """What one attention layer computes; `q` and `k` are rotated."""

    q: Float[Tensor, "stack prompt pos head d_head"]
    k: Float[Tensor, "stack prompt pos kv_head d_head"]
    v: Float[Tensor, "stack prompt pos kv_head d_head"]
    pattern: Float[Tensor, "stack prompt head pos key"]
    z: Float[Tensor, "stack prompt pos head d_head"]
    out: Float[Tensor, "stack prompt pos d_model"]


class Decoder:
    """A decoder-only transformer as plain functions of residual streams.

    Args:
        spec: what the model is made of.
        weights: its weights, read and never written.
        rotary: angles of the rotary embedding, None without one.
    """

    def __init__(self, spec: ModelSpec, weights: Weights, rotary: Rotary | None) -> None:
        self.spec = spec
        self.weights = weights
        self.rotary = rotary

    @property
    def device(self) -> torch.device:
        """Where the embedding lies, and so where tokens must be."""
        return self.weights.W_E.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the body; norms, softmax and logits are computed in float32 at least."""
        return self.weights.W_E.dtype

    def embed(
        self, tokens: Int[Tensor, "prompt pos"], start: int = 0
    ) -> Float[Tensor, "1 prompt pos d_model"]:
        """The residual stream before block 0; `start` is the position of the first token."""
        resid = self.weights.W_E[tokens]
        if self.weights.W_pos is not None:
            resid = resid + self.weights.W_pos[start : start + tokens.shape[1]]
        return resid.unsqueeze(0)

    def attention(
        self,
        layer: int,
        resid: Float[Tensor, "stack prompt pos d_model"],
        past: KeysValues | None = None,
    ) -> AttentionStates:
        """Attention of `layer` on the block's input, at the positions after `past`."""
        q, k, v = self.queries_keys_values(layer, self.attn_norm(layer, resid), n_past(past))
        pattern = self.pattern(q, k, past)
        z = self.mix(pattern, v, past)
        return AttentionStates(q, k, v, pattern, z, self.attn_out(layer, z))

    def attention_at_end(
        self,
        layer: int,
        resid: Float[Tensor, "stack prompt pos d_model"],
        past: KeysValues | None = None,
    ) -> Float[Tensor, "stack prompt 1 d_model"]:
        """What attention writes at the last position, for which only one query is needed."""
        attn = self.weights.blocks[layer].attn
        normed = self.attn_norm(layer, resid)
        start, end = n_past(past), n_past(past) + resid.shape[2] - 1
        q = self.rotated(_into_heads(normed[:, :, -1:], attn.W_Q, attn.b_Q), end)
        k = self.rotated(_into_heads(normed, attn.W_K, attn.b_K), start)
        v = _into_heads(normed, attn.W_V, attn.b_V)
        return self.attn_out(layer, self.mix(self.pattern(q, k, past), v, past))

    def attn_norm(
        self,
        layer: int,
        resid: Float[Tensor, "*stack d_model"],
        scale: Float[Tensor, "*#stack 1"] | None = None,
    ) -> Float[Tensor, "*stack d_model"]:
        """What queries, keys and values are read from; `scale` freezes the division."""
        return self._block_norm(resid, self.weights.blocks[layer].ln1, scale)

    def queries_keys_values(
        self,
        layer: int,
        normed: Float[Tensor, "*stack pos d_model"],
        start: int = 0,
    ) -> tuple[
        Float[Tensor, "*stack pos head d_head"],
        Float[Tensor, "*stack pos kv_head d_head"],
        Float[Tensor, "*stack pos kv_head d_head"],
    ]:
        """q and k (rotated) and v, from what the norm gives; `start` is the first position."""
        attn = self.weights.blocks[layer].attn
        q = _into_heads(normed, attn.W_Q, attn.b_Q)
        k = _into_heads(normed, attn.W_K, attn.b_K)
        v = _into_heads(normed, attn.W_V, attn.b_V)
        return self.rotated(q, start), self.rotated(k, start), v

    def rotated(
        self, x: Float[Tensor, "*stack pos head d_head"], start: int = 0, back: bool = False
    ) -> Float[Tensor, "*stack pos head d_head"]:
        """Queries or keys with their position put in, or taken out again with `back`."""
        if self.rotary is None or self.spec.rotary is None:
            return x
        cos, sin = self.rotary(torch.arange(start, start + x.shape[-3], device=x.device))
        return rotate(x, cos, -sin if back else sin, self.spec.rotary)

    def pattern(
        self,
        q: Float[Tensor, "stack prompt query head d_head"],
        k: Float[Tensor, "stack prompt pos kv_head d_head"],
        past: KeysValues | None = None,
    ) -> Float[Tensor, "stack prompt head query key"]:
        """Causal attention over the past and the given positions, mixed at the attention rate.

        Args:
            q: of the last of these positions, or of all.
        """
        grouped = q.unflatten(3, (self.spec.n_kv_heads, self.spec.heads_per_group))
        scores = torch.einsum("sbtgrd,sbugd->sbgrtu", grouped, k)
        if (n_queries := q.shape[2]) > 1:
            length = k.shape[2]
            every = torch.ones(n_queries, length, dtype=torch.bool, device=q.device)
            scores = scores.masked_fill(every.triu(1 + length - n_queries), -torch.inf)
        if past is not None:
            # The stack is a free index here, so that keys of the past are never copied for it.
            scores = torch.cat([torch.einsum("sbtgrd,bpgd->sbgrtp", grouped, past.k), scores], -1)
        scores = at_least_float32(scores) / self.spec.d_head**0.5
        softmax = scores.softmax(-1).to(q.dtype).flatten(2, 3)
        return mixed_with_ones(softmax, self.spec.attention_rate)

    def mix(
        self,
        pattern: Float[Tensor, "stack prompt head query key"],
        v: Float[Tensor, "stack prompt pos kv_head d_head"],
        past: KeysValues | None = None,
    ) -> Float[Tensor, "stack prompt query head d_head"]:
        """Each head's average of the values."""
        grouped = pattern.unflatten(2, (self.spec.n_kv_heads, self.spec.heads_per_group))
        before = n_past(past)
        z = torch.einsum("sbgrtu,sbugd->sbtgrd", grouped[..., before:], v)
        if past is not None:
            z = z + torch.einsum("sbgrtp,bpgd->sbtgrd", grouped[..., :before], past.v)
        return z.flatten(3, 4)

    def attn_out(
        self, layer: int, z: Float[Tensor, "*stack pos head d_head"]
    ) -> Float[Tensor, "*stack pos d_model"]:
        """The attention layer's write: the sum of its heads' writes and the bias."""
        attn = self.weights.blocks[layer].attn
        out = z.flatten(-2) @ attn.W_O.flatten(0, 1)
        return out if attn.b_O is None else out + attn.b_O

    def attention_write(
        self,
        layer: int,
        resid: Float[Tensor, "stack prompt pos d_model"],
        past: KeysValues | None = None,
        visit: Visit = _unseen,
    ) -> Float[Tensor, "stack prompt pos d_model"]:
        """What attention of `layer` writes; `visit` as in `block`."""
        q, k, v = self.queries_keys_values(layer, self.attn_norm(layer, resid), n_past(past))
        q, k, v = visit("q", q), visit("k", k), visit("v", v)
        pattern = visit("pattern", self.pattern(q, k, past))
        z = visit("z", self.mix(pattern, v, past))
        return visit("attn_out", self.attn_out(layer, z))

    def mlp_write(
        self, layer: int, resid: Float[Tensor, "*stack d_model"], visit: Visit = _unseen
    ) -> Float[Tensor, "*stack d_model"]:
        """What the MLP of `layer` writes; `visit` as in `block`.

        Args:
            resid: the residual after attention, or the block's input in parallel blocks.
        """
        hidden, gate = self.pre_activations(layer, self.mlp_norm(layer, resid))
        # What the activation function reads: in gated MLPs that is the gate.
        if gate is None:
            hidden = visit("mlp_pre", hidden)
        else:
            gate = visit("mlp_pre", gate)
        hidden = visit("mlp_hidden", self.activated(hidden, gate))
        return visit("mlp_out", self.mlp_out(layer, hidden))

    def mlp_norm(
        self,
        layer: int,
        resid: Float[Tensor, "*stack d_model"],
        scale: Float[Tensor, "*#stack 1"] | None = None,
    ) -> Float[Tensor, "*stack d_model"]:
        """What the MLP's neurons read; `scale` freezes the division."""
        weights = self.weights.blocks[layer].ln2
        assert weights is not None, "a net without MLPs has no neurons"
        return self._block_norm(resid, weights, scale)

    def mlp_hidden(
        self,
        layer: int,
        normed: Float[Tensor, "*stack d_model"],
        neurons: Int[Tensor, " neuron"] | slice = slice(None),
    ) -> Float[Tensor, "*stack neuron"]:
        """Activations of `neurons` (all without them), after any gate."""
        return self.activated(*self.pre_activations(layer, normed, neurons))

    def pre_activations(
        self,
        layer: int,
        normed: Float[Tensor, "*stack d_model"],
        neurons: Int[Tensor, " neuron"] | slice = slice(None),
    ) -> tuple[Float[Tensor, "*stack neuron"], Float[Tensor, "*stack neuron"] | None]:
        """What `W_in` and, in gated MLPs, `W_gate` give to `neurons` (all without them)."""
        mlp = self.weights.blocks[layer].mlp
        assert mlp is not None, "a net without MLPs has no neurons"
        hidden = _affine(normed, mlp.W_in[:, neurons], _part(mlp.b_in, neurons))
        if mlp.W_gate is None:
            return hidden, None
        return hidden, _affine(normed, mlp.W_gate[:, neurons], _part(mlp.b_gate, neurons))

    def activated(
        self, hidden: Float[Tensor, "*stack neuron"], gate: Float[Tensor, "*stack neuron"] | None
    ) -> Float[Tensor, "*stack neuron"]:
        """Activations of neurons from what their weights give."""
        activation = _ACTIVATIONS[self.spec.activation]
        return activation(hidden) if gate is None else activation(gate) * hidden

    def mlp_out(
        self, layer: int, hidden: Float[Tensor, "*stack d_mlp"]
    ) -> Float[Tensor, "*stack d_model"]:
        """The MLP's write: what its neurons write and the bias."""
        mlp = self.weights.blocks[layer].mlp
        assert mlp is not None, "a net without MLPs has no neurons"
        return _affine(hidden, mlp.W_out, mlp.b_out)

    def final_norm(
        self,
        resid: Float[Tensor, "*stack d_model"],
        scale: Float[Tensor, "*#stack 1"] | None = None,
    ) -> Float[Tensor, "*stack d_model"]:
        """What the unembedding reads, in float32 at least; `scale` freezes the division."""
        spec = self.spec
        return normalise(resid, self.weights.ln_final, spec.final_norm, spec.norm_eps, scale)

    def final_scale(self, resid: Float[Tensor, "*stack d_model"]) -> Float[Tensor, "*stack 1"]:
        """What the final norm multiplies the (centred) residual by; 1 without a norm."""
        kind = self.spec.final_norm
        return norm_scale(centred_for(resid, kind), kind, self.spec.norm_eps)

    def logits(
        self,
        resid: Float[Tensor, "*stack d_model"],
        token_ids: Int[Tensor, " token"] | None = None,
    ) -> Float[Tensor, "*stack token"]:
        """Logits of `token_ids` (all without them) from the last residual, in float32 at least."""
        return self.unembed(self.final_norm(resid), token_ids)

    def unembed(
        self,
        normed: Float[Tensor, "*stack d_model"],
        token_ids: Int[Tensor, " token"] | None = None,
    ) -> Float[Tensor, "*stack token"]:
        """Logits from what the final norm gives."""
        W_U, b_U = self.weights.W_U, self.weights.b_U
        if token_ids is not None:
            W_U = W_U[:, token_ids]
            b_U = None if b_U is None else b_U[token_ids]
        parts = [normed @ part.to(normed.dtype) for part in W_U.split(_VOCAB_CHUNK, dim=1)]
        logits = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return logits if b_U is None else logits + b_U.to(normed.dtype)

    def __call__(self, tokens: Int[Tensor, "prompt pos"]) -> Float[Tensor, "prompt pos vocab"]:
        """Logits at every position, computed from first to last layer."""
        resid = self.embed(tokens)
        for layer in range(self.spec.n_layers):
            resid = self.block(layer, resid)
        return self.logits(resid.squeeze(0))

    def block(
        self,
        layer: int,
        resid: Float[Tensor, "stack prompt pos d_model"],
        past: KeysValues | None = None,
        visit: Visit = _unseen,
    ) -> Float[Tensor, "stack prompt pos d_model"]:
        """The residual stream after `layer`.

        Args:
            visit: called with the name and value of each state in turn; what it returns goes on.
        """
        resid = visit("resid_pre", resid)
        mid = resid + self.attention_write(layer, resid, past, visit)
        if not self.spec.parallel:
            mid = visit("resid_mid", mid)
        if self.weights.blocks[layer].mlp is None:
            return visit("resid_post", mid)
        read = resid if self.spec.parallel else mid
        return visit("resid_post", mid + self.mlp_write(layer, read, visit))

    def block_scale(self, resid: Float[Tensor, "*stack d_model"]) -> Float[Tensor, "*stack 1"]:
        """What the norms of the blocks multiply this (centred) input by; 1 without norms."""
        kind = self.spec.norm
        return norm_scale(centred_for(resid, kind), kind, self.spec.norm_eps)

    def _block_norm(self, resid: Tensor, weights: NormWeights, scale: Tensor | None) -> Tensor:
        return normalise(resid, weights, self.spec.norm, self.spec.norm_eps, scale).to(resid.dtype)


def n_past(past: KeysValues | None) -> int:
    """How many positions come before."""
    return 0 if past is None else past.k.shape[1]


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x · weight + bias for a weight [in, out]."""
    return F.linear(x, weight.T, bias)


def _part(bias: Tensor | None, neurons: Tensor | slice) -> Tensor | None:
    return None if bias is None else bias[neurons]


def _into_heads(
    x: Float[Tensor, "*stack d_model"],
    weight: Float[Tensor, "head d_model d_head"],
    bias: Float[Tensor, "head d_head"] | None,
) -> Float[Tensor, "*stack head d_head"]:
    """Every head's projection in one product; flattening the weight copies only where heads are
    not side by side in the checkpoint (NeoX's joint matrix, HookedTransformer)."""
    flat = weight.transpose(1, 2).flatten(0, 1)
    projected = F.linear(x, flat, None if bias is None else bias.flatten())
    return projected.unflatten(-1, (weight.shape[0], weight.shape[2]))
