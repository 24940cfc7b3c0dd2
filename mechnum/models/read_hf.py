"""Reads the weights of transformers models: views under the canonical names, no copies."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.rotary import RotaryFrequencies
from mechnum.models.spec import ModelSpec
from mechnum.models.weights import (
    AttentionWeights,
    BlockWeights,
    MlpWeights,
    NormWeights,
    Weights,
)


def weights_from_hf(model: Any, spec: ModelSpec) -> Weights:
    """The weights of a transformers causal language model, by reference."""
    for name, parameter in model.named_parameters():
        if not parameter.is_floating_point() or parameter.is_meta:
            raise MechnumError(
                f"weight {name} is {'not loaded' if parameter.is_meta else parameter.dtype}: "
                "load the model in float32, float16 or bfloat16, without quantisation or offloading"
            )
    devices = {str(parameter.device) for parameter in model.parameters()}
    if len(devices) > 1:
        raise MechnumError(
            f"the model is spread over {', '.join(sorted(devices))}: load it on one device"
        )
    read = {"gpt2": _gpt2, "gptj": _gptj, "gpt_neox": _gpt_neox, "llama": _llama}[spec.family]
    body, blocks, final_norm, W_pos = read(model, spec)
    head = model.get_output_embeddings()
    return Weights(
        W_E=body.get_input_embeddings().weight.detach(),
        W_pos=W_pos,
        blocks=blocks,
        ln_final=_norm(final_norm),
        W_U=_in_out(head),
        b_U=_bias(head),
    )


def rotary_from_hf(config: Any, spec: ModelSpec, device: torch.device) -> RotaryFrequencies | None:
    """The rotary frequencies that transformers derives from `config`, scaling included."""
    if spec.rotary is None:
        return None
    if spec.family == "gptj":
        steps = torch.arange(0, spec.rotary_dim, 2, dtype=torch.float32, device=device)
        return RotaryFrequencies(10000.0 ** (-steps / spec.rotary_dim))
    if spec.family == "llama":
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding as Embedding
    else:
        from transformers.models.gpt_neox.modeling_gpt_neox import (
            GPTNeoXRotaryEmbedding as Embedding,
        )
    embedding = Embedding(config).to(device)
    return RotaryFrequencies(embedding.inv_freq, float(embedding.attention_scaling))


def _gpt2(model: Any, spec: ModelSpec) -> tuple[Any, tuple[BlockWeights, ...], Any, Tensor]:
    body = model.transformer
    blocks = []
    for block in body.h:
        # Conv1D keeps [in, out]: queries, keys and values are three column blocks.
        W_Q, W_K, W_V = (
            part.unflatten(1, (spec.n_heads, spec.d_head)).permute(1, 0, 2)
            for part in block.attn.c_attn.weight.detach().chunk(3, dim=1)
        )
        b_Q, b_K, b_V = (
            part.unflatten(0, (spec.n_heads, spec.d_head))
            for part in block.attn.c_attn.bias.detach().chunk(3)
        )
        W_O = block.attn.c_proj.weight.detach().unflatten(0, (spec.n_heads, spec.d_head))
        b_O = _bias(block.attn.c_proj)
        blocks.append(
            BlockWeights(
                ln1=_norm(block.ln_1),
                attn=AttentionWeights(W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O),
                ln2=_norm(block.ln_2),
                mlp=MlpWeights(
                    W_in=block.mlp.c_fc.weight.detach(),
                    W_out=block.mlp.c_proj.weight.detach(),
                    W_gate=None,
                    b_in=_bias(block.mlp.c_fc),
                    b_gate=None,
                    b_out=_bias(block.mlp.c_proj),
                ),
            )
        )
    return body, tuple(blocks), body.ln_f, body.wpe.weight.detach()


def _gptj(model: Any, spec: ModelSpec) -> tuple[Any, tuple[BlockWeights, ...], Any, None]:
    body = model.transformer
    blocks = []
    for block in body.h:
        attn, norm = block.attn, _norm(block.ln_1)
        blocks.append(
            BlockWeights(
                ln1=norm,
                attn=_attention(attn.q_proj, attn.k_proj, attn.v_proj, attn.out_proj, spec),
                ln2=norm,
                mlp=_mlp(block.mlp.fc_in, block.mlp.fc_out),
            )
        )
    return body, tuple(blocks), body.ln_f, None


def _gpt_neox(model: Any, spec: ModelSpec) -> tuple[Any, tuple[BlockWeights, ...], Any, None]:
    body = model.gpt_neox
    blocks = []
    for block in body.layers:
        joint = block.attention.query_key_value
        # Rows are laid out head by head: its query, its key, its value.
        parts = joint.weight.detach().unflatten(0, (spec.n_heads, 3, spec.d_head))
        b_Q = b_K = b_V = None
        if joint.bias is not None:
            shape = (spec.n_heads, 3, spec.d_head)
            b_Q, b_K, b_V = joint.bias.detach().unflatten(0, shape).unbind(1)
        W_Q, W_K, W_V = (part.transpose(1, 2) for part in parts.unbind(1))
        out = block.attention.dense
        blocks.append(
            BlockWeights(
                ln1=_norm(block.input_layernorm),
                attn=AttentionWeights(
                    W_Q, W_K, W_V, _heads_out(out, spec), b_Q, b_K, b_V, _bias(out)
                ),
                ln2=_norm(block.post_attention_layernorm),
                mlp=_mlp(block.mlp.dense_h_to_4h, block.mlp.dense_4h_to_h),
            )
        )
    return body, tuple(blocks), body.final_layer_norm, None


def _llama(model: Any, spec: ModelSpec) -> tuple[Any, tuple[BlockWeights, ...], Any, None]:
    body = model.model
    blocks = []
    for block in body.layers:
        attn, mlp = block.self_attn, block.mlp
        blocks.append(
            BlockWeights(
                ln1=_norm(block.input_layernorm),
                attn=_attention(attn.q_proj, attn.k_proj, attn.v_proj, attn.o_proj, spec),
                ln2=_norm(block.post_attention_layernorm),
                mlp=_mlp(mlp.up_proj, mlp.down_proj, mlp.gate_proj),
            )
        )
    return body, tuple(blocks), body.norm, None


def _attention(q: Any, k: Any, v: Any, o: Any, spec: ModelSpec) -> AttentionWeights:
    return AttentionWeights(
        W_Q=_heads_in(q, spec.n_heads),
        W_K=_heads_in(k, spec.n_kv_heads),
        W_V=_heads_in(v, spec.n_kv_heads),
        W_O=_heads_out(o, spec),
        b_Q=_heads_bias(q, spec.n_heads),
        b_K=_heads_bias(k, spec.n_kv_heads),
        b_V=_heads_bias(v, spec.n_kv_heads),
        b_O=_bias(o),
    )


def _mlp(up: Any, down: Any, gate: Any = None) -> MlpWeights:
    return MlpWeights(
        W_in=_in_out(up),
        W_out=_in_out(down),
        W_gate=None if gate is None else _in_out(gate),
        b_in=_bias(up),
        b_gate=None if gate is None else _bias(gate),
        b_out=_bias(down),
    )


def _norm(module: Any) -> NormWeights:
    return NormWeights(module.weight.detach(), _bias(module))


def _in_out(linear: Any) -> Float[Tensor, "d_in d_out"]:
    """torch's Linear keeps [out, in]."""
    return linear.weight.detach().T


def _heads_in(linear: Any, n_heads: int) -> Float[Tensor, "head d_model d_head"]:
    return linear.weight.detach().unflatten(0, (n_heads, -1)).transpose(1, 2)


def _heads_out(linear: Any, spec: ModelSpec) -> Float[Tensor, "head d_head d_model"]:
    return linear.weight.detach().unflatten(1, (spec.n_heads, spec.d_head)).permute(1, 2, 0)


def _heads_bias(linear: Any, n_heads: int) -> Float[Tensor, "head d_head"] | None:
    return None if linear.bias is None else linear.bias.detach().unflatten(0, (n_heads, -1))


def _bias(module: Any) -> Float[Tensor, " d_out"] | None:
    bias = getattr(module, "bias", None)
    return None if bias is None else bias.detach()
