"""Tokenizers that are small enough to know by heart, each with one habit of the real ones."""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

BYTES = sorted(pre_tokenizers.ByteLevel.alphabet())
# GPT-2's way: a space belongs to the word behind it.
WORDS = Regex(r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


def word_level(
    numbers: Iterable[int] = range(200), bos: bool = False, eos: bool = False
) -> PreTrainedTokenizerFast:
    """One token for each number, `+` and `=`; other numbers become the unknown token."""
    words = ["[UNK]", "<bos>", "<eos>", "+", "=", *map(str, numbers)]
    tokenizer = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\d+|\D"), behavior="isolated")
    # As a special token, so that "<bos>" in a text is one token.
    tokenizer.add_special_tokens(["<bos>", "<eos>"])
    if bos or eos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=" ".join(["<bos>"] * bos + ["$A"] + ["<eos>"] * eos),
            special_tokens=[("<bos>", 1), ("<eos>", 2)],
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", bos_token="<bos>", eos_token="<eos>"
    )


def byte_pairs(
    whole: Iterable[str] = (), merges: Iterable[tuple[str, str]] = (), split: Regex = WORDS
) -> PreTrainedTokenizerFast:
    """Byte-level BPE: the words in `whole` are one token, others are merged from bytes.

    `Ġ` stands for a space, as in GPT-2's vocabulary.
    """
    merges = list(merges)
    pieces = [*BYTES, *("".join(pair) for pair in merges), *whole]
    vocab = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(split, behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


def digit_level() -> PreTrainedTokenizerFast:
    """SmolLM2's way: every digit is a token, and a space before it another."""
    return byte_pairs(split=Regex(r"\p{N}| |\n|[^\s\p{N}]+"))


def gpt2_like() -> PreTrainedTokenizerFast:
    """Bare numbers below 1000 are one token but 521, spaced ones below 400 but 362."""
    bare = [str(number) for number in range(1000) if number != 521]
    spaced = [f"Ġ{number}" for number in range(400) if number != 362]
    return byte_pairs([*bare, *spaced], merges=[("2", "1"), ("6", "2")])


def llama2_like() -> PreTrainedTokenizerFast:
    """Digits, and a stray `▁` piece where a text starts with a number."""
    pieces = ["<unk>", "<s>", "▁", *map(str, range(10)), "+", "=", "▁=", "▁▁", "\n"]
    model = models.BPE(
        vocab={piece: index for index, piece in enumerate(pieces)},
        merges=[("▁", "="), ("▁", "▁")],
        unk_token="<unk>",
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Replace("▁", " ")
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", unk_token="<unk>")
