"""What a decoder-only model is made of, as far as its arithmetic goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mechnum.errors import MechnumError

Norm = Literal["layer", "rms"]
RotaryPairs = Literal["adjacent", "half"]

# Names that transformers and TransformerLens give to the same function.
_ACTIVATION_NAMES = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
# Where the configuration of a native net has what TransformerLens has no field for.
ATTENTION_RATE = "attention_rate"
# Rotary scalings whose angles do not depend on the length of the prompt.
_STATIC_ROPE_TYPES = frozenset({"default", "linear", "llama3", "yarn"})


@dataclass(frozen=True)
class ModelSpec:
    """The facts that the canonical decoder is driven by.

    Attributes:
        family: the architecture that the weights were laid out for.
        n_kv_heads: key-value groups; fewer than `n_heads` in grouped-query models.
        d_mlp: 0 where there are no MLPs.
        d_vocab_out: number of logits.
        norm: kind of the norms in the blocks; None leaves them out.
        final_norm: kind of the norm before the unembedding.
        parallel: attention and MLP both read the block's input (GPT-J, Pythia).
        rotary: which coordinates of queries and keys are rotated together; None without rotary
            embeddings.
        rotary_dim: how many of the `d_head` coordinates are rotated.
        gated: the MLP's activation is multiplied by a second projection (Llama).
        attention_rate: share of the softmax in the attention pattern; the rest is a one for each
            key (see `mechnum.models.attention_rate`).
        tied: the checkpoint has one matrix for embedding and unembedding.
        bos_token_id, pad_token_id: as the model's own configuration has them.
    """

    family: Literal["gpt2", "gptj", "gpt_neox", "llama", "native"]
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_model: int
    d_head: int
    d_mlp: int
    d_vocab: int
    d_vocab_out: int
    n_ctx: int
    norm: Norm | None
    final_norm: Norm | None
    norm_eps: float
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"]
    parallel: bool = False
    rotary: RotaryPairs | None = None
    rotary_dim: int = 0
    gated: bool = False
    attention_rate: float = 1.0
    tied: bool = False
    bos_token_id: int | None = None
    pad_token_id: int | None = None

    @property
    def heads_per_group(self) -> int:
        """Query heads that share one key-value group."""
        return self.n_heads // self.n_kv_heads


def spec_from_hf(config: Any) -> ModelSpec:
    """The spec of a transformers configuration; architectures outside the four are refused."""
    reader = {
        "gpt2": _gpt2,
        "gptj": _gptj,
        "gpt_neox": _gpt_neox,
        "llama": _llama,
    }.get(config.model_type)
    if reader is None:
        raise MechnumError(
            f"architecture {config.model_type!r} is not supported: "
            "use a GPT-2, GPT-J, GPT-NeoX (Pythia) or Llama model"
        )
    return reader(config)


def spec_from_tl(config: Any) -> ModelSpec:
    """The spec of a TransformerLens configuration (HookedTransformer or native net)."""
    for field in ("attn_scores_soft_cap", "output_logits_soft_cap"):
        if (getattr(config, field, -1.0) or -1.0) > 0:
            raise _unsupported(field)
    for field in (
        "use_normalization_before_and_after",
        "use_local_attn",
        "scale_attn_by_inverse_layer_idx",
        "use_qk_norm",
        "num_experts",
        "post_embedding_ln",
    ):
        if getattr(config, field, None):
            raise _unsupported(field)
    if getattr(config, "attention_dir", "causal") != "causal":
        raise _unsupported("bidirectional attention")
    scale = getattr(config, "attn_scale", -1.0)
    if not config.use_attn_scale or (scale > 0 and abs(scale - config.d_head**0.5) > 1e-6):
        raise _unsupported("an attention scale other than the root of d_head")
    positions = config.positional_embedding_type
    if positions not in ("standard", "rotary"):
        raise _unsupported(f"positional embedding {positions!r}")
    norm = _tl_norm(config.normalization_type)
    # Native nets pair adjacent coordinates whatever their configuration says.
    native = getattr(config, "architecture", None) == "TransformerLensNative"
    adjacent = native or getattr(config, "rotary_adjacent_pairs", False)
    return ModelSpec(
        family="native",
        n_layers=config.n_layers,
        n_heads=config.n_heads,
        n_kv_heads=config.n_key_value_heads or config.n_heads,
        d_model=config.d_model,
        d_head=config.d_head,
        d_mlp=0 if config.attn_only else config.d_mlp,
        d_vocab=config.d_vocab,
        d_vocab_out=config.d_vocab_out if config.d_vocab_out > 0 else config.d_vocab,
        n_ctx=config.n_ctx,
        norm=norm,
        final_norm="rms" if config.final_rms and norm else norm,
        norm_eps=config.eps,
        activation=_activation(config.act_fn),
        parallel=bool(config.parallel_attn_mlp),
        rotary=None if positions == "standard" else ("adjacent" if adjacent else "half"),
        rotary_dim=0 if positions == "standard" else (config.rotary_dim or config.d_head),
        gated=bool(config.gated_mlp),
        attention_rate=getattr(config, ATTENTION_RATE, 1.0),
    )


def _gpt2(config: Any) -> ModelSpec:
    if config.scale_attn_by_inverse_layer_idx or not config.scale_attn_weights:
        raise _unsupported("GPT-2 with another attention scale than the root of d_head")
    return ModelSpec(
        family="gpt2",
        d_mlp=config.n_inner or 4 * config.n_embd,
        norm="layer",
        final_norm="layer",
        norm_eps=config.layer_norm_epsilon,
        activation=_activation(config.activation_function),
        tied=config.tie_word_embeddings,
        **_gpt_shape(config),
    )


def _gptj(config: Any) -> ModelSpec:
    return ModelSpec(
        family="gptj",
        d_mlp=config.n_inner or 4 * config.n_embd,
        norm="layer",
        final_norm="layer",
        norm_eps=config.layer_norm_epsilon,
        activation=_activation(config.activation_function),
        parallel=True,
        rotary="adjacent",
        rotary_dim=config.rotary_dim or config.n_embd // config.n_head,
        tied=config.tie_word_embeddings,
        **_gpt_shape(config),
    )


def _gpt_neox(config: Any) -> ModelSpec:
    d_head = config.hidden_size // config.num_attention_heads
    return ModelSpec(
        family="gpt_neox",
        n_kv_heads=config.num_attention_heads,
        d_head=d_head,
        norm="layer",
        final_norm="layer",
        norm_eps=config.layer_norm_eps,
        parallel=config.use_parallel_residual,
        rotary="half",
        rotary_dim=int(d_head * _rope(config).get("partial_rotary_factor", 1.0)),
        **_modern_shape(config),
    )


def _llama(config: Any) -> ModelSpec:
    d_head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    _rope(config)
    return ModelSpec(
        family="llama",
        n_kv_heads=config.num_key_value_heads or config.num_attention_heads,
        d_head=d_head,
        norm="rms",
        final_norm="rms",
        norm_eps=config.rms_norm_eps,
        rotary="half",
        rotary_dim=d_head,
        gated=True,
        **_modern_shape(config),
    )


def _gpt_shape(config: Any) -> dict[str, Any]:
    return {
        "n_layers": config.n_layer,
        "n_heads": config.n_head,
        "n_kv_heads": config.n_head,
        "d_model": config.n_embd,
        "d_head": config.n_embd // config.n_head,
        "d_vocab": config.vocab_size,
        "d_vocab_out": config.vocab_size,
        "n_ctx": config.n_positions,
        **_special_tokens(config),
    }


def _modern_shape(config: Any) -> dict[str, Any]:
    return {
        "n_layers": config.num_hidden_layers,
        "n_heads": config.num_attention_heads,
        "d_model": config.hidden_size,
        "d_mlp": config.intermediate_size,
        "d_vocab": config.vocab_size,
        "d_vocab_out": config.vocab_size,
        "n_ctx": config.max_position_embeddings,
        "activation": _activation(config.hidden_act),
        "tied": config.tie_word_embeddings,
        **_special_tokens(config),
    }


def _special_tokens(config: Any) -> dict[str, int | None]:
    return {name: getattr(config, name, None) for name in ("bos_token_id", "pad_token_id")}


def _rope(config: Any) -> dict[str, Any]:
    """The rotary parameters, refused where the angles change with the prompt's length."""
    parameters = dict(config.rope_parameters or {})
    kind = parameters.get("rope_type", "default")
    if kind not in _STATIC_ROPE_TYPES:
        raise _unsupported(f"rope scaling {kind!r}")
    return parameters


def _activation(name: str) -> Any:
    if name not in _ACTIVATION_NAMES:
        raise _unsupported(f"activation {name!r}")
    return _ACTIVATION_NAMES[name]


def _tl_norm(name: str | None) -> Norm | None:
    if name is None:
        return None
    if name not in ("LN", "LNPre", "RMS", "RMSPre"):
        raise _unsupported(f"norm {name!r}")
    return "layer" if name.startswith("LN") else "rms"


def _unsupported(what: str) -> MechnumError:
    return MechnumError(
        f"{what} is not supported: "
        "use a GPT-2, GPT-J, GPT-NeoX (Pythia), Llama or plain TransformerLens-native model"
    )
