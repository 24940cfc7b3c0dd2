"""What a model answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float64, Int
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
    """The model's most likely next token for each prompt, in the task's order.

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
    total = sum(len(group) for group in groups)
    predicted = torch.empty(total, dtype=torch.long)
    answers = torch.empty(total, dtype=torch.long)
    names = list(groups[0].variables)
    variables = {name: torch.empty(total, dtype=torch.long) for name in names}
    texts = [""] * total
    size = max(1, min(_BATCH_PROMPTS, _BATCH_LOGITS // model.spec.d_vocab_out))
    batches = [(group, start) for group in groups for start in range(0, len(group), size)]
    for group, start in track(batches, "running all prompts"):
        rows = slice(start, start + size)
        logits = model.logits(group.tokens[rows])
        if bool(logits.isnan().any()):
            raise MechnumError(
                f"{model.name} gives logits that are not numbers: check its weights, or load "
                "it with dtype='float32'"
            )
        predicted[group.index[rows]] = logits.argmax(dim=-1).cpu()
    for group in groups:
        answers[group.index] = group.answers
        for name in names:
            variables[name][group.index] = group.variables[name]
        for row, text in zip(group.index.tolist(), group.texts, strict=True):
            texts[row] = text
    ids, inverse = predicted.unique(return_inverse=True)
    spelled = [number_of(token_id) for token_id in ids.tolist()]
    numbers = torch.tensor(
        [float("nan") if number is None else float(number) for number in spelled],
        dtype=torch.float64,
    )[inverse]
    return Accuracy(
        predicted=predicted,
        answers=answers,
        predicted_numbers=numbers,
        errors=numbers - variables["answer"],
        variables=variables,
        texts=tuple(texts),
    )
