"""Texts of one number: the right token, with BOS or without, and refusals that name the numbers."""

from __future__ import annotations

import pytest

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.tasks import Prompts, number_prompts, number_tokens
from mechnum.tasks.prompts import group_by_length
from mechnum.tasks.single_numbers import own_numbers

from .small_tokenizers import digit_level, gpt2_like, llama2_like, word_level
from .stand_in import Spec, StandIn

WIDE = Spec(d_vocab=3000, d_vocab_out=3000)


def net(tokenizer=None, **more) -> StandIn:
    return StandIn(tokenizer, WIDE, **more)


def read(groups) -> dict[int, tuple[list[int], int, int]]:
    """Number → ids, position of the number, pieces."""
    return {
        int(n): (ids, int(at), int(pieces))
        for group in groups
        for n, ids, at, pieces in zip(
            group.variables["n"],
            group.tokens.tolist(),
            group.positions["n"],
            group.variables["pieces"],
            strict=True,
        )
    }


def test_a_bare_number_is_its_token_behind_the_bos():
    found = read(number_prompts(net(word_level(bos=True)), [7, 120]))
    tokenizer = word_level()
    assert found == {n: ([1, tokenizer.convert_tokens_to_ids(str(n))], 1, 1) for n in (7, 120)}
    assert read(number_prompts(net(word_level(bos=False)), [7]))[7][1] == 0


def test_a_template_puts_the_number_among_words():
    groups = number_prompts(net(word_level()), range(10), "5+{n}=")
    (group,) = groups
    assert group.positions["n"].tolist() == [2] * 10
    assert group.positions["end"].tolist() == [3] * 10
    assert group.texts[4] == "5+4="
    assert not isinstance(group, Prompts)


def test_numbers_in_pieces_are_read_at_the_last_piece_when_asked_to():
    model = net(digit_level())
    with pytest.raises(MechnumError, match="10, 11 are not one token for stand-in: choose"):
        number_prompts(model, [9, 10, 11])
    groups = number_prompts(model, [123, 4, 56, 7], digits="last")
    assert [len(group) for group in groups] == [2, 1, 1]
    digits = {n: digit_level().convert_tokens_to_ids(str(n)) for n in range(10)}
    assert read(groups) == {
        4: ([digits[4]], 0, 1),
        7: ([digits[7]], 0, 1),
        56: ([digits[5], digits[6]], 1, 2),
        123: ([digits[1], digits[2], digits[3]], 2, 3),
    }
    assert [group.index.tolist() for group in groups] == [[1, 3], [2], [0]]


def test_the_stray_space_piece_of_llama_is_no_part_of_the_number():
    found = read(number_prompts(net(llama2_like()), [7, 12], digits="last"))
    assert {n: pieces for n, (_, _, pieces) in found.items()} == {7: 1, 12: 2}
    assert found[7][1] == len(found[7][0]) - 1


def test_the_template_decides_which_token_a_number_is():
    tokenizer = gpt2_like()
    bare, spaced = (number_tokens(net(tokenizer), [7, 300], text) for text in ("{n}", " {n}"))
    assert bare == {n: tokenizer.convert_tokens_to_ids(str(n)) for n in (7, 300)}
    assert spaced == {n: tokenizer.convert_tokens_to_ids(f"Ġ{n}") for n in (7, 300)}
    with pytest.raises(MechnumError, match="521 are not one token"):
        number_tokens(net(tokenizer), [520, 521])


def test_a_net_without_tokenizer_reads_the_number_as_its_token():
    model = net(default_task="modular_addition:113")
    found = number_prompts(model, [3, 112])
    assert found[0].tokens.tolist() == [[3], [112]]
    assert number_tokens(model, [112, 3]) == {112: 112, 3: 3}
    assert own_numbers(model) == range(113)
    assert own_numbers(net(word_level())) == range(100)
    with pytest.raises(MechnumError, match="113 are no numbers of stand-in, which adds modulo 113"):
        number_prompts(model, [112, 113])
    with pytest.raises(MechnumError, match="has no tokenizer to read 'n = "):
        number_prompts(model, [3], "n = {n}")
    with pytest.raises(MechnumError, match="token id -1 is outside"):
        number_prompts(net(), [-1])


@pytest.mark.parametrize(
    ("numbers", "template", "message"),
    [
        ([], "{n}", "there are no numbers"),
        ([3, 3], "{n}", "the number 3 is there twice"),
        ([300], "{n}", "the numbers 300 have no token in the tokenizer of stand-in"),
        ([3], "{a}", "needs .n. once and no other braces"),
        ([3], "{n}+{n}", "needs .n. once"),
        ([3], "1{n}", "runs digits into the number"),
        ([3], "{n}0", "runs digits into the number"),
    ],
)
def test_bad_requests_are_refused(numbers, template, message):
    with pytest.raises(MechnumError, match=message):
        number_prompts(net(word_level()), numbers, template)


def test_an_unknown_mode_is_refused(unchecked):
    with pytest.raises(MechnumError, match="digits='first' is not known"):
        number_prompts(net(word_level()), [3], digits="first")


def test_texts_too_long_for_the_model_are_refused():
    short = StandIn(word_level(), Spec(n_ctx=2))
    with pytest.raises(MechnumError, match="prompts of 3 tokens are too long"):
        number_prompts(short, [3], "1+{n}")


def test_a_selection_keeps_what_kind_it_is():
    groups = number_prompts(net(word_level()), range(5))
    picked = groups[0].select(groups[0].index[[3, 1]])
    assert picked.variables["n"].tolist() == [3, 1]
    assert type(picked) is type(groups[0])
    prompts = group_by_length([(1, 2), (3, 4)], {"a": [0, 0]}, [5, 6], {"a": [1, 3]}, ["x", "y"])
    assert prompts[0].select(prompts[0].index[[1]]).answers.tolist() == [6]
    assert repr(prompts[0]) == "Prompts(2 of 2 tokens, ('x',))"


def test_bundled_models_read_their_numbers():
    groups = number_prompts(mn.load("adder-gptj"), range(100))
    assert groups[0].tokens.tolist() == [[n] for n in range(100)]
