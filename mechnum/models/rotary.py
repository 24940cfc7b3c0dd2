"""Rotary position embeddings: the angles, and the rotation of queries and keys."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.models.spec import RotaryPairs


@dataclass(frozen=True)
class RotaryFrequencies:
    """Angles as position × inverse frequency, as transformers computes them.

    Attributes:
        inv_freq: radians a position, one for each rotated pair.
        scaling: factor on cosine and sine (1 except for "yarn").
    """

    inv_freq: Float[Tensor, " pair"]
    scaling: float = 1.0

    def __call__(
        self, positions: Int[Tensor, " pos"]
    ) -> tuple[Float[Tensor, "pos pair"], Float[Tensor, "pos pair"]]:
        """Cosines and sines at `positions`, in float32 or the precision of `inv_freq`."""
        angles = torch.outer(positions.to(self.inv_freq.dtype), self.inv_freq)
        return angles.cos() * self.scaling, angles.sin() * self.scaling


@dataclass(frozen=True)
class RotaryTable:
    """Cosines and sines that the wrapped net keeps for each position."""

    cos: Float[Tensor, "ctx pair"]
    sin: Float[Tensor, "ctx pair"]

    def __call__(
        self, positions: Int[Tensor, " pos"]
    ) -> tuple[Float[Tensor, "pos pair"], Float[Tensor, "pos pair"]]:
        """Cosines and sines at `positions`."""
        return self.cos[positions], self.sin[positions]


Rotary = RotaryFrequencies | RotaryTable


def rotate(
    x: Float[Tensor, "*stack pos head d_head"],
    cos: Float[Tensor, "pos pair"],
    sin: Float[Tensor, "pos pair"],
    pairs: RotaryPairs,
) -> Float[Tensor, "*stack pos head d_head"]:
    """Rotate the first 2 × `pair` coordinates of each head and leave the rest.

    GPT-J rotates coordinates (2i, 2i + 1) together, NeoX and Llama (i, i + rotary_dim / 2).
    """
    cos, sin = cos.to(x.dtype).unsqueeze(-2), sin.to(x.dtype).unsqueeze(-2)
    rotary_dim = 2 * cos.shape[-1]
    turned, rest = x[..., :rotary_dim], x[..., rotary_dim:]
    if pairs == "adjacent":
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned.chunk(2, dim=-1)
    first, second = (
        torch.addcmul(first * cos, second, sin, value=-1),
        torch.addcmul(second * cos, first, sin),
    )
    if pairs == "adjacent":
        turned = torch.stack([first, second], dim=-1).flatten(-2)
    else:
        turned = torch.cat([first, second], dim=-1)
    return torch.cat([turned, rest], dim=-1) if rest.shape[-1] else turned
