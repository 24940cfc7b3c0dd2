"""A small model whose answers mean nothing, but whose numbers are tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from transformers import GPTJConfig, GPTJForCausalLM

import mechnum as mn
from mechnum.models import Model
from mechnum.tasks import Pairs

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


def stages(net: GPTJForCausalLM) -> list[torch.nn.Module]:
    """What gives the embedding, and every block."""
    return [net.transformer.drop, *net.transformer.h]


@contextmanager
def overwritten(
    net: GPTJForCausalLM, layer: int, place: int, values: torch.Tensor, times: int = 1
) -> Iterator[None]:
    """One stage's output at one position replaced by `values`, by as many hooks as `times`."""

    def hook(module, given, output):
        state = output[0] if isinstance(output, tuple) else output
        state = state.clone()
        state[:, place] = values
        return (state, *output[1:]) if isinstance(output, tuple) else state

    handles = [stages(net)[layer + 1].register_forward_hook(hook) for _ in range(times)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def logit_diff(net: GPTJForCausalLM, pairs: Pairs, tokens: torch.Tensor) -> np.ndarray:
    (group,) = pairs.groups
    with torch.no_grad():
        logits = net(tokens).logits[:, -1].double()
    rows = torch.arange(len(tokens))
    return (logits[rows, group.clean.answers] - logits[rows, group.corrupt.answers]).numpy()


def stage_outputs(net: GPTJForCausalLM, tokens: torch.Tensor) -> list[np.ndarray]:
    kept: list[np.ndarray] = []
    handles = [
        block.register_forward_hook(
            lambda module, given, output: kept.append(
                (output[0] if isinstance(output, tuple) else output).double().numpy()
            )
        )
        for block in stages(net)
    ]
    with torch.no_grad():
        net(tokens)
    for handle in handles:
        handle.remove()
    return kept
