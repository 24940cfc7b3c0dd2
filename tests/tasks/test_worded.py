"""Tasks of one's own: any number of operands, by the names that analyses know."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest

from mechnum.errors import MechnumError
from mechnum.tasks.worded import WordedTask
from tests.tasks.small_tokenizers import word_level
from tests.tasks.stand_in import StandIn


@dataclass(frozen=True)
class Sum(WordedTask):
    names: tuple[str, ...]

    @property
    def name(self):
        return "sum"

    @property
    def operands(self):
        return self.names

    def answer(self, numbers):
        return sum(numbers)

    def questions(self):
        return list(product(self.numbers, repeat=len(self.names)))

    def words(self, model):
        return "+".join(f"{{{name}}}" for name in self.names) + "="


def task(names):
    return Sum((1, 2, 3), shots=0, digits="single", template=None, seed=0, names=names)


def test_three_operands_are_found_each_at_its_place():
    (prompts,) = task(("a", "b", "c")).prompts(StandIn(word_level()))
    assert prompts.texts[:2] == ("1+1+1=", "1+1+2=")
    assert prompts.variables["answer"].tolist()[:4] == [3, 4, 5, 4]
    first = prompts.tokens[1].tolist()
    places = {name: int(at[1]) for name, at in prompts.positions.items()}
    # The operator is the last one.
    assert places == {"a": 0, "b": 2, "op": 3, "c": 4, "end": 5}
    assert first[0] == first[2] != first[4]


def test_a_template_without_one_of_them_is_shown_how():
    with pytest.raises(MechnumError, match=r"needs .*c\} once.* like \'\{a\}\+\{b\}\+\{c\}='"):
        Sum((1, 2), 0, "single", "{a}+{b}=", 0, ("a", "b", "c"))


def test_other_names_are_refused():
    with pytest.raises(MechnumError, match="Sum calls its operands x, y: call them a, b"):
        task(("x", "y"))
