"""A net that adds two numbers, and errs where a heuristic holds unless its own neuron helps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from mechnum.models import Model
from mechnum.models.native import NativeConfig
from mechnum.neurons.bag.kinds import parse_heuristic
from tests.patching.native import wrapped

P = 23
D_MLP = 40
LAYERS = 2


def helped_adder(helpers: Mapping[tuple[int, int], str]) -> Model:
    """Adds a and b exactly as far as a + b < P (it knows nothing of the modulus).

    Heads 0 and 1 of the first layer copy a and b to the end. The logit of c is 2cs − c², largest at
    c = s, where s = a + b + 5 for each helper's heuristic that holds; its neuron writes −5 there.

    Args:
        helpers: layer and neuron → the words of a heuristic of a or of b.
    """
    # [token one-hot, position, copy of a, copy of b, what helpers write]
    token, at, a, b, help_ = np.cumsum([0, P + 1, 3, P + 1, P + 1])
    d_model = int(help_) + 1
    end = token + P
    shape = (LAYERS, 2, d_model, P + 1)
    W_Q, W_K, W_V = (torch.zeros(shape, dtype=torch.float64) for _ in range(3))
    W_O = torch.zeros(LAYERS, 2, P + 1, d_model, dtype=torch.float64)
    for head, copy in enumerate((a, b)):
        # From the end, each head looks at one operand alone, far above the others.
        W_Q[0, head, end, 0] = 1e4
        W_K[0, head, at + head, 0] = 1.0
        for number in range(P + 1):
            W_V[0, head, token + number, number] = 1.0
            W_O[0, head, number, copy + number] = 1.0
    W_in = torch.zeros(LAYERS, d_model, D_MLP, dtype=torch.float64)
    W_out = torch.zeros(LAYERS, D_MLP, d_model, dtype=torch.float64)
    value = {a: np.arange(P + 1.0), b: np.arange(P + 1.0)}
    for (layer, neuron), words in helpers.items():
        one = parse_heuristic(words)
        numbers = np.arange(P + 1)
        held = one.holds({"a": numbers, "b": numbers, "result": numbers})
        copy = {"a": a, "b": b}[one.variable]
        value[copy] = value[copy] + 5.0 * held
        W_in[layer, copy : copy + P + 1, neuron] = torch.from_numpy(held * 1.0)
        W_out[layer, neuron, help_] = -5.0
    W_U = torch.zeros(d_model, P + 1, dtype=torch.float64)
    c = torch.arange(P + 1, dtype=torch.float64)
    for copy, of in value.items():
        W_U[copy : copy + P + 1] = 2 * torch.from_numpy(of)[:, None] * c
    W_U[help_] = 2 * c
    W_U[end] = -(c**2)
    tensors = {
        "embed.W_E": torch.eye(P + 1, d_model, dtype=torch.float64),
        "pos_embed.W_pos": torch.eye(d_model, dtype=torch.float64)[at : at + 3],
        "unembed.W_U": W_U,
    }
    for layer in range(LAYERS):
        named = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": W_O}
        tensors |= {f"blocks.{layer}.attn.{name}": all_[layer] for name, all_ in named.items()}
        tensors |= {f"blocks.{layer}.mlp.W_in": W_in[layer]}
        tensors |= {f"blocks.{layer}.mlp.W_out": W_out[layer]}
    config = NativeConfig(
        n_layers=LAYERS,
        n_heads=2,
        d_model=d_model,
        d_head=P + 1,
        d_mlp=D_MLP,
        n_ctx=3,
        d_vocab=P + 1,
        d_vocab_out=P + 1,
    )
    return wrapped(config, tensors, "helped adder")
