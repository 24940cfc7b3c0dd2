"""Small transformers models that add numbers of one token each.

transformers is imported inside the functions, since its import takes seconds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxtyping import Float

from mechnum.models.number_tokenizer import END, number_tokenizer, number_vocabulary

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedConfig, PreTrainedModel

WEIGHTS_FILE = "model.safetensors"


@dataclass(frozen=True)
class AdderConfig(ABC):
    """Shape of an adder, whatever its architecture; the subclasses are the architectures.

    Attributes:
        n_numbers: numbers 0 to n_numbers - 1 are one token each, with the number as its id.
    """

    n_numbers: int = 199
    n_layers: int = 4
    n_heads: int = 4
    d_model: int = 128
    n_ctx: int = 32

    @property
    def plus(self) -> int:
        """Token id of `+`."""
        return number_vocabulary(self.n_numbers)["+"]

    @property
    def equals(self) -> int:
        """Token id of `=`."""
        return number_vocabulary(self.n_numbers)["="]

    @abstractmethod
    def for_transformers(self) -> PreTrainedConfig:
        """The same shape as transformers wants it."""

    def _vocabulary(self) -> dict[str, Any]:
        end = number_vocabulary(self.n_numbers)[END]
        ends = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), end)
        return {"vocab_size": end + 1, **ends}

    def _shape(self) -> dict[str, Any]:
        """Under the names that all but the oldest architectures have."""
        return {
            "hidden_size": self.d_model,
            "num_hidden_layers": self.n_layers,
            "num_attention_heads": self.n_heads,
            "max_position_embeddings": self.n_ctx,
            **self._vocabulary(),
        }


@dataclass(frozen=True)
class GPTJAdder(AdderConfig):
    """GPT-J: parallel blocks that share a norm, adjacent rotary pairs.

    Attributes:
        rotary_dim: coordinates of each head that are rotated.
    """

    rotary_dim: int = 16

    def for_transformers(self) -> PreTrainedConfig:
        """A GPTJConfig."""
        from transformers import GPTJConfig

        return GPTJConfig(
            n_positions=self.n_ctx,
            n_embd=self.d_model,
            n_layer=self.n_layers,
            n_head=self.n_heads,
            rotary_dim=self.rotary_dim,
            **self._vocabulary(),
        )


@dataclass(frozen=True)
class PythiaAdder(AdderConfig):
    """GPT-NeoX as in Pythia: parallel blocks with two norms, rotary halves.

    Attributes:
        rotary_fraction: share of each head's coordinates that is rotated.
    """

    rotary_fraction: float = 0.25

    def for_transformers(self) -> PreTrainedConfig:
        """A GPTNeoXConfig."""
        from transformers import GPTNeoXConfig

        rotary = {"rope_theta": 10_000.0, "partial_rotary_factor": self.rotary_fraction}
        return GPTNeoXConfig(
            intermediate_size=4 * self.d_model,
            rope_parameters={"rope_type": "default", **rotary},
            **self._shape(),
        )


@dataclass(frozen=True)
class LlamaAdder(AdderConfig):
    """Llama: sequential blocks, RMS norms, a gated MLP, grouped queries, no biases.

    Attributes:
        n_kv_heads: key-value groups.
        d_mlp: gated neurons; 8/3 of d_model, rounded up to a multiple of 8, makes the MLP as
            large as one of 4 d_model without gates.
    """

    n_kv_heads: int = 2
    d_mlp: int = 344

    def for_transformers(self) -> PreTrainedConfig:
        """A LlamaConfig."""
        from transformers import LlamaConfig

        return LlamaConfig(
            num_key_value_heads=self.n_kv_heads, intermediate_size=self.d_mlp, **self._shape()
        )


def build_adder(
    config: AdderConfig,
    seed: int,
    embed: Float[Tensor, "number d_model"] | None = None,
    unembed: Float[Tensor, "number d_model"] | None = None,
) -> PreTrainedModel:
    """An untrained adder with seeded random weights; torch's global generator is not touched.

    Args:
        embed: vectors that the numbers' rows of the embedding start from, instead of random ones.
        unembed: the same for the unembedding.
    """
    import torch
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        # Not torch.manual_seed, which would also seed the generators of the GPUs.
        torch.default_generator.manual_seed(seed)
        net = AutoModelForCausalLM.from_config(config.for_transformers())
        tables = (net.get_input_embeddings(), net.get_output_embeddings())
        for table, vectors in zip(tables, (embed, unembed), strict=True):
            if vectors is not None:
                table.weight[: config.n_numbers] = vectors
    return net


def save_adder(net: nn.Module, config: AdderConfig, folder: Path) -> None:
    """Write `net` and its tokenizer as a folder that transformers loads without a network.

    The weights are stored in float16, which halves the file; the config says float32, so that
    they are computed with in float32.
    """
    import torch
    from safetensors.torch import save_file

    number_tokenizer(config.n_numbers, config.n_ctx).save_pretrained(folder)
    stored = config.for_transformers()
    stored.architectures = [type(net).__name__]
    stored.dtype = "float32"
    stored.save_pretrained(folder)
    rounded = {name: w.to(torch.float16).contiguous() for name, w in net.state_dict().items()}
    save_file(rounded, folder / WEIGHTS_FILE, metadata={"format": "pt"})


def load_adder(folder: Path) -> PreTrainedModel:
    """The model in a folder that `save_adder` wrote, in float32 and in evaluation mode.

    Not by `from_pretrained`, which draws a bar on the terminal unless a global setting is changed.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.random.fork_rng(devices=[]):
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        net = AutoModelForCausalLM.from_config(config)
    net.load_state_dict(load_file(folder / WEIGHTS_FILE))
    return net.eval()
