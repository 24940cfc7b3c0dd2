"""Tokens of the numbers that a task's answers are."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from mechnum import tasks
from mechnum.errors import MechnumError
from mechnum.tasks import answer_tokens
from tests.tasks.small_tokenizers import digit_level, word_level
from tests.tasks.stand_in import Spec, StandIn


def test_tokens_are_those_of_the_numbers_in_order():
    tokenizer = word_level()
    model = StandIn(tokenizer)
    found = answer_tokens(model, tasks.addition(range(20)).prompts(model))
    assert found.tolist() == [tokenizer.convert_tokens_to_ids(str(n)) for n in range(39)]


def test_numbers_that_nobody_asks_for_are_looked_up():
    tokenizer = word_level()
    model = StandIn(tokenizer)
    found = answer_tokens(model, tasks.addition([10, 30]).prompts(model))
    assert found.tolist() == [tokenizer.convert_tokens_to_ids(str(n)) for n in range(61)]


def test_numbers_that_are_no_token_are_refused():
    model = StandIn(word_level([10, 20, *range(5)]))
    with pytest.raises(MechnumError, match="are not one token"):
        answer_tokens(model, tasks.addition([10], max_sum=20).prompts(model))


def test_first_pieces_are_refused():
    model = StandIn(digit_level())
    prompts = tasks.addition(range(5, 15), digits="last").prompts(model)
    with pytest.raises(MechnumError, match="choose smaller numbers, of one token each"):
        answer_tokens(model, prompts)


def test_without_a_tokenizer_holes_are_refused():
    model = StandIn(spec=Spec("native", d_vocab=8, d_vocab_out=7, n_ctx=3))
    (prompts,) = tasks.modular_addition(7).prompts(model)
    assert answer_tokens(model, (prompts,)).tolist() == list(range(7))
    part = prompts.select(torch.tensor([0, 3, 6]))
    with pytest.raises(MechnumError, match="give all prompts of the task"):
        answer_tokens(model, (part,))


def test_negative_answers_and_no_prompts_are_refused():
    tokenizer = word_level([*range(-9, 10)])
    model = StandIn(tokenizer)
    with pytest.raises(MechnumError, match="no prompts"):
        answer_tokens(model, ())
    numbers = torch.tensor([-1, 2])
    prompts = tasks.addition(range(3)).prompts(model)[0].select(torch.tensor([0, 1]))
    negative = replace(prompts, answers=numbers, variables={"answer": numbers})
    with pytest.raises(MechnumError, match="the answer -1 is negative"):
        answer_tokens(model, (negative,))
