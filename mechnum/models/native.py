"""TransformerLens-native nets: the small transformers without a Hugging Face architecture.

Their tensors are stored under TransformerLens' names and layouts (`blocks.0.attn.W_Q` as
[head, d_model, d_head]). TransformerLens is imported inside the functions, since its import takes
seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from annotated_types import Ge, Gt, Le

from mechnum.errors import MechnumError
from mechnum.models.spec import ATTENTION_RATE
from mechnum.models.tl_version import require_transformer_lens

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformer_lens.config import TransformerBridgeConfig
    from transformer_lens.model_bridge import TransformerBridge

Size = Annotated[int, Gt(0)]
Share = Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True)
class NativeConfig:
    """Shape of a TransformerLens-native net, in TransformerLens' own field names but the last.

    Attributes:
        normalization_type: None leaves the norms out, as in the grokking papers.
        positional_embedding_type: "standard" adds a learned position table.
        attention_rate: share of the softmax in the attention pattern; the rest is a one for each
            key, as in Zhong et al. 2023 (see `mechnum.models.attention_rate`).
    """

    n_layers: Size
    n_heads: Size
    d_model: Size
    d_head: Size
    d_mlp: Size
    n_ctx: Size
    d_vocab: Size
    d_vocab_out: Size
    act_fn: str = "relu"
    normalization_type: Literal["LN", "RMS", "LNPre", "RMSPre"] | None = None
    positional_embedding_type: Literal["standard", "rotary"] = "standard"
    attention_rate: Share = 1.0


class Slot(NamedTuple):
    """One tensor: its layout under TransformerLens' name, and its place in NativeModel."""

    layout: str
    native_name: str
    native_layout: str


_SLOTS = {
    "embed.W_E": Slot("d_vocab d_model", "tok_embed.weight", "d_vocab d_model"),
    "pos_embed.W_pos": Slot("n_ctx d_model", "pos.weight", "n_ctx d_model"),
    "ln_final.w": Slot("d_model", "ln_out.weight", "d_model"),
    "ln_final.b": Slot("d_model", "ln_out.bias", "d_model"),
    "unembed.W_U": Slot("d_model d_vocab_out", "head.weight", "d_vocab_out d_model"),
}
_BLOCK_SLOTS = {
    "ln1.w": Slot("d_model", "ln1.weight", "d_model"),
    "ln1.b": Slot("d_model", "ln1.bias", "d_model"),
    "attn.W_Q": Slot("head d_model d_head", "attn.q.weight", "(head d_head) d_model"),
    "attn.W_K": Slot("head d_model d_head", "attn.k.weight", "(head d_head) d_model"),
    "attn.W_V": Slot("head d_model d_head", "attn.v.weight", "(head d_head) d_model"),
    "attn.W_O": Slot("head d_head d_model", "attn.o.weight", "d_model (head d_head)"),
    "attn.b_Q": Slot("head d_head", "attn.q.bias", "(head d_head)"),
    "attn.b_K": Slot("head d_head", "attn.k.bias", "(head d_head)"),
    "attn.b_V": Slot("head d_head", "attn.v.bias", "(head d_head)"),
    "attn.b_O": Slot("d_model", "attn.o.bias", "d_model"),
    "ln2.w": Slot("d_model", "ln2.weight", "d_model"),
    "ln2.b": Slot("d_model", "ln2.bias", "d_model"),
    "mlp.W_in": Slot("d_model d_mlp", "mlp.fc_in.weight", "d_mlp d_model"),
    "mlp.W_out": Slot("d_mlp d_model", "mlp.fc_out.weight", "d_model d_mlp"),
    "mlp.b_in": Slot("d_mlp", "mlp.fc_in.bias", "d_mlp"),
    "mlp.b_out": Slot("d_model", "mlp.fc_out.bias", "d_model"),
}


def bridge_config(config: NativeConfig, seed: int | None = None) -> TransformerBridgeConfig:
    """The same shape as TransformerLens wants it; `seed` sets the initial weights."""
    require_transformer_lens()
    from transformer_lens.config import TransformerBridgeConfig

    fields = asdict(config)
    rate = fields.pop(ATTENTION_RATE)
    found = TransformerBridgeConfig(**fields, seed=seed, architecture="TransformerLensNative")
    setattr(found, ATTENTION_RATE, rate)
    return found


def build_native(config: NativeConfig, seed: int) -> nn.Module:
    """A native net with seeded random weights; torch's global generator is not touched."""
    import torch

    require_transformer_lens()
    from transformer_lens.model_bridge.sources.native import (
        NativeModel,
        initialize_native_model,
    )

    config_with_seed = bridge_config(config, seed)
    with torch.random.fork_rng(devices=[]):
        net = NativeModel(config_with_seed)
        if config.attention_rate < 1:
            from mechnum.models.mixed_attention import MixedAttention

            for block in net.layers:
                block.attn = MixedAttention(config_with_seed, net.rotary, config.attention_rate)
    initialize_native_model(net, config_with_seed)
    return net


def native_bridge(net: nn.Module, config: NativeConfig, name: str) -> TransformerBridge:
    """A TransformerBridge around a native net, on the net's own tensors."""
    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module

    return build_bridge_from_module(
        net, "TransformerLensNative", tl_config=bridge_config(config), model_name=name
    )


def slots(net: nn.Module, config: NativeConfig) -> dict[str, Slot]:
    """Every tensor that `net` has, by TransformerLens' name."""
    named = dict(_SLOTS)
    for layer in range(config.n_layers):
        for name, (layout, native_name, native_layout) in _BLOCK_SLOTS.items():
            named[f"blocks.{layer}.{name}"] = Slot(
                layout, f"layers.{layer}.{native_name}", native_layout
            )
    present = net.state_dict()
    return {name: slot for name, slot in named.items() if slot.native_name in present}


def native_tensors(net: nn.Module, config: NativeConfig) -> dict[str, Tensor]:
    """The net's tensors under TransformerLens' names, contiguous, for saving."""
    from einops import rearrange

    state = net.state_dict()
    return {
        name: rearrange(
            state[slot.native_name],
            f"{slot.native_layout} -> {slot.layout}",
            **({"head": config.n_heads} if "(head" in slot.native_layout else {}),
        ).contiguous()
        for name, slot in slots(net, config).items()
    }


def load_native_tensors(
    net: nn.Module, config: NativeConfig, tensors: Mapping[str, Tensor]
) -> None:
    """Put tensors with TransformerLens' names and layouts into `net`; absent biases become 0.

    Raises:
        MechnumError: where a tensor is missing, left over, or of another shape.
    """
    import torch
    from einops import rearrange

    wanted = slots(net, config)
    left_over = sorted(set(tensors) - set(wanted))
    if left_over:
        raise MechnumError(
            f"tensor {left_over[0]} has no place in this net: map it under [tensors], "
            "list it in `ignore`, or correct [net]"
        )
    state = net.state_dict()
    with torch.no_grad():
        for name, slot in wanted.items():
            target = state[slot.native_name]
            if name not in tensors:
                if not name.rpartition(".")[2].startswith("b"):
                    raise MechnumError(
                        f"tensor {name} is missing: map it under [tensors], or correct [net]"
                    )
                target.zero_()
                continue
            value = rearrange(tensors[name], f"{slot.layout} -> {slot.native_layout}")
            if value.shape != target.shape:
                raise MechnumError(
                    f"tensor {name} has shape {tuple(tensors[name].shape)}, which does not fit "
                    "[net]: correct the sizes there or the tensor's layout"
                )
            target.copy_(value)
