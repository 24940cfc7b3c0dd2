"""Nets of known algorithm, and the published ones written out from their description."""

from __future__ import annotations

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

import mechnum as mn
from mechnum.grokking.nets import FunctionNet
from tests import published

PUBLISHED = {
    "A": "clock_pizza_p99zdpze5l",
    "B": "clock_pizza_l8k1hzciux",
    "β": "clock_pizza_p71frej8t7",
}


def circle(p: int, frequencies: list[int], sizes: list[float] | None = None) -> Tensor:
    """A table of cosines and sines [p, 2 · frequency], in float64."""
    w = 2 * np.pi * np.outer(np.arange(p), frequencies) / p
    scale = np.repeat(np.ones(len(frequencies)) if sizes is None else np.array(sizes), 2)
    return torch.from_numpy(np.stack([np.cos(w), np.sin(w)], 2).reshape(p, -1) * scale)


def clock(p: int, frequencies: list[int], sizes: list[float] | None = None) -> FunctionNet:
    """Σ over circles of cos w(a + b − c), from products of the coordinates of a and b."""
    classes = circle(p, frequencies).reshape(p, -1, 2)

    def logits(a: Tensor, b: Tensor) -> Tensor:
        xa, ya = a.reshape(len(a), -1, 2).unbind(-1)
        xb, yb = b.reshape(len(b), -1, 2).unbind(-1)
        sum_of = torch.stack([xa * xb - ya * yb, xa * yb + ya * xb], -1)
        return torch.einsum("rki,cki->rc", sum_of, classes)

    return mn.grokking.net_from_function(logits, circle(p, frequencies, sizes))


def pizza(p: int, frequencies: list[int], sizes: list[float] | None = None) -> FunctionNet:
    """A ReLU net on E_a + E_b: four neurons for each class and circle, weights in closed form."""
    half = np.pi * np.outer(np.arange(p), frequencies) / p
    along = np.stack([np.cos(half), np.sin(half)], 2)
    across = np.stack([-np.sin(half), np.cos(half)], 2)
    # Rows (class, circle, sign); |x| = relu(x) + relu(−x).
    W_in = np.zeros((p, len(frequencies), 2, 2, len(frequencies), 2))
    W_out = np.zeros((p, p, len(frequencies), 2, 2))
    for c in range(p):
        for k in range(len(frequencies)):
            for kind, direction in enumerate((along[c, k], across[c, k])):
                for sign in (0, 1):
                    W_in[c, k, kind, sign, k] = direction * (-1) ** sign
                    W_out[c, c, k, kind, sign] = (-1) ** kind
    inner = torch.from_numpy(W_in.reshape(-1, 2 * len(frequencies)))
    outer = torch.from_numpy(W_out.reshape(p, -1))

    def logits(a: Tensor, b: Tensor) -> Tensor:
        return ((a + b) @ inner.T).relu() @ outer.T

    return mn.grokking.net_from_function(logits, circle(p, frequencies, sizes))


def published_net(name: str) -> FunctionNet:
    """One of `PUBLISHED`; the test is skipped where its file is absent."""
    t = load_file(published.checkpoint(PUBLISHED[name]))
    if name == "β":
        return mn.grokking.net_from_function(lambda a, b: _sum_net(t, a, b), t["embed.weight"])
    rate = {"A": 0.0, "B": 1.0}[name]
    return mn.grokking.net_from_function(
        lambda a, b: _attention_net(t, a, b, rate), t["embed.W_E"].T.contiguous()
    )


def _sum_net(t: dict[str, Tensor], a: Tensor, b: Tensor) -> Tensor:
    h = ((a + b) @ t["l1.weight"].T + t["l1.bias"]).relu()
    return (h @ t["l2.weight"].T + t["l2.bias"]).relu() @ t["unembed.weight"].T


def _attention_net(t: dict[str, Tensor], a: Tensor, b: Tensor, rate: float) -> Tensor:
    x = torch.stack([a, b], 1) + t["pos_embed.W_pos"]
    q, k, v = (torch.einsum("hdm,bpm->bhpd", t[f"blocks.0.attn.W_{n}"], x) for n in "QKV")
    attention = rate * (q @ k.transpose(-1, -2) / 32**0.5).softmax(-1) + (1 - rate)
    z = (attention @ v).transpose(1, 2).flatten(2)
    mid = x + z @ t["blocks.0.attn.W_O"].T
    hidden = (mid @ t["blocks.0.mlp.W_in"].T + t["blocks.0.mlp.b_in"]).relu()
    out = mid + hidden @ t["blocks.0.mlp.W_out"].T + t["blocks.0.mlp.b_out"]
    return (out @ t["unembed.W_U"])[:, -1]
