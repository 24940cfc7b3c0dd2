"""The transformers config of a Llama from the metadata of its GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from mechnum.errors import MechnumError

# What is read below, or says nothing about the computation. Any other `llama.` key may change
# what the network computes, so a file that has one is refused instead of read wrongly.
_KNOWN = {
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
}
_OFF_WHEN_ZERO = {"expert_count", "expert_used_count"}


def llama_config(
    metadata: Mapping[str, Any],
    d_vocab: int,
    tied: bool,
    rope_factors: Float[np.ndarray, "half_d_head"] | None = None,
) -> dict[str, Any]:
    """The content of `config.json` for `LlamaForCausalLM`.

    Args:
        metadata: the keys and values of the file.
        d_vocab: rows of the embedding.
        tied: whether the unembedding is the embedding.
        rope_factors: the file's `rope_freqs.weight`, by which each rotary frequency is divided.

    Raises:
        MechnumError: a key is missing, malformed, or asks for a computation that Llama lacks.
    """
    for key, value in metadata.items():
        name = key.removeprefix("llama.")
        if name == key or name in _KNOWN or (name in _OFF_WHEN_ZERO and value == 0):
            continue
        raise MechnumError(
            f"the GGUF key {key} = {str(value)[:40]} asks for something that a plain Llama does "
            "not compute: use the model's Hugging Face folder"
        )
    n_heads = _whole(metadata, "llama.attention.head_count")
    d_model = _whole(metadata, "llama.embedding_length")
    d_head = _whole(metadata, "llama.attention.key_length", d_model // n_heads)
    for key in ("llama.attention.value_length", "llama.rope.dimension_count"):
        if _whole(metadata, key, d_head) != d_head:
            raise MechnumError(
                f"the GGUF key {key} = {metadata[key]} is not the head width {d_head}, which a "
                "Llama needs: use the model's Hugging Face folder"
            )
    theta = _number(metadata, "llama.rope.freq_base", 10000.0)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": d_vocab,
        "hidden_size": d_model,
        "intermediate_size": _whole(metadata, "llama.feed_forward_length"),
        "num_hidden_layers": _whole(metadata, "llama.block_count"),
        "num_attention_heads": n_heads,
        "num_key_value_heads": _whole(metadata, "llama.attention.head_count_kv", n_heads),
        "head_dim": d_head,
        "hidden_act": "silu",
        "max_position_embeddings": _whole(metadata, "llama.context_length"),
        "rms_norm_eps": _number(metadata, "llama.attention.layer_norm_rms_epsilon"),
        "rope_theta": theta,
        "rope_scaling": _rope_scaling(metadata, theta, d_head, rope_factors),
        "tie_word_embeddings": tied,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
        "dtype": "float32",
    }


def _rope_scaling(
    metadata: Mapping[str, Any],
    theta: float,
    d_head: int,
    factors: Float[np.ndarray, "half_d_head"] | None,
) -> dict[str, Any] | None:
    kind = metadata.get("llama.rope.scaling.type", "none")
    if kind == "linear" and factors is None:
        return {"rope_type": "linear", "factor": _number(metadata, "llama.rope.scaling.factor")}
    if kind != "none":
        raise MechnumError(
            f"the rope scaling {kind!r} of the GGUF file is not read (none, linear and llama3 "
            "are): use the model's Hugging Face folder"
        )
    return None if factors is None else llama3_scaling(theta, d_head, factors)


def llama3_scaling(
    theta: float, d_head: int, factors: Float[np.ndarray, "half_d_head"]
) -> dict[str, Any]:
    """The parameters of "llama3" rope scaling that give these factors.

    The file stores only the factor that divides each rotary frequency f_i = theta^(-2i/d_head).
    Llama 3.1 sets 1/factor_i = (1 - s_i)/F + s_i with s_i = (L f_i/(2 pi) - low)/(high - low)
    cut to [0, 1]. Of L, low and high only two ratios matter, so low = 1 is taken, as Llama
    3.1 to 3.3 have it, and the line s(f) is read from the frequencies in between.

    Raises:
        MechnumError: the factors are of another form.
    """
    other = MechnumError(
        "the rope factors (rope_freqs.weight) of the GGUF file are not of the llama3 form: use "
        "the model's Hugging Face folder"
    )
    frequency = theta ** (-np.arange(0, d_head, 2) / d_head)
    factors = factors.astype(np.float64)
    if factors.shape != frequency.shape or not factors.min() > 0:
        raise other
    # Rounded as published, here and below: the file's float32 leaves noise in the digits after.
    scale = round(float(factors.max()), 4)
    if scale == 1:
        return {"rope_type": "default"}
    share = (1 / factors - 1 / scale) / (1 - 1 / scale)
    between = (share > 1e-4) & (share < 1 - 1e-4)
    if between.sum() < 2:
        raise other
    slope, offset = np.polyfit(frequency[between] / (2 * np.pi), share[between], 1)
    if not (slope > 0 and offset < 0):
        raise other
    high = round(1 - 1 / offset, 4)
    length = round(-slope / offset)
    line = np.clip((length * frequency / (2 * np.pi) - 1) / (high - 1), 0, 1)
    if not np.allclose((1 - line) / scale + line, 1 / factors, rtol=1e-5):
        raise other
    return {
        "rope_type": "llama3",
        "factor": scale,
        "low_freq_factor": 1.0,
        "high_freq_factor": high,
        "original_max_position_embeddings": length,
    }


def _whole(metadata: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = metadata.get(key, default)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise _malformed(key, value)


def _number(metadata: Mapping[str, Any], key: str, default: float | None = None) -> float:
    value = metadata.get(key, default)
    if isinstance(value, float) and value > 0:
        return value
    raise _malformed(key, value)


def _malformed(key: str, value: Any) -> MechnumError:
    found = "is missing" if value is None else f"= {str(value)[:40]} is not one positive number"
    return MechnumError(
        f"the GGUF key {key} {found}: get the file again, or use the model's Hugging Face folder"
    )
