"""A clock constructed weight by weight: which head moves what, and what writes the sum, is known.

The prompt is [a, b, =], with a on the circle cos(2πa/p), sin(2πa/p). Heads 0.0 and 0.1 move the
circles of a and of b to the last position. Neuron (i, j) of MLP 0 fires where a = i and b = j, and
writes the circle of i + j. Head 1.0 reads that at the last position and writes it where the logits
are read: logit c is cos(2π(a + b − c)/p). Head 1.1 moves the circle of a to where nothing reads it.
There are no norms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mechnum.models.native import NativeConfig
from tests.patching.native import wrapped

P = 13
_HARD = 1024
# Directions of the residual stream: circles (two each) and positions.
_N, _A, _B, _SUM, _OUT, _JUNK = (slice(2 * at, 2 * at + 2) for at in range(6))
_P0, _P1, _END = 12, 13, 14
_D_MODEL = 15


def planted() -> Any:
    """The net, wrapped, in float64."""
    config = NativeConfig(
        n_layers=2,
        n_heads=2,
        d_model=_D_MODEL,
        d_head=2,
        d_mlp=P * P,
        n_ctx=3,
        d_vocab=P + 1,
        d_vocab_out=P,
    )
    circle = circles(np.arange(P))
    embedding, positions = np.zeros((P + 1, _D_MODEL)), np.zeros((3, _D_MODEL))
    embedding[:P, _N] = circle
    positions[[0, 1, 2], [_P0, _P1, _END]] = 1
    out = np.zeros((_D_MODEL, P))
    out[_OUT] = circle.T
    arrays = {"embed.W_E": embedding, "pos_embed.W_pos": positions, "unembed.W_U": out}
    heads = [
        [(_P0, _N, _A), (_P1, _N, _B)],
        [(_END, _SUM, _OUT), (_P0, _N, _JUNK)],
    ]
    for layer, own in enumerate(heads):
        for name, array in {**_attention(own), **_mlp(active=layer == 0)}.items():
            arrays[f"blocks.{layer}.{name}"] = array
    tensors = {n: torch.from_numpy(np.ascontiguousarray(array)) for n, array in arrays.items()}
    return wrapped(config, tensors, "planted clock")


def circles(numbers: np.ndarray) -> np.ndarray:
    """cos and sin of 2πn/p."""
    angle = 2 * np.pi * np.asarray(numbers) / P
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def _attention(heads: list[tuple[int, slice, slice]]) -> dict[str, np.ndarray]:
    """Heads that look from the last position at one other, and move one circle."""
    q, k, v = (np.zeros((len(heads), _D_MODEL, 2)) for _ in range(3))
    o = np.zeros((len(heads), 2, _D_MODEL))
    for head, (looks_at, reads, writes) in enumerate(heads):
        q[head, _END, 0], k[head, looks_at, 0] = _HARD, 1
        v[head, reads], o[head, :, writes] = np.eye(2), np.eye(2)
    return {"attn.W_Q": q, "attn.W_K": k, "attn.W_V": v, "attn.W_O": o}


def _mlp(active: bool) -> dict[str, np.ndarray]:
    into, out, bias = np.zeros((_D_MODEL, P * P)), np.zeros((P * P, _D_MODEL)), np.zeros(P * P)
    if active:
        a, b = np.divmod(np.arange(P * P), P)
        # cos(a − i) + cos(b − j) is 2 where both agree, and below 2 − gap elsewhere.
        gap = 0.5 * (1 - np.cos(2 * np.pi / P))
        into[_A], into[_B] = circles(a).T / gap, circles(b).T / gap
        # Only at the last position; elsewhere there are no circles to read anyway.
        bias[:] = (gap - 2) / gap
        out[:, _SUM] = circles(a + b)
    return {"mlp.W_in": into, "mlp.W_out": out, "mlp.b_in": bias}
