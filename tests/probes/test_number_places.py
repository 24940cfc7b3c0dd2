"""Rows of numbers at every place: the states of the plain model, of the numbers all can read."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models import load_table
from mechnum.probes import place_rows, reading_of, shared_numbers, shared_words, word_rows
from mechnum.probes.number_places import NEUTRAL, Reading
from tests.fixtures import llama
from tests.models.encoders import encoder_folder
from tests.tasks.small_tokenizers import word_level

from .texts import reader


def single_token():
    return mn.wrap(llama(pad_token_id=None), word_level(range(50), bos=True), "words")


def plain_states(model, ids: list[int]) -> np.ndarray:
    """Embedding and the state after each layer at the last token, by hooks on plain modules."""
    net, kept = model.wrapped, []
    hooks = [
        module.register_forward_hook(lambda _module, _given, out: kept.append(out))
        for module in (net.model.embed_tokens, *net.model.layers)
    ]
    with torch.no_grad():
        net(torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    states = [own[0] if isinstance(own, tuple) else own for own in kept]
    return np.stack([own[0, -1].numpy() for own in states])


def test_how_numbers_are_read_depends_on_the_tokenizer(tmp_path):
    words = single_token()
    assert reading_of(words, range(40, 100)) == Reading(tuple(range(40, 50)), "{n}", "single")
    assert reading_of(words, range(30, 60)) == Reading(tuple(range(30, 50)), "{n}", "single")
    assert reading_of(reader(), range(50)) == Reading(tuple(range(50)), NEUTRAL, "last")
    nameless = mn.wrap(llama(), name="ids")
    assert reading_of(nameless, range(50, 99)).numbers == tuple(range(50, 64))
    table = load_table(encoder_folder(tmp_path, 30))
    assert reading_of(table, range(100)) == Reading(tuple(range(30)), "{n}", "single")


def test_shared_numbers_are_the_longest_run():
    def read(*numbers):
        return Reading(numbers, "{n}", "single")

    one, other = read(0, 1, 2, 5, 6, 7, 8, 9), read(0, 1, 2, 3, 4, 5, 6, 7, 8)
    assert shared_numbers({"one": one, "other": other}) == range(5, 9)
    with pytest.raises(MechnumError, match=r"no 4 numbers in a row .*one reads 8, b reads 3"):
        shared_numbers({"one": one, "b": read(0, 1, 2)})


def test_rows_are_the_states_of_the_plain_model():
    model = single_token()
    rows = place_rows(model, range(10, 16), reading_of(model, range(10, 16)))
    assert list(rows) == ["embedding", "layer 0", "layer 1", "layer 2", "unembedding"]
    plain = np.stack([plain_states(model, [1, 5 + n]) for n in range(10, 16)], axis=1)
    for place, states in zip(rows, plain, strict=False):
        np.testing.assert_allclose(rows[place], states, atol=1e-5)
    unembedding = model.wrapped.lm_head.weight[15:21].detach()
    np.testing.assert_array_equal(rows["unembedding"], unembedding)


def test_words_stand_where_numbers_stand():
    """In the neutral text, since the tokenizer splits numbers: the last token is replaced."""
    model = reader()
    reading = reading_of(model, range(8, 30))
    ids = shared_words([model], n=6)[0]
    rows = word_rows(model, ids, reading, ["embedding", "layer 2"])
    text = model.tokenizer("The number is 8").input_ids
    plain = np.stack([plain_states(model, [*text[:-1], token]) for token in ids], axis=1)
    np.testing.assert_allclose(rows["embedding"], plain[0], atol=1e-5)
    np.testing.assert_allclose(rows["layer 2"], plain[3], atol=1e-5)
    last = place_rows(model, range(8, 12), reading)
    assert list(last) == ["embedding", "layer 0", "layer 1", "layer 2"]
    ten = plain_states(model, model.tokenizer("The number is 10").input_ids)
    np.testing.assert_allclose(last["layer 1"].sel(number=10), ten[2], atol=1e-5)
    with pytest.raises(MechnumError, match="reader has no layer 9: use one of embedding"):
        word_rows(model, ids, reading, ["layer 9"])
