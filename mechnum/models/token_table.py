"""The token embeddings of a model of any architecture, with its tokenizer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.fetched import FETCHED
from mechnum.models.load import first_line, load, load_tokenizer
from mechnum.models.model import Model
from mechnum.models.quiet import quiet_transformers


@dataclass(frozen=True, eq=False)
class TokenTable:
    """What is known of a model that is no decoder, such as a sentence encoder: its embeddings.

    Attributes:
        name: what was asked for.
        family: the architecture, as transformers names it.
    """

    name: str
    family: str
    W_E: Float[Tensor, "d_vocab d_model"]
    tokenizer: Any

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of a sample of the embeddings."""
        rows, columns = (max(1, size // 16) for size in self.W_E.shape)
        sample = self.W_E[::rows, ::columns].float().contiguous().numpy()
        return hashlib.sha256(sample.tobytes()).hexdigest()[:16]


def load_table(name: str | Path) -> TokenTable:
    """The token embeddings of a model by name or folder, on the CPU in float32.

    Args:
        name: `minilm`, or a folder in Hugging Face's format with weights in safetensors files.

    Raises:
        MechnumError: where there is no such folder, where it has no tokenizer, and where its files
            are damaged.
    """
    name = str(name)
    folder = _folder(name)
    if folder is None:
        raise MechnumError(f"{name!r} is no folder of a model: give one, or one of {_fetched()}")
    tokenizer = load_tokenizer(name)
    if tokenizer is None:
        raise MechnumError(f"{name} has no tokenizer, so its tokens have no names: add it")
    from safetensors import SafetensorError
    from transformers import AutoModel

    try:
        with quiet_transformers():
            model = AutoModel.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
            )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise MechnumError(
            f"{folder} cannot be read as a Hugging Face model ({first_line(error)}): "
            "check the folder"
        ) from None
    W_E = model.get_input_embeddings().weight.detach()
    return TokenTable(name, model.config.model_type, W_E, tokenizer)


def load_model_or_table(
    name: str | Path, device: str | None = None, dtype: str | None = None
) -> Model | TokenTable:
    """`load`, or `load_table` where the config says that the model predicts no next token."""
    folder = _folder(str(name))
    return load_table(name) if folder and _is_encoder(folder) else load(name, device, dtype)


def token_embeddings(model: Model | TokenTable) -> Float[Tensor, "d_vocab d_model"]:
    """W_E of either."""
    return model.W_E if isinstance(model, TokenTable) else model.decoder.weights.W_E


def _folder(name: str) -> Path | None:
    """The local folder of a model; None for bundled ones, other files and Hugging Face ids."""
    if name in FETCHED:
        return FETCHED[name].folder()
    return Path(name) if (Path(name) / "config.json").is_file() else None


def _is_encoder(folder: Path) -> bool:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        heads = list(config.get("architectures") or ())
    except (ValueError, AttributeError, TypeError):
        return False
    return bool(heads) and not any(
        str(head).endswith(("ForCausalLM", "LMHeadModel")) for head in heads
    )


def _fetched() -> str:
    return ", ".join(FETCHED)
