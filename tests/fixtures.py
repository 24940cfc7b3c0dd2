"""Tiny models of every architecture, with norms and biases moved away from 1 and 0.

Tokens: 0 begins a prompt, 1 pads, 2 is '+', 3 is '=', and numbers start at 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

CLEAN = torch.tensor([[0, 10, 2, 20, 3]])
CORRUPT = torch.tensor([[0, 12, 2, 31, 3]])
_TOKENS = {"bos_token_id": 0, "eos_token_id": 4, "pad_token_id": 1}


def perturbed(model: nn.Module, seed: int = 0) -> Any:
    """Norms and biases as far from 1 and 0 as in a trained model, and weights that matter."""
    generator = np.random.default_rng(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.from_numpy(generator.normal(size=parameter.shape)).to(parameter.dtype)
            if "norm" in name or ".ln_" in name:
                parameter.add_(0.3 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.1 * noise)
            else:
                parameter.copy_(0.08 * noise)
    return model.eval()


def gptj(**changes: Any) -> Any:
    from transformers import GPTJConfig, GPTJForCausalLM

    shape = {"n_positions": 64, "n_embd": 32, "n_layer": 3, "n_head": 4, "rotary_dim": 4}
    config = GPTJConfig(vocab_size=64, **{**shape, **_TOKENS, **changes})
    return perturbed(GPTJForCausalLM(config))


def gpt_neox(**changes: Any) -> Any:
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    shape = {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "max_position_embeddings": 64,
        "rotary_pct": 0.25,
    }
    config = GPTNeoXConfig(vocab_size=64, **{**shape, **_TOKENS, **changes})
    return perturbed(GPTNeoXForCausalLM(config))


def llama(**changes: Any) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    }
    config = LlamaConfig(vocab_size=64, **{**shape, **_TOKENS, **changes})
    return perturbed(LlamaForCausalLM(config))


def gpt2(**changes: Any) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = {"n_positions": 64, "n_embd": 32, "n_layer": 3, "n_head": 4}
    config = GPT2Config(vocab_size=64, **{**shape, **_TOKENS, **changes})
    return perturbed(GPT2LMHeadModel(config))


def gemma2() -> Any:
    from transformers import Gemma2Config, Gemma2ForCausalLM

    config = Gemma2Config(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=64,
        final_logit_softcapping=30.0,
        **_TOKENS,
    )
    return perturbed(Gemma2ForCausalLM(config))


ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "gpt2": gpt2,
    "gptj": gptj,
    "gpt_neox parallel": gpt_neox,
    "gpt_neox sequential": lambda: gpt_neox(use_parallel_residual=False),
    "llama grouped": llama,
    "llama multi-head": lambda: llama(num_key_value_heads=4),
    "llama tied": lambda: llama(tie_word_embeddings=True),
    "llama biased, wide heads": lambda: llama(head_dim=16, attention_bias=True, mlp_bias=True),
    "llama 3 rope": lambda: llama(
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        }
    ),
}


def rest_slow(names: Iterable[Any], *fast: Any) -> list[Any]:
    """Parameters of which all but `fast` are left to the slow tests."""
    return [
        name
        if name in fast
        else pytest.param(*(name if isinstance(name, tuple) else (name,)), marks=pytest.mark.slow)
        for name in names
    ]


def submodules(model: Any, layer: int) -> tuple[nn.Module, nn.Module]:
    """Attention's output projection and the MLP of one layer of a transformers model."""
    kind = model.config.model_type
    if kind == "gpt2":
        block = model.transformer.h[layer]
        return block.attn.c_proj, block.mlp
    if kind == "gptj":
        block = model.transformer.h[layer]
        return block.attn.out_proj, block.mlp
    if kind == "gpt_neox":
        block = model.gpt_neox.layers[layer]
        return block.attention.dense, block.mlp
    block = model.model.layers[layer]
    return block.self_attn.o_proj, block.mlp


def neuron_modules(model: Any, layer: int) -> tuple[nn.Module, nn.Module, Tensor]:
    """What gives the activation function's input, what reads the neurons, and W_out by neuron."""
    mlp = submodules(model, layer)[1]
    names = {
        "gpt2": ("c_fc", "c_proj"),
        "gptj": ("fc_in", "fc_out"),
        "gpt_neox": ("dense_h_to_4h", "dense_4h_to_h"),
        "llama": ("gate_proj", "down_proj"),
    }[model.config.model_type]
    into, out = (getattr(mlp, name) for name in names)
    # GPT-2's Conv1D has its weights the other way round.
    W_out = out.weight if model.config.model_type == "gpt2" else out.weight.T
    return into, out, W_out.detach()


def random_tokens(n_prompts: int, length: int, seed: int = 0) -> Tensor:
    """Number tokens after a BOS token."""
    drawn = np.random.default_rng(seed).integers(6, 64, size=(n_prompts, length))
    drawn[:, 0] = 0
    return torch.from_numpy(drawn)


def bridge(model: Any, **compatibility: Any) -> Any:
    """A TransformerBridge on a copy of a transformers model, in compatibility mode if asked."""
    import copy

    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")
    bridged = build_bridge_from_module(twin, type(model).__name__, hf_config=model.config)
    if compatibility:
        bridged.enable_compatibility_mode(disable_warnings=True, **compatibility)
    return bridged
