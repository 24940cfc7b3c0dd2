"""LayerNorm and RMSNorm, and what they divide by."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from mechnum.models.spec import Norm
from mechnum.models.weights import NormWeights


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
    if kind is None:
        return at_least_float32(x)
    if scale is None:
        return _recomputed(at_least_float32(x), weights, kind, eps)
    x = centred_for(x, kind) * scale
    if weights.w is not None:
        x = x * weights.w.to(x.dtype)
    return x if weights.b is None else x + weights.b.to(x.dtype)


def _recomputed(x: Tensor, weights: NormWeights, kind: Norm, eps: float) -> Tensor:
    w, b = (None if one is None else one.to(x.dtype) for one in (weights.w, weights.b))
    if kind == "layer":
        return F.layer_norm(x, x.shape[-1:], w, b, eps)
    normed = F.rms_norm(x, x.shape[-1:], w, eps)
    return normed if b is None else normed + b


def norm_scale(
    centred: Float[Tensor, "*stack d_model"], kind: Norm | None, eps: float
) -> Float[Tensor, "*stack 1"]:
    """One over the root of the mean square."""
    if kind is None:
        return torch.ones_like(centred[..., :1])
    return torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)


def centred_for(x: Float[Tensor, "*stack d_model"], kind: Norm | None) -> Tensor:
    """In float32 at least, without its mean where the norm is a LayerNorm."""
    x = at_least_float32(x)
    return x - x.mean(-1, keepdim=True) if kind == "layer" else x


def at_least_float32(x: Tensor) -> Tensor:
    """Norms, softmax and logits are computed in this precision."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
