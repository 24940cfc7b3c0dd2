"""The task and pairs that options describe, and the choices that they offer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import get_args

import pytest
import torch

from mechnum.cli import options
from mechnum.cli.tasks import chosen_task, drawn_pairs, modular_task, position_of
from mechnum.errors import MechnumError
from mechnum.patching.batches import Direction
from mechnum.patching.metrics import MetricName
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import TooFewPairs
from mechnum.tasks.task import Operand


def model(default_task=None):
    return SimpleNamespace(name="net", default_task=default_task)


def test_the_task_is_the_one_named_or_the_models_own_or_addition():
    defaults = ("0-99", None, 0, "single", None, 0)
    assert chosen_task(model("modular_addition:7"), None, *defaults).name == "modular_addition:7"
    assert chosen_task(model("modular_addition:7"), "addition", *defaults).name == "addition"
    assert chosen_task(model(), None, *defaults).name == "addition"


def test_options_of_additions_reach_it_and_are_refused_for_other_tasks():
    task = chosen_task(model(), None, "0-9", 9, 2, "last", "{a} + {b} =", 3)
    assert (task.numbers, task.max_sum, task.shots, task.digits, task.template, task.seed) == (
        tuple(range(10)), 9, 2, "last", "{a} + {b} =", 3
    )  # fmt: skip
    with pytest.raises(MechnumError, match=r"do not go with modular_addition:7: use them"):
        chosen_task(model(), "modular_addition:7", "0-99", 9, 0, "single", None, 0)
    with pytest.raises(MechnumError, match=r"--template do not go with modular_addition:7"):
        chosen_task(model(), "modular_addition:7", "0-99", None, 0, "single", "{a}+{b}=", 0)


def test_modular_tasks_are_named_with_their_modulus():
    assert modular_task(None) is None
    assert modular_task("modular_addition:7").p == 7
    with pytest.raises(MechnumError, match="--task addition is not modular: write it like"):
        modular_task("addition")


def test_operations_take_ranges_and_shots_and_know_their_own_numbers():
    task = chosen_task(model(), "a-23", "0-99", None, 0, "single", None, 0)
    assert task.numbers == tuple(range(23, 100))
    task = chosen_task(model(), "1.5a", "0-9", None, 2, "last", "{a} * 1.5 =", 3)
    assert (task.numbers, task.shots, task.digits, task.template, task.seed) == (
        tuple(range(10)), 2, "last", "{a} * 1.5 =", 3
    )  # fmt: skip
    with pytest.raises(MechnumError, match="a-23 of 5, 6, 7, 8, 9 has a negative"):
        chosen_task(model(), "a-23", "5-9", None, 0, "single", None, 0)
    with pytest.raises(MechnumError, match="--max-sum does not go with a//5"):
        chosen_task(model(), "a//5", "0-99", 9, 0, "single", None, 0)


@pytest.mark.parametrize(
    ("option", "names"),
    [
        (options.Metric, MetricName),
        (options.Direction, Direction),
        (options.PutIn, ValueName),
        (options.MeanOver, MeanOver),
        (options.Vary, Operand),
    ],
)
def test_options_offer_what_the_library_knows(option, names):
    choices = get_args(option)[0]
    assert set(get_args(choices)) == set(get_args(names))


@pytest.mark.parametrize(
    ("text", "position"), [("3", 3), ("-2", -2), ("end", "end"), ("a", "a"), ("1-2", "1-2")]
)
def test_positions_are_indices_or_names(text, position):
    assert position_of(text) == position


def test_too_few_right_answers_say_how_to_go_on():
    class Hopeless:
        name = "addition"

        def form(self, model):
            return "{a}+{b}="

        def pairs_at_most(self, *arguments, **options):
            if options.get("correct_only") is False:
                return "pairs"
            raise TooFewPairs("none", available=0)

    class Accuracy:
        correct = torch.zeros(81, dtype=torch.bool)

        def __len__(self):
            return 81

    task = Hopeless()
    task.accuracy = lambda model: Accuracy()
    with pytest.raises(MechnumError, match=r"net answers 0 of 81 prompts .* add --wrong-too"):
        drawn_pairs(task, model(), 5, "any", 0, wrong_too=False)
    pairs, said = drawn_pairs(task, model(), 5, "any", 0, wrong_too=True)
    assert pairs == "pairs"
    assert "accuracy" not in said
