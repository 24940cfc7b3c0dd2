"""Tasks that ask in words: the prompts of one template, with the answers that follow them."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_lowercase
from typing import TYPE_CHECKING, Literal

import numpy as np

from mechnum.errors import MechnumError
from mechnum.tasks.encoding import Encoder
from mechnum.tasks.numbers import check_integer
from mechnum.tasks.prompts import Prompts, group_by_length
from mechnum.tasks.reading import NumberReader
from mechnum.tasks.task import Task
from mechnum.tasks.templates import Template

if TYPE_CHECKING:
    from mechnum.models.model import Model


@dataclass(frozen=True)
class WordedTask(Task):
    """Questions about numbers as text; the subclasses say which, and what is right.

    Attributes:
        numbers: what the operands are taken from.
        shots: how many solved questions stand before each prompt.
        digits: "single" or "last", see `mechnum.tasks.addition`.
        template: the prompt with its operands in braces, or None for the one that suits the model.
        seed: draws the shots.

    Raises:
        MechnumError: negative shots or seed, unknown digits, or a template in which the numbers
            run into other text.
    """

    numbers: tuple[int, ...]
    shots: int
    digits: Literal["single", "last"]
    template: str | None
    seed: int

    def __post_init__(self) -> None:
        names = tuple(ascii_lowercase[: len(self.operands)])
        if self.operands != names:
            raise MechnumError(
                f"{type(self).__name__} calls its operands {', '.join(self.operands)}: call them "
                f"{', '.join(names)}, as analyses do"
            )
        if self.digits not in ("single", "last"):
            raise MechnumError(f"digits={self.digits!r} is not known: use 'single' or 'last'")
        if self.template is not None:
            Template.parse(self.template, self.operands)
        for name in ("shots", "seed"):
            if check_integer(value := getattr(self, name)) < 0:
                raise MechnumError(f"{name}={value} is negative: give 0 or more")

    @property
    @abstractmethod
    def operands(self) -> tuple[str, ...]:
        """Names of the operands, in the prompt's order: a, b, c, ..."""

    @abstractmethod
    def answer(self, numbers: tuple[int, ...]) -> int:
        """The right answer for these operands."""

    @abstractmethod
    def questions(self) -> list[tuple[int, ...]]:
        """The operands of every question, shots included."""

    @abstractmethod
    def words(self, model: Model | None) -> str:
        """The template that suits a model, or the bare one."""

    def form(self, model: Model) -> str:
        """The shots and the template, with the operands in braces."""
        template = self._template(model)
        return self._header(template) + template

    def asked(self) -> list[tuple[int, ...]]:
        """The operands that are asked: all but the shots.

        A shot is asked in no order of its operands, since its answer can be copied.
        """
        shown = {frozenset(shot) for shot in self._shown()}
        return [numbers for numbers in self.questions() if frozenset(numbers) not in shown]

    def check_asks(self) -> None:
        """Refuses a task without questions.

        Raises:
            MechnumError: the shots leave nothing to ask.
        """
        if not self.asked():
            raise MechnumError(
                f"{self.shots} shots leave nothing to ask (a shot is not asked itself): use fewer "
                "shots or more numbers"
            )

    def _build(self, model: Model) -> tuple[Prompts, ...]:
        encoder = Encoder(model.tokenizer, model.name)
        text = self._template(model)
        template, header = Template.parse(text, self.operands), self._header(text)
        asked = self.asked()
        filled = [template.fill(numbers, header) for numbers in asked]
        encoded = encoder([prompt.text for prompt in filled])
        reader = NumberReader(encoder, self.digits)
        positions = [
            reader.operands(prompt, tokens, dict(zip(self.operands, numbers, strict=True)))
            for prompt, tokens, numbers in zip(filled, encoded, asked, strict=True)
        ]
        right = [self.answer(numbers) for numbers in asked]
        followed = encoder(
            [prompt.text + str(answer) for prompt, answer in zip(filled, right, strict=True)]
        )
        answers = [
            reader.answer(prompt, tokens, answer)
            for prompt, tokens, answer in zip(encoded, followed, right, strict=True)
        ]
        reader.check()
        columns = zip(self.operands, zip(*asked, strict=True), strict=True)
        return group_by_length(
            token_ids=[tokens.ids for tokens in encoded],
            positions={name: [found[name] for found in positions] for name in positions[0]},
            answers=answers,
            variables={**{name: list(column) for name, column in columns}, "answer": right},
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
        return self.words(None if self.shots else model)

    def _header(self, template: str) -> str:
        parsed = Template.parse(template, self.operands)
        return "".join(
            f"{parsed.fill(numbers).text}{self.answer(numbers)}\n" for numbers in self._shown()
        )

    def _shown(self) -> list[tuple[int, ...]]:
        """The shots: the same for all prompts, so that a pair differs in its operands only."""
        if not self.shots:
            return []
        generator = np.random.default_rng(np.random.SeedSequence(self.seed))
        questions = self.questions()
        shown: dict[frozenset[int], tuple[int, ...]] = {}
        for row in generator.permutation(len(questions)).tolist():
            shown.setdefault(frozenset(questions[row]), questions[row])
            if len(shown) == self.shots:
                break
        return list(shown.values())
