"""What components write to the residual stream, and how two runs differ in it."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.run import Run, StateName
from mechnum.patching.propagate import Injection, Point

NodeKind = Literal["heads", "attn", "mlps"]

# The state whose difference between two runs makes up a node's write.
_STATE: dict[NodeKind, StateName] = {"heads": "z", "attn": "attn_out", "mlps": "mlp_out"}


def state_of(kind: NodeKind) -> StateName:
    """The state to keep in both runs for nodes of this kind.

    Raises:
        MechnumError: on another kind.
    """
    if not isinstance(kind, str) or kind not in _STATE:
        raise MechnumError(f"unknown nodes {kind!r}: use one of {', '.join(get_args(NodeKind))}")
    return _STATE[kind]


def write_difference(
    decoder: Decoder, kind: NodeKind, layer: int, source: Run, base: Run
) -> Float[Tensor, "node pair d_model"]:
    """How the writes of one layer's nodes differ at the runs' first kept position.

    In float32 at least: it is a small difference of states that may be bfloat16.
    """
    state = state_of(kind)
    wide = torch.promote_types(decoder.dtype, torch.float32)
    difference = source[state, layer][:, 0].to(wide) - base[state, layer][:, 0].to(wide)
    if kind != "heads":
        return difference.unsqueeze(0)
    return torch.einsum("phd,hdm->hpm", difference, decoder.weights.blocks[layer].attn.W_O.to(wide))


def enters_at(decoder: Decoder, kind: NodeKind) -> Point:
    """The first state of a layer that holds what its nodes of this kind write."""
    if kind == "mlps" or decoder.spec.parallel:
        return "resid_post"
    return "resid_mid"


def injection(
    decoder: Decoder, kind: NodeKind, layer: int, base: Run, difference: Tensor
) -> Injection:
    """The difference as a patch at the base run's first kept position alone."""
    delta = difference.new_zeros(*difference.shape[:2], *base.last.shape[1:])
    delta[:, :, 0] = difference
    return Injection(layer, enters_at(decoder, kind), delta)
