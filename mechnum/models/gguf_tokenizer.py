"""The tokenizer that a GGUF file describes.

transformers can read one too, but splits text before numbers and newlines unlike the original
tokenizers do ("  1" and "\\n\\n1" of SmolLM2, " 47" of Llama 2, no BOS for Llama 3), which moves
token positions. So the few kinds that occur in Llama files are written out here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from mechnum.errors import MechnumError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

# Published with Llama 3 (its tokenizer.json): numbers are cut into groups of up to three digits.
_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = {"llama3", "llama-v3", "llama-bpe"}
_BYTE_LEVEL = {"gpt-2", "smollm"} | _LLAMA3


class _TokenType(IntEnum):
    """`tokenizer.ggml.token_type` of a token that is matched whole in the text."""

    CONTROL = 3
    USER_DEFINED = 4


def gguf_tokenizer(metadata: Mapping[str, Any]) -> PreTrainedTokenizerBase | None:
    """The tokenizer in the metadata of a GGUF file, or None where the file has none.

    Raises:
        MechnumError: a kind of tokenizer that is not known.
    """
    kind = metadata.get("tokenizer.ggml.model", "none")
    if kind == "none":
        return None
    if kind not in ("gpt2", "llama"):
        raise MechnumError(
            f"the tokenizer kind {kind!r} of the GGUF file is not read (gpt2 and llama are): "
            "use the model's Hugging Face folder"
        )
    try:
        return _build(kind, metadata)
    except MechnumError:
        raise
    except Exception as error:  # tokenizers raises plain Exceptions at lists that do not fit
        raise MechnumError(
            f"the tokenizer of the GGUF file is damaged ({' '.join(str(error).split())}): get the "
            "file again"
        ) from error


def _build(kind: str, metadata: Mapping[str, Any]) -> PreTrainedTokenizerBase:
    from transformers import PreTrainedTokenizerFast

    tokens = _field(metadata, "tokens")
    backend = _byte_level(metadata, tokens) if kind == "gpt2" else _sentencepiece(metadata, tokens)
    _add_whole_tokens(backend, metadata, tokens)
    names = {
        name: tokens[metadata[key]]
        for name, key in {
            "bos_token": "tokenizer.ggml.bos_token_id",
            "eos_token": "tokenizer.ggml.eos_token_id",
            "unk_token": "tokenizer.ggml.unknown_token_id",
            "pad_token": "tokenizer.ggml.padding_token_id",
        }.items()
        if key in metadata
    }
    # llama.cpp's defaults for files that do not say.
    adds_bos = kind == "llama" or metadata.get("tokenizer.ggml.pre") in _LLAMA3
    if metadata.get("tokenizer.ggml.add_bos_token", adds_bos) and "bos_token" in names:
        _add_bos(backend, names["bos_token"])
    if template := metadata.get("tokenizer.chat_template"):
        names["chat_template"] = template
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, clean_up_tokenization_spaces=False, **names
    )


def _byte_level(metadata: Mapping[str, Any], tokens: Sequence[str]) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    split = metadata.get("tokenizer.ggml.pre")
    if split not in _BYTE_LEVEL:
        raise MechnumError(
            f"tokenizer.ggml.pre = {split!r} of the GGUF file is not a known way to split text "
            f"({', '.join(sorted(_BYTE_LEVEL))} are): use the model's Hugging Face folder"
        )
    merges = [tuple(merge.split(" ")) for merge in _field(metadata, "merges")]
    backend = Tokenizer(
        models.BPE(
            {token: index for index, token in enumerate(tokens)},
            merges,
            ignore_merges=split in _LLAMA3,
        )
    )
    if split in _LLAMA3:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_LLAMA3_SPLIT), behavior="isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    else:
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
        digits = [pre_tokenizers.Digits(individual_digits=True)] if split == "smollm" else []
        backend.pre_tokenizer = pre_tokenizers.Sequence([*digits, byte_level])
    backend.decoder = decoders.ByteLevel()
    return backend


def _sentencepiece(metadata: Mapping[str, Any], tokens: Sequence[str]) -> Tokenizer:
    """A sentencepiece BPE as Llama 2 has it: the text gets "▁" in front and for every space."""
    from tokenizers import Tokenizer, decoders, models, normalizers

    prefix = metadata.get("tokenizer.ggml.add_space_prefix", True)
    unknown = metadata.get("tokenizer.ggml.unknown_token_id", 0)
    backend = Tokenizer(
        models.BPE(
            {token: index for index, token in enumerate(tokens)},
            _merges(tokens, _field(metadata, "scores")),
            unk_token=tokens[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    spaces = normalizers.Replace(" ", "▁")
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), spaces] if prefix else [spaces]
    )
    text = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    backend.decoder = decoders.Sequence([*text, decoders.Strip(" ", 1, 0)] if prefix else text)
    return backend


def _merges(tokens: Sequence[str], scores: Sequence[float]) -> list[tuple[str, str]]:
    """The merge list of a sentencepiece vocabulary, which joins the pair of best score first."""
    ids = {token: index for index, token in enumerate(tokens)}
    merges = []
    for token, score in zip(tokens, scores, strict=True):
        for cut in range(1, len(token)):
            pair = token[:cut], token[cut:]
            if pair[0] in ids and pair[1] in ids:
                merges.append((-score, ids[pair[0]], ids[pair[1]], pair))
    return [pair for *_, pair in sorted(merges)]


def _add_whole_tokens(
    backend: Tokenizer, metadata: Mapping[str, Any], tokens: Sequence[str]
) -> None:
    """Keep control tokens (special) and user-defined ones (not special) in one piece."""
    from tokenizers import AddedToken

    types = metadata.get("tokenizer.ggml.token_type", [])
    for kind, special in ((_TokenType.CONTROL, True), (_TokenType.USER_DEFINED, False)):
        found = [token for token, its in zip(tokens, types, strict=False) if its == kind]
        added = [AddedToken(token, normalized=False, special=special) for token in found]
        _ = backend.add_special_tokens(added) if special else backend.add_tokens(added)


def _add_bos(backend: Tokenizer, bos: str) -> None:
    from tokenizers import processors

    backend.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A",
        pair=f"{bos} $A {bos}:1 $B:1",
        special_tokens=[(bos, backend.token_to_id(bos))],
    )


def _field(metadata: Mapping[str, Any], name: str) -> Any:
    key = f"tokenizer.ggml.{name}"
    if key not in metadata:
        raise MechnumError(
            f"the GGUF key {key} is missing: get the file again, or use the model's Hugging Face "
            "folder"
        )
    return metadata[key]
