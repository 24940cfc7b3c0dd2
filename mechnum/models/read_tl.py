"""Reads the weights of TransformerLens models, which have one set of names for all."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.rotary import RotaryTable
from mechnum.models.spec import ModelSpec
from mechnum.models.weights import (
    AttentionWeights,
    BlockWeights,
    MlpWeights,
    NormWeights,
    Weights,
)


def weights_from_tl(model: Any, spec: ModelSpec) -> Weights:
    """The weights of a HookedTransformer or TransformerBridge, processed or not, by reference."""
    return Weights(
        W_E=model.W_E.detach(),
        W_pos=model.pos_embed.W_pos.detach() if spec.rotary is None else None,
        blocks=tuple(_block(block, spec) for block in model.blocks),
        ln_final=_norm(getattr(model, "ln_final", None)),
        W_U=model.W_U.detach(),
        b_U=_get(model, "b_U"),
    )


def _block(block: Any, spec: ModelSpec) -> BlockWeights:
    ln1 = _norm(getattr(block, "ln1", None))
    ln2 = getattr(block, "ln2", None)
    return BlockWeights(
        ln1=ln1,
        attn=_attention(block.attn, spec),
        # A parallel block without a second norm reads its first one twice.
        ln2=ln1 if ln2 is None and spec.parallel else _norm(ln2),
        mlp=_mlp(block.mlp) if spec.d_mlp else None,
    )


def _attention(attn: Any, spec: ModelSpec) -> AttentionWeights:
    def per_group(name: str) -> Tensor | None:
        # HookedTransformer repeats grouped keys and values under the plain name.
        grouped = _get(attn, f"_{name}")
        return _get(attn, name) if grouped is None else grouped

    W_K, W_V = per_group("W_K"), per_group("W_V")
    assert W_K is not None
    assert W_V is not None
    return AttentionWeights(
        W_Q=attn.W_Q.detach(),
        W_K=W_K,
        W_V=W_V,
        W_O=attn.W_O.detach(),
        b_Q=_get(attn, "b_Q"),
        b_K=per_group("b_K"),
        b_V=per_group("b_V"),
        b_O=_get(attn, "b_O"),
    )


def _mlp(mlp: Any) -> MlpWeights:
    if _get(mlp, "W_gate") is not None and type(mlp).__name__ == "GatedMLP":
        # HookedTransformer adds b_in to the gated product, where no other architecture has a bias.
        bias = _get(mlp, "b_in")
        if bias is not None and bool(bias.any()):
            raise MechnumError(
                "the gated MLP has a bias b_in, which HookedTransformer adds after the gate: "
                "set it to 0"
            )
    return MlpWeights(
        W_in=mlp.W_in.detach(),
        W_out=mlp.W_out.detach(),
        W_gate=_get(mlp, "W_gate"),
        b_in=_get(mlp, "b_in"),
        b_gate=_get(mlp, "b_gate"),
        b_out=_get(mlp, "b_out"),
    )


def _norm(module: Any) -> NormWeights:
    """Folded norms, and nets without norms, have neither scale nor shift."""
    return NormWeights(_get(module, "w"), _get(module, "b"))


def rotary_from_tl(model: Any, spec: ModelSpec) -> RotaryTable | None:
    """The table of cosines and sines that the model keeps, one column for each rotated pair."""
    if spec.rotary is None:
        return None
    module = model.blocks[0].attn
    if hasattr(module, "rotary_cos"):
        cos, sin = module.rotary_cos, module.rotary_sin
    else:
        rotary = model.original_model.rotary
        cos, sin = rotary.cos_cached, rotary.sin_cached
    half = slice(0, None, 2) if spec.rotary == "adjacent" else slice(0, spec.rotary_dim // 2)
    return RotaryTable(cos[:, half], sin[:, half])


def _get(module: Any, name: str) -> Tensor | None:
    value = getattr(module, name, None)
    return None if value is None else value.detach()
