"""States that hold beliefs by construction, and nets whose weights are written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mechnum.models.native import NativeConfig
from mechnum.tasks.processes import Process
from tests.patching.native import wrapped


def sequences(process: Process, n: int, length: int, seed: int) -> tuple[np.ndarray, ...]:
    """Tokens, beliefs and sequence of each of n · length rows."""
    strings = process.sample(n, length, seed)
    beliefs = process.beliefs(strings)[:, 1:].reshape(n * length, -1)
    return strings.ravel(), beliefs, np.repeat(np.arange(n), length)


def held(beliefs: np.ndarray, d: int, noise: float, seed: int) -> np.ndarray:
    """States of `d` dimensions: an affine map of the beliefs, and noise."""
    generator = np.random.default_rng(seed)
    directions = generator.normal(size=(beliefs.shape[1], d))
    rest = noise * generator.normal(size=(len(beliefs), d))
    return beliefs @ directions + generator.normal(size=d) + rest


def table_net(
    rows: np.ndarray, logits: np.ndarray, positions: np.ndarray, name: str = "table"
) -> Any:
    """A net of two blocks that do nothing: token and position vectors straight to the logits.

    Args:
        rows: [token, d_model]. logits: [d_model, token]. positions: [pos, d_model].
    """
    n_tokens, d_model = rows.shape
    config = NativeConfig(2, 1, d_model, 2, 2, len(positions), n_tokens, n_tokens)
    zeros = {
        f"blocks.{layer}.{part}": torch.zeros(shape, dtype=torch.float64)
        for layer in range(2)
        for part, shape in {
            "attn.W_Q": (1, d_model, 2),
            "attn.W_K": (1, d_model, 2),
            "attn.W_V": (1, d_model, 2),
            "attn.W_O": (1, 2, d_model),
            "mlp.W_in": (d_model, 2),
            "mlp.W_out": (2, d_model),
        }.items()
    }
    written = {"embed.W_E": rows, "pos_embed.W_pos": positions, "unembed.W_U": logits}
    return wrapped(
        config, zeros | {name: torch.from_numpy(table) for name, table in written.items()}, name
    )


def random_net(seed: int = 0, n_tokens: int = 2, n_ctx: int = 6, **changes: Any) -> Any:
    """An untrained net of two blocks with LayerNorm, its weights made large enough to matter."""
    import mechnum as mn
    from mechnum.models.native import build_native, native_bridge

    sizes = {"n_layers": 2, "n_heads": 2, "d_model": 12, "d_head": 6, "d_mlp": 16}
    config = NativeConfig(
        **{**sizes, **changes},
        n_ctx=n_ctx,
        d_vocab=n_tokens,
        d_vocab_out=n_tokens,
        normalization_type="LN",
    )
    net = build_native(config, seed).double()
    generator = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.from_numpy(0.2 * generator.normal(size=parameter.shape)))
    return mn.wrap(native_bridge(net.eval(), config, "random"), name="random")
