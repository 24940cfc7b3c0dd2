"""Tasks with one operand: prompts, right answers, positions, pairs, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import GPTJConfig, GPTJForCausalLM

import mechnum as mn
from mechnum import tasks
from mechnum.errors import MechnumError
from mechnum.tasks.operations import OPERATIONS
from tests import fixtures
from tests.tasks import npm_tokenizers
from tests.tasks.small_tokenizers import digit_level, gpt2_like
from tests.tasks.stand_in import Spec, StandIn

# Text of the prompt for a = 46 with GPT-J's instruction, answer, and how many of 0-99 are asked.
RIGHT = {
    "a-23": ("46-23=", 23, 77),
    "a//5": ("46//5=", 9, 100),
    "1.5a": ("46*1.5=", 69, 50),
    "a_mod_2": ("46 modulo 2=", 0, 100),
    "x-a=0": ("x-46=0, x=", 46, 100),
}


def model_with(tokenizer, family="gptj"):
    return StandIn(tokenizer, Spec(family, 200_000, 200_000), template="{a}+{b}=")


@pytest.mark.parametrize("name", OPERATIONS)
def test_prompts_answers_and_positions(name):
    model = model_with(gpt2_like())
    (prompts,) = tasks.operation(name).prompts(model)
    words, answer, n = RIGHT[name]
    assert len(prompts) == n
    (row,) = np.flatnonzero(prompts.variables["a"] == 46)
    assert prompts.texts[row] == f"Output ONLY a number.\n{words}"
    assert int(prompts.variables["answer"][row]) == answer
    assert set(prompts.positions) == {"a", "end"}
    ids = prompts.tokens[row].tolist()
    assert model.tokenizer.decode([ids[int(prompts.positions["a"][row])]]).strip() == "46"
    assert int(prompts.positions["end"][row]) == len(ids) - 1
    # The answer is the token that follows this very prompt.
    followed = model.tokenizer(prompts.texts[row] + str(answer))["input_ids"]
    assert followed == [*ids, int(prompts.answers[row])]


def test_every_answer_is_the_operations():
    expected = {
        "a-23": lambda a: a - 23,
        "a//5": lambda a: int(np.floor(a / 5)),
        "1.5a": lambda a: int(1.5 * a),
        "a_mod_2": lambda a: int(a % 2 == 1),
        "x-a=0": lambda a: a,
    }
    assert set(expected) == set(OPERATIONS)
    for name, right in expected.items():
        (prompts,) = tasks.operation(name).prompts(model_with(gpt2_like()))
        asked = prompts.variables["a"].tolist()
        assert [right(a) for a in asked] == prompts.variables["answer"].tolist()


@pytest.mark.parametrize(
    ("family", "lead"), [("gpt_neox", "Output ONLY a number. "), ("llama", ""), ("gpt2", "")]
)
def test_the_instruction_is_the_familys(family, lead):
    assert tasks.operation("a-23").form(model_with(gpt2_like(), family)) == lead + "{a}-23="


def test_shots_are_solved_and_not_asked():
    model = model_with(gpt2_like())
    task = tasks.operation("1.5a", range(20), shots=3)
    *shots, last = task.form(model).split("\n")
    assert last == "{a}*1.5="
    shown = set()
    for shot in shots:
        a, answer = shot.split("*1.5=")
        assert int(answer) == 1.5 * int(a)
        shown.add(int(a))
    asked = {a for (a,) in task.asked()}
    assert len(shown) == 3
    assert asked == set(range(0, 20, 2)) - shown
    assert task.form(model) == tasks.operation("1.5a", range(20), shots=3).form(model)
    assert task.form(model) != tasks.operation("1.5a", range(20), shots=3, seed=1).form(model)


def test_names_are_parsed_and_said():
    for name in OPERATIONS:
        assert tasks.parse(name) == tasks.operation(name)
        assert tasks.parse(name).name == name
    with pytest.raises(MechnumError, match=r"there is no task 'a-24': use addition, .* a-23"):
        tasks.parse("a-24")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "a**2"}, "there is no operation"),
        ({"name": "a-23", "numbers": range(100)}, r"a-23 of 0, 1, .*\(23\) has a negative"),
        ({"name": "a//5", "numbers": [-5, 3]}, "a//5 of -5 has a negative"),
        ({"name": "1.5a", "numbers": [1, 3]}, "no whole answer"),
        ({"name": "a//5", "numbers": []}, "there are no numbers"),
        ({"name": "a//5", "numbers": [3, 3]}, "is there twice"),
        ({"name": "a//5", "numbers": [3], "shots": 1}, "1 shots leave nothing"),
        ({"name": "a//5", "shots": -1}, "shots=-1 is negative"),
        ({"name": "a//5", "template": "{a}+{b}="}, r"needs \{a\} once"),
        ({"name": "a//5", "template": "1{a}="}, "does not set the numbers apart"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(MechnumError, match=message):
        tasks.operation(**arguments)


def test_answers_of_several_tokens_are_refused():
    with pytest.raises(MechnumError, match="operands and answers are not one token"):
        tasks.operation("a-23").prompts(model_with(digit_level()))
    # One-digit operands and answers are one token each there.
    (prompts,) = tasks.operation("a_mod_2", range(10)).prompts(model_with(digit_level()))
    assert len(prompts) == 10


def test_pairs_vary_a_and_have_different_answers():
    model = model_with(gpt2_like())
    for name in OPERATIONS:
        for vary in ("a", "any"):
            pairs = tasks.operation(name).pairs(model, 40, vary, seed=1, correct_only=False)
            (group,) = pairs.groups
            assert (group.clean.variables["a"] != group.corrupt.variables["a"]).all()
            assert (group.clean.answers != group.corrupt.answers).all()
            again = tasks.operation(name).pairs(model, 40, vary, seed=1, correct_only=False)
            assert again.fingerprint == pairs.fingerprint
        with pytest.raises(MechnumError, match="have no number b: vary 'any' or another"):
            tasks.operation(name).pairs(model, 4, "b", correct_only=False)


def test_accuracy_counts_right_answers():
    tokenizer, task = gpt2_like(), tasks.operation("a//5")
    (prompts,) = task.prompts(model_with(tokenizer))
    rows = {tuple(ids): row for row, ids in enumerate(prompts.tokens.tolist())}

    def answer(ids):
        # Right below 60, else one too many: the answer to the prompt five rows further.
        row = rows[tuple(ids)]
        return int(prompts.answers[row if row < 60 else (row + 5) % 100])

    model = StandIn(tokenizer, Spec("gptj", 5000, 5000), answer=answer)
    accuracy = task.accuracy(model)
    assert accuracy.share == pytest.approx(0.6)
    assert accuracy.error_counts() == {-19: 5, 1: 35}


@pytest.mark.slow
def test_real_gpt2_tokens_on_a_random_gptj():
    """All five on a network with GPT-2's vocabulary: prompts, pairs, effects at a and the end."""
    tokenizer = npm_tokenizers.load("gpt2")
    config = GPTJConfig(
        vocab_size=50_300, n_positions=64, n_embd=32, n_layer=3, n_head=4, rotary_dim=4,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    net = fixtures.perturbed(GPTJForCausalLM(config))
    model = mn.wrap(net, tokenizer=tokenizer, name="random")
    for name in OPERATIONS:
        task = tasks.operation(name)
        groups = task.prompts(model)
        assert sum(map(len, groups)) == RIGHT[name][2]
        accuracy = task.accuracy(model)
        assert accuracy.share < 0.1
        pairs = task.pairs(model, 6, "a", seed=0, correct_only=False)
        group = pairs.groups[0]
        found = mn.effects(model, pairs, "attn", position="a", estimands=("total",))
        assert dict(found.sizes) == {"pair": 6, "layer": 3}
        with torch.no_grad():
            logits = net(group.clean.tokens).logits[:, -1].double()
        rows = torch.arange(len(group))
        expected = logits[rows, group.clean.answers] - logits[rows, group.corrupt.answers]
        np.testing.assert_allclose(
            found["clean_metric"][group.index.numpy()], expected.numpy(), atol=1e-4
        )
