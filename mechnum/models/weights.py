"""A model's weights under TransformerLens' names, as views of the caller's tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class NormWeights:
    """Scale and shift; None where the norm has none (RMS norms have no shift)."""

    w: Float[Tensor, " d_model"] | None
    b: Float[Tensor, " d_model"] | None


@dataclass(frozen=True)
class AttentionWeights:
    """Keys and values have one matrix for each key-value group."""

    W_Q: Float[Tensor, "head d_model d_head"]
    W_K: Float[Tensor, "kv_head d_model d_head"]
    W_V: Float[Tensor, "kv_head d_model d_head"]
    W_O: Float[Tensor, "head d_head d_model"]
    b_Q: Float[Tensor, "head d_head"] | None
    b_K: Float[Tensor, "kv_head d_head"] | None
    b_V: Float[Tensor, "kv_head d_head"] | None
    b_O: Float[Tensor, " d_model"] | None


@dataclass(frozen=True)
class MlpWeights:
    """`W_gate` is the matrix whose output goes through the activation, in gated MLPs only."""

    W_in: Float[Tensor, "d_model d_mlp"]
    W_out: Float[Tensor, "d_mlp d_model"]
    W_gate: Float[Tensor, "d_model d_mlp"] | None
    b_in: Float[Tensor, " d_mlp"] | None
    b_gate: Float[Tensor, " d_mlp"] | None
    b_out: Float[Tensor, " d_model"] | None


@dataclass(frozen=True)
class BlockWeights:
    """One layer; `ln2` is `ln1` where both halves share a norm (GPT-J)."""

    ln1: NormWeights
    attn: AttentionWeights
    ln2: NormWeights | None
    mlp: MlpWeights | None


@dataclass(frozen=True)
class Weights:
    """All weights of a model. `W_pos` is None without learned positions."""

    W_E: Float[Tensor, "vocab d_model"]
    W_pos: Float[Tensor, "ctx d_model"] | None
    blocks: tuple[BlockWeights, ...]
    ln_final: NormWeights
    W_U: Float[Tensor, "d_model vocab_out"]
    b_U: Float[Tensor, " vocab_out"] | None

    def processing(self) -> str:
        """Which of TransformerLens' rewritings the weights show, for reports.

        Raw logits and everything that is built on W_U depend on it; differences of logits and
        log-probabilities do not.
        """
        scale = self.ln_final.w
        folded = scale is None or bool((scale == 1).all())
        mean = self.W_U.mean(dim=1, dtype=torch.float32).abs().max()
        # The size of the entries shows in some columns: all of them take a tenth of a second.
        centred = bool(mean < 1e-5 * self.W_U[:, :1024].abs().max())
        return (
            f"final norm {'folded or plain' if folded else 'with its own scale'}, "
            f"unembedding {'centred' if centred else 'as trained'}"
        )
