"""What a model answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.progress import track

if TYPE_CHECKING:
    from mechnum.models.model import Model
    from mechnum.tasks.prompts import Prompts

# A batch's logits take 128 MB at most, and its prompts are few enough for the progress to move.
_BATCH_LOGITS = 2**25
_BATCH_PROMPTS = 512


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The model's most likely next token for each prompt, all of a task's in the task's order.

    Attributes:
        predicted: token id with the highest logit.
        answers: token id of the right answer.
        predicted_numbers: the number that the predicted token spells; NaN where it spells none,
            and everywhere where answers are read by their first piece only (digits="last").
        errors: `predicted_numbers` minus the right answer.
        variables: the integers behind the prompts ("a", "b", "answer").
        texts: the prompts.
    """

    predicted: Int[Tensor, " prompt"]
    answers: Int[Tensor, " prompt"]
    predicted_numbers: Float64[Tensor, " prompt"]
    errors: Float64[Tensor, " prompt"]
    variables: Mapping[str, Int[Tensor, " prompt"]]
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.predicted)

    def __repr__(self) -> str:
        return f"Accuracy({int(self.correct.sum())} of {len(self)} prompts, {self.share:.2%})"

    @property
    def correct(self) -> Bool[Tensor, " prompt"]:
        """Whether the predicted token is the right one."""
        return self.predicted == self.answers

    @property
    def share(self) -> float:
        """Share of correct prompts, 0 to 1."""
        return float(self.correct.double().mean())

    def select(self, rows: Int[Tensor, " row"]) -> Accuracy:
        """Some of the prompts, in this order."""
        return Accuracy(
            predicted=self.predicted[rows],
            answers=self.answers[rows],
            predicted_numbers=self.predicted_numbers[rows],
            errors=self.errors[rows],
            variables={name: values[rows] for name, values in self.variables.items()},
            texts=tuple(self.texts[row] for row in rows.tolist()),
        )

    def error_counts(self) -> dict[int, int]:
        """Error (predicted minus right number) → how many wrong prompts have it, by error.

        Kantamneni & Tegmark 2025, section on errors, count −10 and +10 most often in GPT-J.
        Wrong answers that are no number are not in it.
        """
        wrong = self.errors[~self.correct]
        counts = Counter(int(error) for error in wrong[~wrong.isnan()].tolist())
        return dict(sorted(counts.items()))


def measure(
    model: Model,
    groups: Sequence[Prompts],
    number_of: Callable[[int], int | None],
) -> Accuracy:
    """Runs every prompt.

    Args:
        number_of: the number that a token id spells, or None.

    Raises:
        MechnumError: the model's logits are not numbers.
    """
    predicted = []
    size = max(1, min(_BATCH_PROMPTS, _BATCH_LOGITS // model.spec.d_vocab_out))
    batches = [(group, start) for group in groups for start in range(0, len(group), size)]
    for group, start in track(batches, "running all prompts"):
        logits = model.logits(group.tokens[start : start + size])
        check_logits(model, logits)
        predicted.append(logits.argmax(dim=-1).cpu())
    order = torch.cat([group.index for group in groups]).argsort()
    return judged(groups, torch.cat(predicted), number_of).select(order)


def check_logits(model: Model, logits: Float[Tensor, "..."]) -> None:
    """Refuses logits, or what was computed from them, that are not numbers.

    Raises:
        MechnumError: one is NaN.
    """
    if bool(logits.isnan().any()):
        raise MechnumError(
            f"{model.name} gives logits that are not numbers: check its weights, or load it with "
            "dtype='float32'"
        )


def judged(
    groups: Sequence[Prompts],
    predicted: Int[Tensor, " prompt"],
    number_of: Callable[[int], int | None],
) -> Accuracy:
    """What the predicted tokens are as answers to the prompts, both group after group."""
    ids, inverse = predicted.unique(return_inverse=True)
    spelled = [number_of(token_id) for token_id in ids.tolist()]
    numbers = torch.tensor(
        [float("nan") if number is None else float(number) for number in spelled],
        dtype=torch.float64,
    )[inverse]
    variables = {
        name: torch.cat([group.variables[name] for group in groups]) for name in groups[0].variables
    }
    return Accuracy(
        predicted=predicted,
        answers=torch.cat([group.answers for group in groups]),
        predicted_numbers=numbers,
        errors=numbers - variables["answer"],
        variables=variables,
        texts=tuple(text for group in groups for text in group.texts),
    )
