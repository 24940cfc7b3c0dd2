from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.tasks.numbers import NumberTokens, check_distinct, check_numbers, parse_range, some
from tests.tasks import npm_tokenizers
from tests.tasks.small_tokenizers import digit_level, gpt2_like, llama2_like, word_level


def test_place_decides_which_numbers_are_one_token():
    found = NumberTokens.of(gpt2_like(), range(600))
    assert found.offending("bare") == (521,)
    assert found.offending("spaced") == (362, *range(400, 600))
    assert found.offending("context") == (521,)
    assert len(found.single("bare")) == 599
    assert all(found.continues)


def test_digit_level_tokenizer_has_one_token_for_digits_only():
    found = NumberTokens.of(digit_level(), range(30))
    assert found.single("bare") == tuple(range(10))
    assert found.single("spaced") == ()
    assert found.single("context") == tuple(range(10))
    with pytest.raises(MechnumError, match=r"10, 11, 12, 13, 14, … \(20\) of 30 numbers"):
        found.ids()


def test_stray_space_piece_counts_where_the_text_starts_but_not_in_context():
    found = NumberTokens.of(llama2_like(), range(12))
    assert found.single("bare") == ()
    assert found.single("spaced") == ()
    assert found.single("context") == tuple(range(10))
    assert found.bare[7] == (2, 10)
    assert found.context[7] == (10,)
    assert found.context[11] == (4, 4)
    assert all(found.continues)


def test_stray_space_piece_before_the_number_is_seen():
    found = NumberTokens.of(llama2_like(), range(5), prefix="= ")
    # "= " alone ends in a piece of its own, which is there before the number as well.
    assert all(found.continues)
    assert not any(NumberTokens.of(llama2_like(), range(5), prefix="").continues)


def test_prefix_that_changes_when_the_number_follows_is_seen():
    found = NumberTokens.of(gpt2_like(), range(5), prefix="1+1= ")
    assert found.single("context") == tuple(range(5))
    assert not any(found.continues)


def test_number_that_merges_with_its_surroundings_has_no_ids():
    found = NumberTokens.of(gpt2_like(), [12], prefix="=", suffix="5")
    assert found.context == ((),)
    assert found.offending("context") == (12,)
    assert found.table()["tokens"].sel(number=12, place="context") == 0


def test_tokens_that_the_tokenizer_adds_are_left_out():
    plain = NumberTokens.of(word_level(), range(20))
    added = NumberTokens.of(word_level(bos=True, eos=True), range(20))
    assert plain.bare == added.bare
    assert plain.context == added.context


def test_unknown_numbers_are_not_one_token():
    found = NumberTokens.of(word_level(range(10)), range(12))
    assert found.offending("context") == (10, 11)


def test_answers_0_to_198_have_199_ids():
    ids = NumberTokens.of(word_level(bos=True), range(199)).ids()
    assert len(set(ids.values())) == 199


def test_numbers_that_share_an_id_are_refused():
    with pytest.raises(MechnumError, match="numbers 3 and 7 share the token id 5"):
        check_distinct({3: 5, 4: 6, 7: 5})


def test_table_has_every_number_and_place():
    table = NumberTokens.of(gpt2_like(), [5, 521], suffix="+").table()
    assert table.sizes == {"number": 2, "place": 3}
    assert table["tokens"].sel(number=521).values.tolist() == [2, 3, 2]
    assert table["first_id"].sel(number=5, place="bare") == 20
    assert table.attrs == {"prefix": "1+1=", "suffix": "+"}


def test_negative_numbers_are_two_tokens():
    found = NumberTokens.of(gpt2_like(), range(-3, 3))
    assert found.single("bare") == (0, 1, 2)


def test_model_without_tokenizer_is_refused():
    with pytest.raises(MechnumError, match=r"clock has no tokenizer: .* use modular_addition"):
        NumberTokens.of(None, owner="clock")


def test_tokenizer_without_offsets_is_refused():
    class Slow:
        is_fast = False

    with pytest.raises(MechnumError, match="gives no character offsets"):
        NumberTokens.of(Slow())


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([], "there are no numbers"),
        (range(5, 5), "there are no numbers"),
        ([1, 2, 1], "the number 1 is there twice"),
        ([1.0], "1.0 is not an integer"),
        (range(10**12), "more than 1,000,000 numbers"),
        ([True], "True is not an integer"),
        (["007"], "'007' is not an integer"),
    ],
)
def test_bad_numbers_are_refused(numbers, message):
    with pytest.raises(MechnumError, match=message):
        check_numbers(numbers)


def test_numpy_integers_are_numbers():
    assert check_numbers(np.arange(3)) == (0, 1, 2)
    assert all(type(number) is int for number in check_numbers(np.arange(3)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-99", range(100)),
        ("7", range(7, 8)),
        ("-5-5", range(-5, 6)),
        ("-5--3", range(-5, -2)),
        (" 007 - 010 ", range(7, 11)),
    ],
)
def test_range_is_read(text, expected):
    assert parse_range(text) == expected


@pytest.mark.parametrize("text", ["", "a-b", "0..9", "1-2-3", "1.5-3", "9-3"])
def test_bad_range_is_refused(text):
    with pytest.raises(MechnumError, match="range"):
        parse_range(text)


def test_lists_are_shortened():
    assert some([1, 2]) == "1, 2"
    assert some(range(9)) == "0, 1, 2, 3, 4, … (9)"


@pytest.mark.slow
def test_real_gpt2_has_holes_that_depend_on_the_space():
    found = NumberTokens.of(npm_tokenizers.load("gpt2"), range(10_000))
    assert len(found.single("bare")) == 907
    assert found.offending("bare")[0] == 521
    assert len(found.single("spaced")) == 681
    below_400 = [number for number in found.offending("spaced") if number < 400]
    assert below_400 == [362, 381, 382, 391, 393, 394, 397]


def test_real_llama2_splits_digits_and_adds_a_stray_piece():
    tokenizer = npm_tokenizers.load("llama2")
    bare = NumberTokens.of(tokenizer, [47], prefix="=")
    assert bare.bare == ((29871, 29946, 29955),)
    assert bare.context == ((29946, 29955),)
    assert NumberTokens.of(tokenizer, range(12), prefix="=").single() == tuple(range(10))


@pytest.mark.slow
def test_real_llama3_has_one_token_for_each_number_up_to_999():
    found = NumberTokens.of(npm_tokenizers.load("llama3"), range(1100))
    assert found.single("bare") == tuple(range(1000))
    assert found.single("context") == tuple(range(1000))
    assert found.single("spaced") == ()
