"""What every task can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.progress import working
from mechnum.tasks.accuracy import Accuracy, judged, measure
from mechnum.tasks.pairs import Pairs, TooFewPairs, draw_pairs
from mechnum.tasks.prompts import Prompts, check_fits

if TYPE_CHECKING:
    from mechnum.models.model import Model

# The operand that differs between the prompts of a pair.
Operand = Literal["a", "b", "any"]


class Task(ABC):
    """Prompts with right answers; the subclasses are frozen dataclasses."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The task in a word, for results and messages."""

    @abstractmethod
    def form(self, model: Model) -> str:
        """The prompt that this model gets, with {a} and {b} for the operands."""

    @abstractmethod
    def _build(self, model: Model) -> tuple[Prompts, ...]:
        """The prompts, before they are checked against the model's limits."""

    @abstractmethod
    def _spelling(self, model: Model) -> Callable[[int], int | None]:
        """Answer token → the number that it spells, or None."""

    def prompts(self, model: Model) -> tuple[Prompts, ...]:
        """All prompts of the task, grouped by token count, shortest first.

        Raises:
            MechnumError: the model or its tokenizer cannot do the task.
        """
        with working("finding the numbers among the tokens"):
            groups = self._build(model)
        for group in groups:
            check_fits(model, group)
        return groups

    def accuracy(self, model: Model) -> Accuracy:
        """Runs all prompts, in batches.

        Raises:
            MechnumError: the model cannot do the task, or its logits are not numbers.
        """
        return measure(model, self.prompts(model), self._spelling(model))

    def judged(
        self, model: Model, prompts: Sequence[Prompts], predicted: Int[Tensor, " prompt"]
    ) -> Accuracy:
        """What tokens are as answers to some of the task's prompts, both group after group.

        Args:
            predicted: token id that was said after each prompt, by whatever run.
        """
        return judged(prompts, predicted, self._spelling(model))

    def pairs(
        self,
        model: Model,
        n: int,
        vary: Operand = "any",
        seed: int = 0,
        correct_only: bool = True,
        accuracy: Accuracy | None = None,
    ) -> Pairs:
        """Draws `n` different pairs of a clean and a corrupt prompt.

        Both have the same token count and the same positions, and their answers differ already
        in the first token. All pairs that fit are equally likely (Kantamneni & Tegmark 2025 draw
        from the pairs of 500 correct prompts; there is no such limit here).

        Args:
            vary: the operand that differs: "a" keeps b, "b" keeps a, "any" keeps none.
            correct_only: use only prompts that the model answers correctly; runs all prompts.
            accuracy: what `accuracy(model)` gave, so that it is not measured again.

        Raises:
            TooFewPairs: fewer than `n` pairs exist; the message says how many and why.
        """
        if accuracy is not None and not correct_only:
            raise MechnumError(
                "an accuracy is given but correct_only is False, so that it would be ignored: "
                "leave one of the two out"
            )
        groups = self.prompts(model)
        if correct_only and accuracy is None:
            accuracy = measure(model, groups, self._spelling(model))
        if accuracy is not None and len(accuracy) != sum(map(len, groups)):
            raise MechnumError(
                f"the accuracy given is of {len(accuracy)} prompts, but {self.name} has "
                f"{sum(map(len, groups))}: give the one of this very task and model"
            )
        return draw_pairs(groups, n, vary, seed, accuracy, self.name)

    def pairs_at_most(
        self,
        model: Model,
        n: int,
        vary: Operand = "any",
        seed: int = 0,
        correct_only: bool = True,
        accuracy: Accuracy | None = None,
    ) -> Pairs:
        """`pairs`, or all that exist where these are fewer than `n`.

        Raises:
            TooFewPairs: there is none.
        """
        if correct_only and accuracy is None:
            accuracy = self.accuracy(model)
        try:
            return self.pairs(model, n, vary, seed, correct_only, accuracy)
        except TooFewPairs as few:
            if few.available == 0:
                raise
            return self.pairs(model, few.available, vary, seed, correct_only, accuracy)
