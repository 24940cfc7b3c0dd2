"""The pair that reports show, its tokens, and what is said of the BOS token."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.tasks.examples import bos_policy, example_pair, token_texts
from mechnum.tasks.pairs import TooFewPairs


def pairs(**variables):
    found = mn.tasks.pairs_from_tokens([[1, 2], [3, 4]], [[5, 6], [7, 8]], [9, 9], [10, 10])
    for prompts in (found.groups[0].clean, found.groups[0].corrupt):
        object.__setattr__(
            prompts, "variables", {name: torch.tensor(of) for name, of in variables.items()}
        )
    return found


def test_operands_of_the_example_differ_where_some_do():
    clean, corrupt = example_pair(pairs(a=[3, 3], b=[3, 4]))
    assert clean.tokens.tolist() == [[3, 4]]
    assert corrupt.tokens.tolist() == [[7, 8]]
    assert example_pair(pairs(a=[3, 3], b=[3, 3]))[0].tokens.tolist() == [[1, 2]]
    assert example_pair(pairs())[0].tokens.tolist() == [[1, 2]]


def net(bos_id):
    tokenizer = SimpleNamespace(
        bos_token_id=bos_id, bos_token="<s>", decode=lambda ids: f"t{ids[0]}"
    )
    return SimpleNamespace(tokenizer=tokenizer)


def test_tokens_as_text_or_ids():
    assert token_texts(net(1), [4, 5]) == ["t4", "t5"]
    assert token_texts(SimpleNamespace(tokenizer=None), [4, 5]) == ["4", "5"]


def test_bos_policy():
    example, _ = example_pair(pairs())
    assert bos_policy(net(1), example) == "each prompt begins with <s> (token 1)"
    assert bos_policy(net(7), example) == "none: the tokenizer does not add its <s>"
    assert bos_policy(net(None), example) == "none: the tokenizer has no such token"
    assert (
        bos_policy(SimpleNamespace(tokenizer=None), example) == "none: the model has no tokenizer"
    )


def test_at_most_so_many_pairs():
    adder = mn.load("adder-gptj")
    task = mn.tasks.addition(range(3))
    few = task.pairs_at_most(adder, 10_000, correct_only=False)
    with pytest.raises(TooFewPairs):
        task.pairs(adder, len(few) + 1, correct_only=False)
    assert len(task.pairs_at_most(adder, 4, correct_only=False)) == 4
    assert len(task.pairs_at_most(adder, 4)) == 4
    with pytest.raises(TooFewPairs):
        mn.tasks.addition([3]).pairs_at_most(adder, 1)
    with pytest.raises(MechnumError, match="ask for 1 or more"):
        task.pairs_at_most(adder, 0)
