"""Small transformers models that add numbers of one token each.

transformers is imported inside the functions, since its import takes seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jaxtyping import Float

from mechnum.models.number_tokenizer import END, number_tokenizer, number_vocabulary

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import GPTJConfig, GPTJForCausalLM

WEIGHTS_FILE = "model.safetensors"


@dataclass(frozen=True)
class AdderConfig:
    """Shape of an adder with GPT-J's architecture: parallel blocks, adjacent rotary pairs.

    Attributes:
        n_numbers: numbers 0 to n_numbers - 1 are one token each, with the number as its id.
        rotary_dim: coordinates of each head that are rotated.
    """

    n_numbers: int = 199
    n_layers: int = 4
    n_heads: int = 4
    d_model: int = 128
    rotary_dim: int = 16
    n_ctx: int = 32

    @property
    def plus(self) -> int:
        """Token id of `+`."""
        return number_vocabulary(self.n_numbers)["+"]

    @property
    def equals(self) -> int:
        """Token id of `=`."""
        return number_vocabulary(self.n_numbers)["="]


def build_adder(
    config: AdderConfig,
    seed: int,
    embed: Float[Tensor, "number d_model"] | None = None,
    unembed: Float[Tensor, "number d_model"] | None = None,
) -> GPTJForCausalLM:
    """An untrained adder with seeded random weights; torch's global generator is not touched.

    Args:
        embed: vectors that the numbers' rows of the embedding start from, instead of random ones.
        unembed: the same for the unembedding.
    """
    import torch
    from transformers import GPTJForCausalLM

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        # Not torch.manual_seed, which would also seed the generators of the GPUs.
        torch.default_generator.manual_seed(seed)
        net = GPTJForCausalLM(_gptj_config(config))
        for table, vectors in ((net.transformer.wte, embed), (net.lm_head, unembed)):
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
    stored = _gptj_config(config)
    stored.architectures = [type(net).__name__]
    stored.dtype = "float32"
    stored.save_pretrained(folder)
    rounded = {name: w.to(torch.float16).contiguous() for name, w in net.state_dict().items()}
    save_file(rounded, folder / WEIGHTS_FILE, metadata={"format": "pt"})


def load_adder(folder: Path) -> GPTJForCausalLM:
    """The model in a folder that `save_adder` wrote, in float32 and in evaluation mode.

    Not by `from_pretrained`, which draws a bar on the terminal unless a global setting is changed.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import GPTJConfig, GPTJForCausalLM

    with torch.random.fork_rng(devices=[]):
        net = GPTJForCausalLM(GPTJConfig.from_pretrained(folder, local_files_only=True))
    net.load_state_dict(load_file(folder / WEIGHTS_FILE))
    return net.eval()


def _gptj_config(config: AdderConfig) -> GPTJConfig:
    from transformers import GPTJConfig

    end = number_vocabulary(config.n_numbers)[END]
    return GPTJConfig(
        vocab_size=end + 1,
        n_positions=config.n_ctx,
        n_embd=config.d_model,
        n_layer=config.n_layers,
        n_head=config.n_heads,
        rotary_dim=config.rotary_dim,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
    )
