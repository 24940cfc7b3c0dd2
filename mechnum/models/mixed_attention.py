"""TransformerLens' native attention with the attention rate of Zhong et al. 2023.

This module imports TransformerLens, which takes seconds: import it where such a net is built.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxtyping import Float
from torch import Tensor
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge.sources.native.model import NativeAttention, NativeRotary


class MixedAttention(NativeAttention):
    """Attention whose pattern is rate · softmax + (1 − rate) · 1, with ones and not 1/n.

    TransformerLens 4 hands its hook on the pattern in, and it gets the mixed pattern: what it
    writes counts. TransformerLens 3 shows the pattern to hooks and discards what they write.

    Source: Zhong et al. 2023, section 2.
    """

    def __init__(
        self, cfg: TransformerBridgeConfig, rotary: NativeRotary | None, rate: float
    ) -> None:
        super().__init__(cfg, rotary)
        self.rate = rate

    def forward(
        self,
        hidden_states: Float[Tensor, "prompt pos d_model"],
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        pattern_fn: Callable[[Tensor], Tensor] | None = None,
        **kwargs: Any,
    ) -> tuple[Float[Tensor, "prompt pos d_model"], Float[Tensor, "prompt head pos key"]]:
        """What attention writes, and the mixed pattern."""
        n_prompts, n_positions, _ = hidden_states.shape
        q, k, v = (
            project(hidden_states).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
            for project in (self.q, self.k, self.v)
        )
        if self.rotary is not None:
            q, k = self.rotary.apply_rope(q, k, position_ids=position_ids)
        unseen = self.causal_mask[:n_positions, :n_positions]
        if attention_mask is not None:
            unseen = self._combine_attention_mask(unseen, attention_mask, batch=n_prompts)
        scores = (q @ k.transpose(-2, -1) / self.scale).masked_fill(unseen, float("-inf"))
        # A query that sees nothing, in padding, gets NaN from the softmax.
        softmax = scores.softmax(-1).masked_fill(unseen, 0.0)
        pattern = self.rate * softmax + (1 - self.rate) * (~unseen).to(softmax.dtype)
        if pattern_fn is not None:
            pattern = pattern_fn(pattern)
        return self.o((pattern @ v).transpose(1, 2).flatten(2)), pattern
