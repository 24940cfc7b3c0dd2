"""Small GGUF files for the tests, written as llama.cpp's converter writes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

# SmolLM2's kind of vocabulary, in small: digits alone, the space as "Ġ", the newline as "Ċ".
DIGITS = list("0123456789")
TOKENS = ["<|end|>", "<|start|>", *DIGITS, "+", "=", "-", "Ġ", "Ċ", "ĠĠ", "ĊĊ", "a", "b", "ab"]
MERGES = ["Ġ Ġ", "Ċ Ċ", "a b"]

F32 = gguf.GGMLQuantizationType.F32


def tiny_llama(**changes: Any) -> LlamaForCausalLM:
    """A random Llama with grouped queries, whose norms are away from 1."""
    settings: dict[str, Any] = {
        "vocab_size": len(TOKENS),
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
        "initializer_range": 0.2,
    }
    generator = torch.Generator().manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**settings | changes)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            draw = torch.empty_like(parameter).normal_(generator=generator)
            parameter.copy_(1 + 0.3 * draw if "norm" in name else 0.2 * draw)
    return model


def write_gguf(
    path: Path,
    model: LlamaForCausalLM,
    quantization: gguf.GGMLQuantizationType = F32,
    *,
    architecture: str = "llama",
    keys: dict[str, Any] | None = None,
    tokenizer: bool = True,
    extra: dict[str, np.ndarray] | None = None,
    leave_out: Iterable[str] = (),
) -> Path:
    """Write `model` as GGUF, and put the quantised values into the model, to compare with.

    Args:
        keys: more metadata, or other values of it (None leaves a key out).
        extra: more tensors.
        leave_out: tensors to leave out.
    """
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    settings: dict[str, Any] = {
        "llama.context_length": config.max_position_embeddings,
        "llama.embedding_length": config.hidden_size,
        "llama.block_count": config.num_hidden_layers,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.attention.head_count": config.num_attention_heads,
        "llama.attention.head_count_kv": config.num_key_value_heads,
        "llama.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "llama.rope.freq_base": float(config.rope_parameters["rope_theta"]),
        "llama.rope.dimension_count": config.head_dim,
        "llama.vocab_size": config.vocab_size,
    }
    if tokenizer:
        settings |= {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "smollm",
            "tokenizer.ggml.tokens": TOKENS,
            "tokenizer.ggml.token_type": [3, 3] + [1] * (len(TOKENS) - 2),
            "tokenizer.ggml.merges": MERGES,
            "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 0,
            "tokenizer.ggml.add_bos_token": False,
        }
    for key, value in (settings | (keys or {})).items():
        _add_key(writer, key, value)
    for name, tensor in _tensors(model, quantization).items():
        if name not in leave_out:
            kind = quantization if tensor.ndim == 2 else F32
            writer.add_tensor(name, gguf.quantize(tensor, kind), raw_dtype=kind)
    for name, tensor in (extra or {}).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_key(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif value is not None:
        writer.add_array(key, value)


def _tensors(
    model: LlamaForCausalLM, quantization: gguf.GGMLQuantizationType
) -> dict[str, np.ndarray]:
    names = {
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        "lm_head": "output",
        "input_layernorm": "attn_norm",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    tensors = {}
    for full, parameter in model.named_parameters():
        name = full.removesuffix(".weight").replace("model.layers.", "blk.")
        for hugging_face, short in names.items():
            name = name.replace(hugging_face, short)
        weight = parameter.detach().numpy().copy()
        if weight.ndim == 2:
            quantized = gguf.quantize(weight, quantization)
            weight = gguf.dequantize(quantized, quantization)
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(weight))
        heads = {
            "attn_q": model.config.num_attention_heads,
            "attn_k": model.config.num_key_value_heads,
        }.get(name.split(".")[-1])
        tensors[f"{name}.weight"] = weight if heads is None else _interleaved(weight, heads)
    return tensors


def _interleaved(weight: np.ndarray, n_heads: int) -> np.ndarray:
    """llama.cpp's order: row i of a head's first half, then row i of its second half."""
    rows = []
    for head in np.split(weight, n_heads):
        half = len(head) // 2
        for first, second in zip(head[:half], head[half:], strict=True):
            rows += [first, second]
    return np.stack(rows)
