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
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.models.rotary import Rotary, rotate
from mechnum.models.spec import ModelSpec, Norm
from mechnum.models.weights import NormWeights, Weights

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}
# Unembedding columns that are cast to float32 at a time, so that no full copy of W_U is made.
_VOCAB_CHUNK = 8192


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


class MlpStates(NamedTuple):
    """What one MLP computes; `hidden` is what its output matrix reads, after any gate."""

    hidden: Float[Tensor, "stack prompt pos d_mlp"]
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
        block = self.weights.blocks[layer]
        normed = self._block_norm(resid, block.ln1)
        attn = block.attn
        q = _into_heads(normed, attn.W_Q, attn.b_Q)
        k = _into_heads(normed, attn.W_K, attn.b_K)
        v = _into_heads(normed, attn.W_V, attn.b_V)
        if self.rotary is not None and self.spec.rotary is not None:
            start = 0 if past is None else past.k.shape[1]
            positions = torch.arange(start, start + resid.shape[2], device=resid.device)
            cos, sin = self.rotary(positions)
            q, k = rotate(q, cos, sin, self.spec.rotary), rotate(k, cos, sin, self.spec.rotary)
        pattern = self.pattern(q, k, past)
        z = self.mix(pattern, v, past)
        return AttentionStates(q, k, v, pattern, z, self.attn_out(layer, z))

    def pattern(
        self,
        q: Float[Tensor, "stack prompt pos head d_head"],
        k: Float[Tensor, "stack prompt pos kv_head d_head"],
        past: KeysValues | None = None,
    ) -> Float[Tensor, "stack prompt head pos key"]:
        """Causal attention probabilities over the past and the given positions."""
        grouped = q.unflatten(3, (self.spec.n_kv_heads, self.spec.heads_per_group))
        scores = torch.einsum("sbtgrd,sbugd->sbgrtu", grouped, k)
        length = q.shape[2]
        future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, -torch.inf)
        if past is not None:
            # The stack is a free index here, so that keys of the past are never copied for it.
            scores = torch.cat([torch.einsum("sbtgrd,bpgd->sbgrtp", grouped, past.k), scores], -1)
        scores = _at_least_float32(scores) / self.spec.d_head**0.5
        return scores.softmax(-1).to(q.dtype).flatten(2, 3)

    def mix(
        self,
        pattern: Float[Tensor, "stack prompt head pos key"],
        v: Float[Tensor, "stack prompt pos kv_head d_head"],
        past: KeysValues | None = None,
    ) -> Float[Tensor, "stack prompt pos head d_head"]:
        """Each head's average of the values."""
        grouped = pattern.unflatten(2, (self.spec.n_kv_heads, self.spec.heads_per_group))
        n_past = 0 if past is None else past.v.shape[1]
        z = torch.einsum("sbgrtu,sbugd->sbtgrd", grouped[..., n_past:], v)
        if past is not None:
            z = z + torch.einsum("sbgrtp,bpgd->sbtgrd", grouped[..., :n_past], past.v)
        return z.flatten(3, 4)

    def attn_out(
        self, layer: int, z: Float[Tensor, "*stack pos head d_head"]
    ) -> Float[Tensor, "*stack pos d_model"]:
        """The attention layer's write: the sum of its heads' writes and the bias."""
        attn = self.weights.blocks[layer].attn
        out = z.flatten(-2) @ attn.W_O.flatten(0, 1)
        return out if attn.b_O is None else out + attn.b_O

    def mlp(self, layer: int, resid: Float[Tensor, "stack prompt pos d_model"]) -> MlpStates | None:
        """The MLP of `layer`; None where the net has no MLPs.

        Args:
            resid: the residual after attention, or the block's input in parallel blocks.
        """
        block = self.weights.blocks[layer]
        if block.mlp is None or block.ln2 is None:
            return None
        normed = self._block_norm(resid, block.ln2)
        activation = _ACTIVATIONS[self.spec.activation]
        hidden = _affine(normed, block.mlp.W_in, block.mlp.b_in)
        if block.mlp.W_gate is None:
            hidden = activation(hidden)
        else:
            hidden = activation(_affine(normed, block.mlp.W_gate, block.mlp.b_gate)) * hidden
        return MlpStates(hidden, _affine(hidden, block.mlp.W_out, block.mlp.b_out))

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
        return norm_scale(_centred(resid, kind), kind, self.spec.norm_eps)

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
    ) -> Float[Tensor, "stack prompt pos d_model"]:
        """The residual stream after `layer`."""
        mid = resid + self.attention(layer, resid, past).out
        mlp = self.mlp(layer, resid if self.spec.parallel else mid)
        return mid if mlp is None else mid + mlp.out

    def _block_norm(self, resid: Tensor, weights: NormWeights) -> Tensor:
        return normalise(resid, weights, self.spec.norm, self.spec.norm_eps).to(resid.dtype)


def normalise(
    x: Float[Tensor, "*stack d_model"],
    weights: NormWeights,
    kind: Norm | None,
    eps: float,
    scale: Float[Tensor, "*#stack 1"] | None = None,
) -> Float[Tensor, "*stack d_model"]:
    """LayerNorm or RMSNorm in float32 at least; `kind=None` gives the input in that precision.

    Args:
        scale: multiplies the (centred) input in place of its own norm's scale.
    """
    x = _centred(x, kind)
    if kind is None:
        return x
    x = x * (norm_scale(x, kind, eps) if scale is None else scale)
    if weights.w is not None:
        x = x * weights.w.to(x.dtype)
    return x if weights.b is None else x + weights.b.to(x.dtype)


def norm_scale(
    centred: Float[Tensor, "*stack d_model"], kind: Norm | None, eps: float
) -> Float[Tensor, "*stack 1"]:
    """One over the root of the mean square."""
    if kind is None:
        return torch.ones_like(centred[..., :1])
    return torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)


def _centred(x: Tensor, kind: Norm | None) -> Tensor:
    x = _at_least_float32(x)
    return x - x.mean(-1, keepdim=True) if kind == "layer" else x


def _at_least_float32(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x · weight + bias for a weight [in, out]."""
    return F.linear(x, weight.T, bias)


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
