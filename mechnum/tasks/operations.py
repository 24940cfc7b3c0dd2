"""Tasks with one operand.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 4, tasks beside addition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, SupportsIndex

from mechnum.errors import MechnumError
from mechnum.tasks.numbers import check_integer, check_numbers, some
from mechnum.tasks.templates import FAMILY_INSTRUCTIONS
from mechnum.tasks.worded import WordedTask

if TYPE_CHECKING:
    from mechnum.models.model import Model


@dataclass(frozen=True)
class Rule:
    """What is asked of one number, and what is right.

    Attributes:
        words: the bare prompt.
        answer: of an operand.
        first: the smallest operand whose answer is not negative.
        step: only multiples of it have a whole answer.
    """

    words: str
    answer: Callable[[int], int]
    first: int = 0
    step: int = 1


OPERATIONS: Mapping[str, Rule] = MappingProxyType(
    {
        "a-23": Rule("{a}-23=", lambda a: a - 23, first=23),
        "a//5": Rule("{a}//5=", lambda a: a // 5),
        "1.5a": Rule("{a}*1.5=", lambda a: 3 * a // 2, step=2),
        "a_mod_2": Rule("{a} modulo 2=", lambda a: a % 2),
        "x-a=0": Rule("x-{a}=0, x=", lambda a: a),
    }
)


@dataclass(frozen=True)
class Operation(WordedTask):
    """One operation on each of the numbers; made by `operation`.

    Attributes:
        operation: its name in `OPERATIONS`.
    """

    operation: str

    @property
    def name(self) -> str:
        """As `parse` reads it."""
        return self.operation

    @property
    def operands(self) -> tuple[str, ...]:
        """a alone."""
        return ("a",)

    def answer(self, numbers: tuple[int, ...]) -> int:
        """What the operation makes of the number."""
        return OPERATIONS[self.operation].answer(*numbers)

    def questions(self) -> list[tuple[int, ...]]:
        """Each number that has a whole answer."""
        step = OPERATIONS[self.operation].step
        return [(a,) for a in self.numbers if a % step == 0]

    def words(self, model: Model | None) -> str:
        """The paper's prompt for the model's family, or the bare one."""
        lead = "" if model is None else FAMILY_INSTRUCTIONS.get(model.spec.family, "")
        return lead + OPERATIONS[self.operation].words


def operation(
    name: str,
    numbers: Iterable[SupportsIndex] | None = None,
    shots: int = 0,
    digits: Literal["single", "last"] = "single",
    template: str | None = None,
    seed: int = 0,
) -> Operation:
    """One operation on each of the numbers (Kantamneni & Tegmark 2025, section 4).

    Args:
        name: "a-23"; "a//5", rounded down; "1.5a", of the even numbers among `numbers`;
            "a_mod_2"; or "x-a=0", which is solved for x.
        numbers: the operands, each once; by default those of 0 to 99 that have an answer.
        shots, digits, seed: as in `mechnum.tasks.addition`.
        template: the prompt, with {a}. Without one it is the paper's for GPT-J, with its
            instruction for GPT-J and Pythia, and bare for other models and with shots.

    Raises:
        MechnumError: an unknown name, numbers or answers below 0, nothing to ask, or a template in
            which the number runs into other text.
    """
    if name not in OPERATIONS:
        raise MechnumError(f"there is no operation {name!r}: use one of {', '.join(OPERATIONS)}")
    rule = OPERATIONS[name]
    operands = check_numbers(range(rule.first, 100, rule.step) if numbers is None else numbers)
    if negative := [a for a in operands if a < rule.first]:
        raise MechnumError(
            f"{name} of {some(negative)} has a negative operand or answer: give numbers of "
            f"{rule.first} or more"
        )
    task = Operation(
        numbers=operands,
        shots=check_integer(shots),
        digits=digits,
        template=template,
        seed=check_integer(seed),
        operation=name,
    )
    if not task.questions():
        raise MechnumError(f"{name} has no whole answer for any of the numbers: give even ones")
    task.check_asks()
    return task
