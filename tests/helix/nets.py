"""A small model whose answers mean nothing, but whose numbers are tokens."""

from __future__ import annotations

import torch
from transformers import GPTJConfig, GPTJForCausalLM

import mechnum as mn
from mechnum.models import Model

P = 23


def tiny_gptj() -> GPTJForCausalLM:
    """Three parallel blocks that read the numbers 0 to 22 and `=`, all weights random."""
    config = GPTJConfig(
        vocab_size=P + 1,
        n_positions=8,
        n_embd=32,
        n_layer=3,
        n_head=4,
        rotary_dim=4,
        bos_token_id=None,
        eos_token_id=None,
    )
    generator = torch.Generator().manual_seed(0)
    net = GPTJForCausalLM(config).eval()
    with torch.no_grad():
        for weights in net.parameters():
            weights.normal_(0, 0.3, generator=generator)
    return net


def tiny_model() -> Model:
    return mn.wrap(tiny_gptj(), name="tiny")
