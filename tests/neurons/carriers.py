"""A net in which known neurons carry the answer, and all others are noise.

The answer to the number n is (n + 1) mod N, whatever stands before it. Neuron 0.i reads whether
the number is i and writes this to a feature of its own, which neuron 1.i reads; it writes to the
logit of i + 1. The neurons from N on, in both layers, read random mixtures of the numbers and write
to all logits, so that their effect on some pairs is as large as that of a carrier; over all pairs
of numbers it is 0, since what they write to the right answers does not go with their activations.
Attention does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from mechnum.models.native import NativeConfig
from mechnum.tasks import Prompts, Task, pairs_from_tokens
from mechnum.tasks.prompts import group_by_length
from tests.patching.native import wrapped

N = 6
N_NOISE = 40
N_STARTS = 20
CARRIERS = [f"neuron {layer}.{i}" for layer in (0, 1) for i in range(N)]


def net() -> Any:
    """Residual stream: numbers, what the first layer's carriers write, logits."""
    width, d_mlp = 3 * N, N + N_NOISE
    config = NativeConfig(
        n_layers=2,
        n_heads=1,
        d_model=width,
        d_head=1,
        d_mlp=d_mlp,
        n_ctx=2,
        d_vocab=N + N_STARTS,
        d_vocab_out=N,
    )
    generator = np.random.default_rng(0)
    numbers, middle, logits = np.eye(width).reshape(3, N, width)
    embedding = np.concatenate([numbers, np.zeros((N_STARTS, width))])
    tensors = idle_attention(config) | {"embed.W_E": embedding, "unembed.W_U": logits.T}
    for layer, (read, write) in enumerate([(numbers, middle), (middle, np.roll(logits, -1, 0))]):
        mixtures = generator.normal(size=(N_NOISE, N))
        tensors[f"blocks.{layer}.mlp.W_in"] = np.concatenate([read, mixtures @ numbers]).T
        noise = np.stack([_unrelated(row, generator) for row in np.maximum(mixtures, 0)])
        tensors[f"blocks.{layer}.mlp.W_out"] = np.concatenate(
            [3 * write, 0.5 * noise @ np.roll(logits, -1, 0)]
        )
    named = {name: torch.from_numpy(values.copy()) for name, values in tensors.items()}
    return wrapped(config, named, "carriers")


def idle_attention(config: NativeConfig) -> dict[str, np.ndarray]:
    """Positions that are all alike, and attention that writes nothing."""
    found = {"pos_embed.W_pos": np.zeros((config.n_ctx, config.d_model))}
    into = np.zeros((config.n_heads, config.d_model, config.d_head))
    for layer in range(config.n_layers):
        found |= {f"blocks.{layer}.attn.W_{name}": into for name in "QKV"}
        found[f"blocks.{layer}.attn.W_O"] = into.transpose(0, 2, 1)
    return found


@dataclass(frozen=True)
class NextNumber(Task):
    """Every number after every start."""

    @property
    def name(self) -> str:
        return "next number"

    def form(self, model: Any) -> str:
        return "tokens start {a}"

    def _build(self, model: Any) -> tuple[Prompts, ...]:
        asked = [(start, n) for start in range(N, N + N_STARTS) for n in range(N)]
        numbers = [n for _, n in asked]
        answers = [(n + 1) % N for n in numbers]
        return group_by_length(
            asked,
            {"a": [1] * len(asked)},
            answers,
            {"a": numbers, "answer": answers},
            [f"{start} {n}" for start, n in asked],
        )

    def _spelling(self, model: Any) -> Any:
        return lambda token_id: token_id


def _unrelated(activations: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Random numbers that do not go with the activations over the numbers."""
    centred = activations - activations.mean()
    drawn = generator.normal(size=N)
    return drawn - centred * (drawn @ centred) / max(centred @ centred, 1e-12)


def pairs(n: int, seed: int) -> Any:
    """Random pairs of different numbers; both prompts of a pair begin alike."""
    generator = np.random.default_rng(seed)
    start = N + generator.integers(0, N_STARTS, size=n)
    number, shift = generator.integers(0, N, size=n), generator.integers(1, N, size=n)
    other = (number + shift) % N
    return pairs_from_tokens(
        np.stack([start, number], 1),
        np.stack([start, other], 1),
        (number + 1) % N,
        (other + 1) % N,
    )
