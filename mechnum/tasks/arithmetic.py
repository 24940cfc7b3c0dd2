"""Addition, and addition modulo p."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, SupportsIndex

import numpy as np

from mechnum.errors import MechnumError
from mechnum.tasks.encoding import Encoder
from mechnum.tasks.numbers import check_integer, check_numbers
from mechnum.tasks.prompts import Prompts, group_by_length
from mechnum.tasks.reading import NumberReader
from mechnum.tasks.task import Task
from mechnum.tasks.templates import BARE, Template, addition_template

if TYPE_CHECKING:
    from mechnum.models.model import Model


@dataclass(frozen=True)
class Addition(Task):
    """a + b over all ordered pairs of the numbers; made by `addition`.

    Attributes:
        numbers: the operands.
        max_sum: largest sum that is asked, or None.
        shots: how many solved sums stand before each prompt.
        digits: "single" or "last", see `addition`.
        template: the prompt with {a} and {b}, or None for the one that suits the model.
        seed: draws the shots.
    """

    numbers: tuple[int, ...]
    max_sum: int | None
    shots: int
    digits: Literal["single", "last"]
    template: str | None
    seed: int

    @property
    def name(self) -> str:
        """As `parse` reads it."""
        return "addition"

    def form(self, model: Model) -> str:
        """The shots and the template, with {a} and {b} for the operands."""
        template = self._template(model)
        return self._header(template) + template

    def asked(self) -> list[tuple[int, int]]:
        """The (a, b) that are asked, b fastest: all that `max_sum` allows but the shots.

        A shot is asked in neither order, since its answer can be copied.
        """
        shown = {frozenset(shot) for shot in self._shown()}
        return [pair for pair in self._sums() if frozenset(pair) not in shown]

    def _build(self, model: Model) -> tuple[Prompts, ...]:
        encoder = Encoder(model.tokenizer, model.name)
        text = self._template(model)
        template, header = Template.parse(text), self._header(text)
        asked = self.asked()
        filled = [template.fill(a, b, header) for a, b in asked]
        encoded = encoder([prompt.text for prompt in filled])
        reader = NumberReader(encoder, self.digits)
        positions = [
            reader.operands(prompt, tokens, pair)
            for prompt, tokens, pair in zip(filled, encoded, asked, strict=True)
        ]
        sums = [a + b for a, b in asked]
        followed = encoder(
            [prompt.text + str(total) for prompt, total in zip(filled, sums, strict=True)]
        )
        answers = [
            reader.answer(prompt, tokens, total)
            for prompt, tokens, total in zip(encoded, followed, sums, strict=True)
        ]
        reader.check()
        return group_by_length(
            token_ids=[tokens.ids for tokens in encoded],
            positions={
                name: [found[column] for found in positions]
                for column, name in enumerate(("a", "op", "b"))
            },
            answers=answers,
            variables={"a": [a for a, _ in asked], "b": [b for _, b in asked], "answer": sums},
            texts=[prompt.text for prompt in filled],
        )

    def _spelling(self, model: Model) -> Callable[[int], int | None]:
        # The first piece of a longer number says nothing about its size.
        if self.digits == "last":
            return lambda token_id: None
        encoder = Encoder(model.tokenizer, model.name)

        def spelled(token_id: int) -> int | None:
            text = encoder.text_of(token_id).strip()
            # "007" is not how an answer is written.
            return int(text) if re.fullmatch("-?[1-9][0-9]*|0", text) else None

        return spelled

    def _template(self, model: Model) -> str:
        if self.template is not None:
            return self.template
        return BARE if self.shots else addition_template(model)

    def _header(self, template: str) -> str:
        parsed = Template.parse(template)
        return "".join(f"{parsed.fill(a, b).text}{a + b}\n" for a, b in self._shown())

    def _sums(self) -> list[tuple[int, int]]:
        return [
            (a, b)
            for a in self.numbers
            for b in self.numbers
            if self.max_sum is None or a + b <= self.max_sum
        ]

    def _shown(self) -> list[tuple[int, int]]:
        """The shots: the same for all prompts, so that a pair differs in its operands only."""
        if not self.shots:
            return []
        generator = np.random.default_rng(np.random.SeedSequence(self.seed))
        sums = self._sums()
        shown: dict[frozenset[int], tuple[int, int]] = {}
        for row in generator.permutation(len(sums)).tolist():
            shown.setdefault(frozenset(sums[row]), sums[row])
            if len(shown) == self.shots:
                break
        return list(shown.values())


@dataclass(frozen=True)
class ModularAddition(Task):
    """(a + b) mod p over all ordered pairs, as token ids `a b =`; made by `modular_addition`.

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
        return f"tokens {{a}} {{b}} {self.p}"

    def _build(self, model: Model) -> tuple[Prompts, ...]:
        spec = model.spec
        if model.tokenizer is not None:
            raise MechnumError(
                f"{self.name} gives token ids to nets without a tokenizer, but {model.name} has "
                "one: use addition, or pairs_from_tokens with token ids of your own"
            )
        if spec.d_vocab <= self.p or spec.d_vocab_out < self.p or spec.n_ctx < 3:
            raise MechnumError(
                f"{self.name} needs {self.p + 1} input tokens (numbers and '='), {self.p} output "
                f"tokens and 3 positions, but {model.name} has {spec.d_vocab}, "
                f"{spec.d_vocab_out} and {spec.n_ctx}: use the p that it was trained on"
            )
        trained_on = model.default_task
        if trained_on not in (None, self.name):
            raise MechnumError(
                f"{model.name} was trained on {trained_on}, where token {self.p} does not stand "
                f"for '=': use that task instead of {self.name}"
            )
        asked = [(a, b) for a in range(self.p) for b in range(self.p)]
        answers = [(a + b) % self.p for a, b in asked]
        return group_by_length(
            token_ids=[(a, b, self.p) for a, b in asked],
            positions={"a": [0] * len(asked), "b": [1] * len(asked)},
            answers=answers,
            variables={"a": [a for a, _ in asked], "b": [b for _, b in asked], "answer": answers},
            texts=[f"{a} {b} =" for a, b in asked],
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
    if digits not in ("single", "last"):
        raise MechnumError(f"digits={digits!r} is not known: use 'single' or 'last'")
    if template is not None:
        Template.parse(template)
    for name, value in (("shots", shots), ("seed", seed)):
        if check_integer(value) < 0:
            raise MechnumError(f"{name}={value} is negative: give 0 or more")
    task = Addition(
        numbers=check_numbers(numbers),
        max_sum=None if max_sum is None else check_integer(max_sum),
        shots=check_integer(shots),
        digits=digits,
        template=template,
        seed=check_integer(seed),
    )
    if max_sum is not None and 2 * min(task.numbers) > max_sum:
        raise MechnumError(
            f"no sum of the numbers is {max_sum} or less: the smallest is "
            f"{2 * min(task.numbers)}, raise max_sum"
        )
    if not task.asked():
        raise MechnumError(
            f"{shots} shots leave no sum to ask (a shot is not asked itself): use fewer shots or "
            "more numbers"
        )
    return task


def modular_addition(p: int) -> ModularAddition:
    """(a + b) mod p as the tokens `a b p`, where p stands for `=` (Nanda et al. 2023).

    Raises:
        MechnumError: p is not an integer of 2 or more.
    """
    if check_integer(p) < 2:
        raise MechnumError(f"p={p} is not a modulus: give an integer of 2 or more")
    return ModularAddition(check_integer(p))


def parse(text: str) -> Task:
    """The task called `addition` or `modular_addition:113`.

    Raises:
        MechnumError: there is no such task.
    """
    if text == "addition":
        return addition()
    if match := re.fullmatch(r"modular_addition:(\d+)", text):
        return modular_addition(int(match[1]))
    raise MechnumError(
        f"there is no task {text!r}: use addition, or modular_addition:113 (any modulus)"
    )
