"""The attention rate: how much of an attention pattern is softmax, and how much is constant."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def mixed_with_ones(
    pattern: Float[Tensor, "*stack query key"], rate: float
) -> Float[Tensor, "*stack query key"]:
    """rate · pattern + (1 − rate) · 1 over the keys that each query sees.

    These are ones and not 1/n: at rate 0 every head adds the values up.

    Args:
        pattern: causal; the queries are the last of the positions.

    Source: Zhong et al. 2023, section 2. They leave out the causal mask. In one layer that is read
    at the last position this changes nothing, since the last position sees all others.
    """
    if rate == 1:
        return pattern
    n_queries, n_keys = pattern.shape[-2:]
    ones = torch.ones(n_queries, n_keys, dtype=pattern.dtype, device=pattern.device)
    return rate * pattern + (1 - rate) * ones.tril(n_keys - n_queries)
