"""Addition, addition modulo p, and the names of all tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsIndex

from mechnum.errors import MechnumError
from mechnum.tasks.numbers import check_integer, check_numbers
from mechnum.tasks.operations import OPERATIONS, operation
from mechnum.tasks.prompts import Prompts, group_by_length
from mechnum.tasks.task import Task
from mechnum.tasks.templates import BARE, addition_template
from mechnum.tasks.worded import WordedTask

if TYPE_CHECKING:
    from mechnum.models.model import Model


@dataclass(frozen=True)
class Addition(WordedTask):
    """a + b over all ordered pairs of the numbers; made by `addition`.

    Attributes:
        max_sum: largest sum that is asked, or None.
    """

    max_sum: int | None

    @property
    def name(self) -> str:
        """As `parse` reads it."""
        return "addition"

    @property
    def operands(self) -> tuple[str, ...]:
        """a and b."""
        return ("a", "b")

    def answer(self, numbers: tuple[int, ...]) -> int:
        """The sum."""
        return sum(numbers)

    def questions(self) -> list[tuple[int, ...]]:
        """The (a, b) that `max_sum` allows, b fastest."""
        return [
            (a, b)
            for a in self.numbers
            for b in self.numbers
            if self.max_sum is None or a + b <= self.max_sum
        ]

    def words(self, model: Model | None) -> str:
        """The model's own prompt for a sum, or the bare one."""
        return BARE if model is None else addition_template(model)


@dataclass(frozen=True)
class ModularAddition(Task):
    """(a + b) mod p over all ordered pairs, as token ids `a b =`; made by `modular_addition`.

    A net that reads two tokens and knows the numbers alone has no `=`, and is asked `a b`.

    Attributes:
        p: the modulus.
    """

    p: int

    @property
    def name(self) -> str:
        """With the modulus, as `parse` reads it."""
        return f"modular_addition:{self.p}"

    def form(self, model: Model) -> str:
        """The token ids, with {a} and {b} for the operands."""
        return "tokens {a} {b}" + "".join(f" {token}" for token in self._after_operands(model))

    def _after_operands(self, model: Model) -> tuple[int, ...]:
        """`=`, or nothing."""
        bare = model.spec.d_vocab == self.p and model.spec.n_ctx == 2
        return () if bare else (self.p,)

    def _build(self, model: Model) -> tuple[Prompts, ...]:
        spec = model.spec
        if model.tokenizer is not None:
            raise MechnumError(
                f"{self.name} gives token ids to nets without a tokenizer, but {model.name} has "
                "one: use addition, or pairs_from_tokens with token ids of your own"
            )
        after = self._after_operands(model)
        n_tokens, n_positions = self.p + len(after), 2 + len(after)
        if spec.d_vocab < n_tokens or spec.d_vocab_out < self.p or spec.n_ctx < n_positions:
            raise MechnumError(
                f"{self.name} needs {self.p + 1} input tokens (numbers and '='), {self.p} output "
                f"tokens and 3 positions, but {model.name} has {spec.d_vocab}, "
                f"{spec.d_vocab_out} and {spec.n_ctx}: use the p that it was trained on"
            )
        trained_on = model.default_task
        if trained_on not in (None, self.name):
            raise MechnumError(
                f"{model.name} was trained on {trained_on}, where other tokens are numbers: use "
                f"that task instead of {self.name}"
            )
        asked = [(a, b) for a in range(self.p) for b in range(self.p)]
        answers = [(a + b) % self.p for a, b in asked]
        return group_by_length(
            token_ids=[(a, b, *after) for a, b in asked],
            positions={"a": [0] * len(asked), "b": [1] * len(asked)},
            answers=answers,
            variables={"a": [a for a, _ in asked], "b": [b for _, b in asked], "answer": answers},
            texts=[f"{a} {b} =" if after else f"{a} {b}" for a, b in asked],
        )

    def _spelling(self, model: Model) -> Callable[[int], int | None]:
        return lambda token_id: token_id if token_id < self.p else None


def addition(
    numbers: Iterable[SupportsIndex] = range(100),
    max_sum: int | None = None,
    shots: int = 0,
    digits: Literal["single", "last"] = "single",
    template: str | None = None,
    seed: int = 0,
) -> Addition:
    """a + b for all ordered pairs of the numbers (Kantamneni & Tegmark 2025, section 3).

    Args:
        numbers: the operands, each once.
        max_sum: leave out sums larger than this.
        shots: put this many solved sums before each prompt, one a line. They are drawn once, so
            that they are the same for all prompts, and are not asked themselves.
        digits: "single" wants every operand and every answer to be one token, and refuses
            numbers that are not. "last" takes numbers in pieces: the positions "a" and "b" are
            then the last piece of each number, and the answer is the FIRST piece of the sum, so
            that a prompt counts as correct when this piece is predicted, and answers are only
            told apart by it. An accuracy is then one of first pieces, without errors in numbers.
        template: the prompt, with {a} and {b}. Without one it is what the model's own card says,
            else the paper's prompt for the model's family, and the bare `{a}+{b}=` with shots.
        seed: draws the shots.

    Raises:
        MechnumError: no numbers or no sums left, more shots than sums, or a template in which
            the numbers run into other text.
    """
    task = Addition(
        numbers=check_numbers(numbers),
        shots=check_integer(shots),
        digits=digits,
        template=template,
        seed=check_integer(seed),
        max_sum=None if max_sum is None else check_integer(max_sum),
    )
    if max_sum is not None and 2 * min(task.numbers) > max_sum:
        raise MechnumError(
            f"no sum of the numbers is {max_sum} or less: the smallest is "
            f"{2 * min(task.numbers)}, raise max_sum"
        )
    task.check_asks()
    return task


def modular_addition(p: int) -> ModularAddition:
    """(a + b) mod p as the tokens `a b p`, where p stands for `=` (Nanda et al. 2023).

    Nets of two positions that have no token for `=` get `a b` (Zhong et al. 2023).

    Raises:
        MechnumError: p is not an integer of 2 or more.
    """
    if check_integer(p) < 2:
        raise MechnumError(f"p={p} is not a modulus: give an integer of 2 or more")
    return ModularAddition(check_integer(p))


def parse(text: str) -> Task:
    """The task called `addition`, `modular_addition:113`, or as in `operation`: `a-23`, ...

    Raises:
        MechnumError: there is no such task; a process, which asks nothing, is named as one.
    """
    if text == "addition":
        return addition()
    if match := re.fullmatch(r"modular_addition:(\d+)", text):
        return modular_addition(int(match[1]))
    if text in OPERATIONS:
        return operation(text)
    from mechnum.tasks.processes.files import NAMES

    if text.partition(":")[0] in NAMES:
        raise MechnumError(
            f"{text} is a process, which asks no questions: use `mechnum beliefs` or "
            "mechnum.tasks.processes"
        )
    raise MechnumError(
        f"there is no task {text!r}: use addition, modular_addition:113 (any modulus), "
        f"{', '.join(OPERATIONS)}"
    )
