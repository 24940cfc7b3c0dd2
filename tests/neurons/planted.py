"""A net in which every neuron of layer 1 reads and writes known waves.

The prompt is [a, b, =] modulo p. Head 0.0 brings n, cos and sin of a to the last position, head 0.1
those of b. The neurons of layer 0 are the ramps relu(a + b − c): a second difference of three of
them is 1 where a + b = c and 0 elsewhere, so that a neuron of layer 1 can read any function of a +
b, exactly. What it writes goes to the logits of the p classes, one direction each. Nothing is
normed, and attention is hard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from mechnum.models.native import NativeConfig
from tests.patching.native import wrapped

P = 23
OPERAND_K = 4
"""The frequency at which the embedding has a cosine and a sine of each number."""

_HARD = 1024
_N_RAMPS = 2 * P + 1
_FEATURES = [
    "n",
    "cos",
    "sin",
    "p0",
    "p1",
    "e",
    *(f"{x} {f}" for x in "ab" for f in ("n", "c", "s")),
]
_D_MODEL = len(_FEATURES) + _N_RAMPS + P


@dataclass
class Planted:
    """A neuron: what it reads of a + b, of the operands' features, and what it writes."""

    of_sum: Callable[[np.ndarray], np.ndarray] = lambda t: np.zeros(len(t))
    of_operands: dict[str, float] = field(default_factory=dict)
    bias: float = 0.0
    writes: Callable[[np.ndarray], np.ndarray] = lambda c: np.zeros(len(c))


def wave(k: float, amplitude: float, phase: float) -> Callable[[np.ndarray], np.ndarray]:
    """A cos(2πkn/p − φ)."""
    return lambda n: amplitude * np.cos(2 * np.pi * k * n / P - phase)


def planted(neurons: list[Planted]) -> Any:
    """The net with these neurons 1.0, 1.1, ...; the other neurons of layer 1 are zero."""
    config = NativeConfig(
        n_layers=2,
        n_heads=2,
        d_model=_D_MODEL,
        d_head=3,
        d_mlp=_N_RAMPS,
        n_ctx=3,
        d_vocab=P + 1,
        d_vocab_out=P,
    )
    tensors = {**_embedding(), **_attention(), **_ramps(), **_neurons(neurons)}
    as_torch = {name: torch.from_numpy(np.ascontiguousarray(t)) for name, t in tensors.items()}
    return wrapped(config, as_torch, "planted waves")


def _at(**amounts: float) -> np.ndarray:
    vector = np.zeros(_D_MODEL)
    for name, amount in amounts.items():
        vector[_FEATURES.index(name.replace("_", " "))] = amount
    return vector


def _embedding() -> dict[str, np.ndarray]:
    angle = 2 * np.pi * OPERAND_K * np.arange(P) / P
    rows = [_at(n=n, cos=np.cos(w), sin=np.sin(w)) for n, w in enumerate(angle)]
    logits = np.zeros((_D_MODEL, P))
    logits[-P:] = np.eye(P)
    return {
        "embed.W_E": np.stack([*rows, _at()]),
        "pos_embed.W_pos": np.stack([_at(p0=1), _at(p1=1), _at(e=1)]),
        "unembed.W_U": logits,
    }


def _attention() -> dict[str, np.ndarray]:
    empty = {name: np.zeros((2, _D_MODEL, 3)) for name in ("attn.W_Q", "attn.W_K", "attn.W_V")} | {
        "attn.W_O": np.zeros((2, 3, _D_MODEL))
    }
    first = {name: tensor.copy() for name, tensor in empty.items()}
    for head, (place, operand) in enumerate((("p0", "a"), ("p1", "b"))):
        first["attn.W_Q"][head, :, 0] = _at(e=_HARD)
        first["attn.W_K"][head, :, 0] = _at(**{place: 1})
        for column, (own, moved) in enumerate((("n", "n"), ("cos", "c"), ("sin", "s"))):
            first["attn.W_V"][head, :, column] = _at(**{own: 1})
            first["attn.W_O"][head, column] = _at(**{f"{operand}_{moved}": 1})
    layers = enumerate((first, empty))
    return {f"blocks.{layer}.{name}": t for layer, own in layers for name, t in own.items()}


def _ramps() -> dict[str, np.ndarray]:
    reading = np.tile(_at(a_n=1, b_n=1)[:, None], _N_RAMPS)
    writing = np.zeros((_N_RAMPS, _D_MODEL))
    writing[:, len(_FEATURES) : len(_FEATURES) + _N_RAMPS] = np.eye(_N_RAMPS)
    return {
        "blocks.0.mlp.W_in": reading,
        "blocks.0.mlp.b_in": -(np.arange(_N_RAMPS) - 1.0),
        "blocks.0.mlp.W_out": writing,
    }


def _neurons(neurons: list[Planted]) -> dict[str, np.ndarray]:
    W_in, W_out = np.zeros((_D_MODEL, _N_RAMPS)), np.zeros((_N_RAMPS, _D_MODEL))
    b_in = np.zeros(_N_RAMPS)
    sums = np.arange(2 * P - 1)
    for j, neuron in enumerate(neurons):
        W_in[:, j] = _at(**neuron.of_operands)
        for t, value in zip(sums, neuron.of_sum(sums)):
            first = len(_FEATURES) + t  # the ramp of c = t − 1
            W_in[first : first + 3, j] += value * np.array([1, -2, 1])
        b_in[j] = neuron.bias
        W_out[j, -P:] = neuron.writes(np.arange(P))
    return {"blocks.1.mlp.W_in": W_in, "blocks.1.mlp.b_in": b_in, "blocks.1.mlp.W_out": W_out}
