"""A net whose last state is a number's code, read out by W_U, and which errs at known prompts.

Tokens are the numbers 0 … P − 1 and `=`. Attention averages the two operands' embeddings into the
last position; W_U reads the number whose code is nearest.
"""

from __future__ import annotations

import numpy as np
import torch

from mechnum.models.native import NativeConfig
from mechnum.tasks.prompts import Prompts, group_by_length
from tests.patching.native import wrapped

N, D = 6, 24
CODES = np.linalg.qr(np.random.default_rng(0).normal(size=(D, N + 1)))[0].T[:N]
"""Orthonormal codes of the answers."""
COMMON = np.linalg.qr(np.random.default_rng(0).normal(size=(D, N + 1)))[0].T[N]
"""What the state has whatever the answer, orthogonal to the codes."""


def net(n_layers: int = 2):
    """The last state is what the embedding of the last token says; all else writes nothing.

    Token v of the first N writes the code of v, and token N + v that of (v + 1) mod N, which is
    wrong where the answer is v.
    """
    config = NativeConfig(
        n_layers=n_layers, n_heads=1, d_model=D, d_head=D, d_mlp=4, n_ctx=3, d_vocab=2 * N,
        d_vocab_out=2 * N,
    )  # fmt: skip
    rows = np.vstack([CODES, np.roll(CODES, -1, axis=0)]) + 2 * COMMON
    zeros = {
        "attn.W_Q": (1, D, D), "attn.W_K": (1, D, D), "attn.W_V": (1, D, D),
        "attn.W_O": (1, D, D), "mlp.W_in": (D, 4), "mlp.W_out": (4, D),
    }  # fmt: skip
    tensors = {
        "embed.W_E": torch.from_numpy(rows),
        "pos_embed.W_pos": torch.zeros(3, D),
        "unembed.W_U": torch.from_numpy(np.hstack([CODES.T, np.zeros((D, N))])),
    }
    for layer in range(n_layers):
        tensors |= {f"blocks.{layer}.{name}": torch.zeros(s) for name, s in zeros.items()}
    return wrapped(config, tensors, "planted")


def prompts(wrong: bool, copies: int = 3) -> tuple[Prompts, ...]:
    """Each answer several times, as question (answer, copy); right, or all wrong."""
    answers = [v for v in range(N) for _ in range(copies)]
    last = [v + N * wrong for v in answers]
    return group_by_length(
        [[v, 0, token] for v, token in zip(answers, last, strict=True)],
        {"a": [0] * len(last), "b": [1] * len(last)},
        answers,
        {"a": answers, "b": list(range(copies)) * N, "answer": answers},
        [str(v) for v in answers],
    )
