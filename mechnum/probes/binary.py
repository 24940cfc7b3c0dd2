"""A rival of the sinusoidal probe: numbers as bits."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.probes.trained import Code, TrainedProbe


class Bits(Code):
    """The binary digits of a number, the lowest first; nothing is learnt."""

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.latent = latent

    def features(self, numbers: Int[np.ndarray, " number"]) -> tuple[Tensor, ...]:
        """The digits."""
        bits = (numbers >> np.arange(self.latent)[:, None]) & 1
        return (torch.from_numpy(bits.astype(np.float64)),)

    def forward(self, features: tuple[Tensor, ...]) -> Float[Tensor, "latent number"]:
        """The digits themselves."""
        return features[0]


class BinaryProbe(TrainedProbe[Bits]):
    """logits_v = ⟨W x + b, bits of v⟩, as many bits as the largest number has.

    Source: Štefánik et al. 2026 (arXiv 2510.26285), the binary probe: 10 bits for 0–999.
    """

    def _code(self, d: int, generator: np.random.Generator) -> Bits:
        return Bits(int(self.classes_[-1]).bit_length())
