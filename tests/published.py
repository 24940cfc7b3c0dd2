"""Trained checkpoints that other people published, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "published"

GROKKING_NET = """
weights = "{weights}"
ignore = ["blocks.*.attn.mask"]

[net]
n_layers = 1
n_heads = 4
d_model = 128
d_head = 32
d_mlp = 512
n_ctx = 3
d_vocab = 114
d_vocab_out = 114

[tensors]
"embed.W_E" = "d_model d_vocab"
"blocks.*.attn.W_[QKV]" = "head d_head d_model"
"blocks.*.attn.W_O" = "d_model (head d_head)"
"blocks.*.mlp.W_in" = "d_mlp d_model"
"blocks.*.mlp.W_out" = "d_model d_mlp"

[task]
kind = "modular_addition"
p = 113
"""


# Zhong et al. 2023: checkpoint and attention rate.
PIZZA_NETS = {"clock_pizza_p99zdpze5l": 0.0, "clock_pizza_l8k1hzciux": 1.0}
_PIZZA_NET = """
weights = "{weights}"
ignore = ["blocks.*.attn.mask"]

[net]
n_layers = 1
n_heads = 4
d_model = 128
d_head = 32
d_mlp = 512
n_ctx = 2
d_vocab = 59
d_vocab_out = 59
attention_rate = {rate}

[tensors]
"embed.W_E" = "d_model d_vocab"
"blocks.*.attn.W_[QKV]" = "head d_head d_model"
"blocks.*.attn.W_O" = "d_model (head d_head)"
"blocks.*.mlp.W_in" = "d_mlp d_model"
"blocks.*.mlp.W_out" = "d_model d_mlp"

[task]
kind = "modular_addition"
p = 59
"""


def checkpoint(name: str) -> Path:
    """The file of a published checkpoint; the test is skipped where it is absent."""
    path = FOLDER / f"{name}.safetensors"
    if not path.is_file():
        pytest.skip(f"the published checkpoint {name} is not at hand")
    return path


def grokking_net(folder: Path) -> Path:
    """A `net.toml` for the grokked net of Nanda et al. 2023, written into `folder`."""
    path = folder / "grokking.toml"
    path.write_text(GROKKING_NET.format(weights=checkpoint("grokking_mod113_wd1")))
    return path


def pizza_net(folder: Path, name: str) -> Path:
    """A `net.toml` for one of the transformers of Zhong et al. 2023, written into `folder`."""
    path = folder / f"{name}.toml"
    path.write_text(_PIZZA_NET.format(weights=checkpoint(name), rate=PIZZA_NETS[name]))
    return path
