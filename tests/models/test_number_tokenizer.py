from __future__ import annotations

import pytest
from transformers import AutoTokenizer

from mechnum.models.number_tokenizer import END, number_tokenizer, number_vocabulary


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """Saved, and loaded as anyone loads it."""
    folder = tmp_path_factory.mktemp("tokenizer")
    number_tokenizer(199, 32).save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def test_every_number_is_one_token_with_its_own_id(tokenizer):
    for n in range(199):
        assert tokenizer(str(n)).input_ids == [n]
        assert tokenizer(f" {n}").input_ids == [n]


@pytest.mark.parametrize("text", ["0+0=", "12+7=", "99+99=", "12+7=19"])
def test_prompt_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_ids_of_a_prompt(tokenizer):
    assert tokenizer("12+7=").input_ids == [12, 199, 7, 200]
    assert tokenizer("3 + 4 =").input_ids == [3, 199, 4, 200]


def test_offsets(tokenizer):
    encoded = tokenizer("12+7 =", return_offsets_mapping=True)
    assert encoded["offset_mapping"] == [(0, 2), (2, 3), (3, 4), (5, 6)]


@pytest.mark.parametrize("text", ["199", "1000", "007", "x", "-"])
def test_what_is_not_in_the_vocabulary_is_one_unknown_token(tokenizer, text):
    assert tokenizer(text).input_ids == [tokenizer.unk_token_id]


def test_special_tokens_are_one_and_never_added(tokenizer):
    assert len(tokenizer) == tokenizer.vocab_size == len(number_vocabulary(199)) == 202
    assert {tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token} == {END}
    assert tokenizer("1+1=").input_ids == tokenizer("1+1=", add_special_tokens=False).input_ids
    assert tokenizer(f"1+1={END}").input_ids == [1, 199, 1, 200, 201]
