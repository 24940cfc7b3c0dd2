"""The slow reference: a node patched by plain module hooks on the transformers model itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tests import fixtures


def patched_logits(
    model: Any, kind: str, layer: int, head: int, position: int, source: Tensor, base: Tensor
) -> Tensor:
    """Last logits of the base run with one node's output at `position` from the source run."""
    o_proj, mlp = fixtures.submodules(model, layer)
    d_head = o_proj.weight.numel() // model.config.hidden_size // model.config.num_attention_heads
    columns = slice(head * d_head, (head + 1) * d_head)
    seen: list[Tensor] = []

    def swap(value: Tensor, where: slice) -> Tensor:
        if not seen:
            seen.append(value.clone())
            return value
        value = value.clone()
        value[:, position, where] = seen[0][:, position, where]
        return value

    def before_output_projection(module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor]:
        return (swap(given[0], columns),)

    def after_component(module: nn.Module, given: Any, output: Tensor) -> Tensor:
        return swap(output, slice(None))

    if kind == "heads":
        handle = o_proj.register_forward_pre_hook(before_output_projection)
    else:
        # GPT-2's attention returns a tuple, but its output projection gives what is written.
        module = mlp if kind == "mlps" else o_proj
        handle = module.register_forward_hook(after_component)
    with torch.no_grad(), removed(handle):
        model(source)
        return model(base).logits[:, -1]


def direct_logits(model: Any, writes: Callable[[Tensor], Tensor], base: Tensor) -> Tensor:
    """Last logits with a difference added to the input of the final norm, at the last position."""
    norm = {
        "gpt2": lambda: model.transformer.ln_f,
        "gptj": lambda: model.transformer.ln_f,
        "gpt_neox": lambda: model.gpt_neox.final_layer_norm,
        "llama": lambda: model.model.norm,
    }[model.config.model_type]()

    def add(module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor]:
        state = given[0].clone()
        state[:, -1] += writes(state)
        return (state,)

    with torch.no_grad(), removed(norm.register_forward_pre_hook(add)):
        return model(base).logits[:, -1]


def component_write(model: Any, kind: str, layer: int, head: int, tokens: Tensor) -> Tensor:
    """What a node writes at the last position."""
    o_proj, mlp = fixtures.submodules(model, layer)
    seen: dict[str, Tensor] = {}

    def keep(module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        seen["in"], seen["out"] = given[0][:, -1], output[:, -1]

    module = mlp if kind == "mlps" else o_proj
    with torch.no_grad(), removed(module.register_forward_hook(keep)):
        model(tokens)
    if kind != "heads":
        return seen["out"]
    d_head = seen["in"].shape[-1] // model.config.num_attention_heads
    z = torch.zeros_like(seen["in"])
    z[:, head * d_head : (head + 1) * d_head] = seen["in"][:, head * d_head : (head + 1) * d_head]
    with torch.no_grad():
        bias = o_proj(torch.zeros_like(z))
        return o_proj(z) - bias


@contextmanager
def removed(handle: Any) -> Iterator[None]:
    try:
        yield
    finally:
        handle.remove()
