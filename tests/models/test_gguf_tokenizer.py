from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from mechnum.models.gguf_tokenizer import gguf_tokenizer
from tests.models.gguf_files import MERGES, TOKENS, tiny_llama, write_gguf

SMOLLM = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [3, 3] + [1] * (len(TOKENS) - 2),
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.bos_token_id": 1,
}

LLAMA2_TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
LLAMA2_TOKENS += ["▁▁", "▁=", "ab", "▁ab", "▁", "=", *"0123456789ab", "<tool>"]
LLAMA2 = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": LLAMA2_TOKENS,
    # sentencepiece's score of a BPE piece is minus its rank
    "tokenizer.ggml.scores": [0.0] * 259 + [-float(i) for i in range(len(LLAMA2_TOKENS) - 259)],
    "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * (len(LLAMA2_TOKENS) - 260) + [4],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.unknown_token_id": 0,
}

LLAMA3_TOKENS = ["<|begin|>", *"0123456789=", "Ġ", "12", "123", "56", "78", "34"]
LLAMA3 = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "llama-bpe",
    "tokenizer.ggml.tokens": LLAMA3_TOKENS,
    "tokenizer.ggml.token_type": [3] + [1] * (len(LLAMA3_TOKENS) - 1),
    "tokenizer.ggml.merges": ["1 2", "3 4", "5 6", "7 8"],  # no merge makes 123
    "tokenizer.ggml.bos_token_id": 0,
}


def split(metadata: dict[str, Any], text: str) -> list[str]:
    tokenizer = gguf_tokenizer(metadata)
    assert tokenizer is not None
    ids = tokenizer(text).input_ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == text
    return tokenizer.convert_ids_to_tokens(ids)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("47", ["4", "7"]),
        (" 47", ["Ġ", "4", "7"]),
        ("-12", ["-", "1", "2"]),
        ("  1", ["ĠĠ", "1"]),  # digits are split off first, so both spaces stay together
        ("\n\n1", ["ĊĊ", "1"]),
        ("1+2=", ["1", "+", "2", "="]),
        ("ab", ["ab"]),
    ],
)
def test_smollm_splits_digits_before_anything_else(text: str, tokens: list[str]) -> None:
    assert split(SMOLLM, text) == tokens


def test_the_flag_decides_about_bos() -> None:
    assert split(SMOLLM | {"tokenizer.ggml.add_bos_token": True}, "1") == ["<|start|>", "1"]


def test_control_tokens_stay_whole() -> None:
    tokenizer = gguf_tokenizer(SMOLLM)
    assert tokenizer is not None
    assert tokenizer("<|start|>1<|end|>").input_ids == [1, TOKENS.index("1"), 0]
    assert tokenizer.decode([1, TOKENS.index("1"), 0], skip_special_tokens=True) == "1"
    assert len(tokenizer) == len(TOKENS)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("47", ["▁", "4", "7"]),
        ("=47", ["▁=", "4", "7"]),
        ("= 47", ["▁=", "▁", "4", "7"]),
        (" 47", ["▁▁", "4", "7"]),
        ("ab", ["▁ab"]),
        ("é1", ["▁", "<0xC3>", "<0xA9>", "1"]),
    ],
)
def test_llama2_puts_a_space_in_front(text: str, tokens: list[str]) -> None:
    assert split(LLAMA2, text) == ["<s>", *tokens]


def test_llama2_without_the_space_in_front() -> None:
    metadata = LLAMA2 | {"tokenizer.ggml.add_space_prefix": False}
    assert split(metadata, "47") == ["<s>", "4", "7"]
    assert split(metadata, " 47") == ["<s>", "▁", "4", "7"]


def test_user_defined_tokens_stay_whole_and_are_text() -> None:
    assert split(LLAMA2, "1<tool>") == ["<s>", "▁", "1", "<tool>"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("12", ["12"]),
        ("1234", ["123", "4"]),  # groups of three, and a whole group that is a token stays one
        ("=5678", ["=", "56", "7", "8"]),
        ("= 12", ["=", "Ġ", "12"]),
    ],
)
def test_llama3_takes_groups_of_three_digits(text: str, tokens: list[str]) -> None:
    assert split(LLAMA3, text) == ["<|begin|>", *tokens]


def test_gpt2_keeps_the_digits_of_a_number_together() -> None:
    metadata = SMOLLM | {
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": [*TOKENS, "12"],
        "tokenizer.ggml.merges": [*MERGES, "1 2"],
    }
    assert split(metadata, "123") == ["12", "3"]


def test_the_template_and_the_saved_tokenizer(tmp_path: Path) -> None:
    template = "{% for message in messages %}<|start|>{{ message['content'] }}{% endfor %}"
    tokenizer = gguf_tokenizer(SMOLLM | {"tokenizer.chat_template": template})
    assert tokenizer is not None
    tokenizer.save_pretrained(tmp_path)
    saved = AutoTokenizer.from_pretrained(tmp_path)
    for text in ("47", " 47", "  1", "\n\n1", "<|start|>ab"):
        assert saved(text).input_ids == tokenizer(text).input_ids
    assert saved.apply_chat_template([{"content": "1"}], tokenize=False) == "<|start|>1"


def test_equals_transformers_where_it_splits_alike(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", tiny_llama())
    theirs = AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name)
    ours = gguf_tokenizer(SMOLLM)
    assert ours is not None
    for text in ("47", " 47", "-12", "1+1=2\n2+3=5\n3+4=", "ab<|end|>12", "  ab"):
        assert ours(text).input_ids == theirs(text).input_ids


def test_no_tokenizer() -> None:
    assert gguf_tokenizer({}) is None
    assert gguf_tokenizer({"tokenizer.ggml.model": "none"}) is None
