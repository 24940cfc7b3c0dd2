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

from mechnum.models.attention_rate import mixed_with_ones

PatternFunction = Callable[[Tensor], Tensor]


class MixedAttention(NativeAttention):
    """Attention whose pattern is rate · softmax + (1 − rate) · 1, with ones and not 1/n.

    The pattern passes through `pattern_fn`, where TransformerLens has its own hook on it: hooks
    see the mixed pattern, and what they write counts.

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
        pattern_fn: PatternFunction | None = None,
        **kwargs: Any,
    ) -> tuple[Float[Tensor, "prompt pos d_model"], Float[Tensor, "prompt head pos key"]]:
        """What attention writes, and the mixed pattern."""

        def mixed(pattern: Tensor) -> Tensor:
            pattern = mixed_with_ones(pattern, self.rate)
            return pattern if pattern_fn is None else pattern_fn(pattern)

        return super().forward(hidden_states, attention_mask, position_ids, mixed, **kwargs)
