"""What is trained: the architectures of the recipes, and the form in which each is kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float

from mechnum.models.adders import AdderConfig, build_adder, load_adder, save_adder
from mechnum.models.native import NativeConfig, build_native
from mechnum.training.streams import Stream, stream

if TYPE_CHECKING:
    from torch import Tensor, nn


class Architecture(Protocol):
    """A kind of net with its sizes; frozen dataclasses, so that a recipe can be compared."""

    def build(self, seed: int) -> nn.Module:
        """The untrained net; its forward gives logits, or an output with `logits`."""
        ...

    def save(self, net: nn.Module, task: str, folder: Path) -> None:
        """Write the net as a folder that `mechnum.load` takes."""
        ...

    def load(self, folder: Path) -> nn.Module:
        """The net in a folder that `save` wrote, as rounded as it is there."""
        ...


@dataclass(frozen=True)
class NativeNet:
    """A TransformerLens-native net, kept as `net.toml` and float32 weights."""

    config: NativeConfig

    def build(self, seed: int) -> nn.Module:
        """The untrained net."""
        return build_native(self.config, seed)

    def save(self, net: nn.Module, task: str, folder: Path) -> None:
        """Write `net.toml`, which names the task, and the weights."""
        from mechnum.models.write_net import save_net

        save_net(net, self.config, task, folder)

    def load(self, folder: Path) -> nn.Module:
        """The net in a folder that `save` wrote."""
        from mechnum.models.net_file import NET_FILE, load_net

        return load_net(folder / NET_FILE)[0]


@dataclass(frozen=True)
class HelixStart:
    """Number vectors on a helix, from which a table of a net starts.

    n scaled to [-1, 1], and cos and sin of 2πn/T for each period T, are mapped into the residual
    space by a random orthonormal matrix, so that no coordinate is special; then small random
    vectors are added.

    Source: the basis of Kantamneni & Tegmark 2025, section 4; that Fourier features in the number
    vectors are what a net needs to learn to add: Zhou et al. 2024, section 4.

    Attributes:
        scale: length of the direction of each column.
        noise: standard deviation of each coordinate of the random vectors.
    """

    scale: float
    noise: float = 0.02
    periods: tuple[float, ...] = (2, 5, 10, 100)

    def vectors(
        self, n_numbers: int, d_model: int, seed: np.random.SeedSequence
    ) -> Float[Tensor, "number d_model"]:
        """The vectors of the numbers 0 to n_numbers - 1."""
        import torch

        numbers = np.arange(n_numbers)[:, None]
        angles = 2 * np.pi * numbers / np.array(self.periods)
        linear = 2 * numbers / (n_numbers - 1) - 1
        columns = np.hstack([linear, np.cos(angles), np.sin(angles)])
        generator = np.random.default_rng(seed)
        directions, _ = np.linalg.qr(generator.standard_normal((d_model, columns.shape[1])))
        noise = self.noise * generator.standard_normal((n_numbers, d_model))
        return torch.from_numpy(self.scale * columns @ directions.T + noise).float()


@dataclass(frozen=True)
class AdderNet:
    """A small transformers model, kept as a Hugging Face folder with float16 weights.

    Attributes:
        embed, unembed: what the numbers' rows of the two tables start from; None starts them at
            random like all other weights.
        freeze_embed: the embedding is not trained, as where Zhou et al. 2024 (section 5) rescue
            a random net by another model's number vectors.
    """

    config: AdderConfig
    embed: HelixStart | None = None
    unembed: HelixStart | None = None
    freeze_embed: bool = False

    def build(self, seed: int) -> nn.Module:
        """The untrained net."""
        embed, unembed = (
            start and start.vectors(self.config.n_numbers, self.config.d_model, stream(seed, table))
            for start, table in ((self.embed, Stream.EMBED), (self.unembed, Stream.UNEMBED))
        )
        net = build_adder(self.config, seed, embed, unembed)
        net.get_input_embeddings().requires_grad_(not self.freeze_embed)
        return net

    def save(self, net: nn.Module, task: str, folder: Path) -> None:
        """Write config, tokenizer and weights; this format has no place for the task."""
        save_adder(net, self.config, folder)

    def load(self, folder: Path) -> nn.Module:
        """The net in a folder that `save` wrote."""
        return load_adder(folder)
