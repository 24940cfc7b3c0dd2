"""Learning answers: a finite set of prompts, of which a part is held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mechnum.errors import MechnumError
from mechnum.training.examples import SplitWords
from mechnum.training.log import PromptScore
from mechnum.training.streams import Stream, stream

if TYPE_CHECKING:
    from mechnum.training.data import Dataset, Split
    from mechnum.training.recipe import Recipe


@dataclass(frozen=True, eq=False)
class PromptExamples:
    """Prompts of `data`; the loss is that of the answer after the last position."""

    data: Dataset
    parts: Split
    recipe: Recipe

    def __post_init__(self) -> None:
        """Refuse batches that are larger than the training part.

        Raises:
            MechnumError: they are.
        """
        size, n_train = self.recipe.batch_size, len(self.parts.train)
        if size is not None and size > n_train:
            raise MechnumError(
                f"a batch of {size} is more than the {n_train} training prompts: make batch_size "
                "smaller"
            )

    def loss(self, net: nn.Module, step: int) -> Tensor:
        """Of this step's prompts, which are drawn without repeats."""
        return loss_and_accuracy(net, self.data, self._batch(step))[0]

    def score(self, net: nn.Module, step: int, seconds: float) -> PromptScore:
        """Loss and accuracy on both parts."""
        train_loss, train_accuracy = loss_and_accuracy(net, self.data, self.parts.train)
        heldout_loss, heldout_accuracy = loss_and_accuracy(net, self.data, self.parts.heldout)
        return PromptScore(
            step, seconds, heldout_loss.item(), train_loss.item(), train_accuracy, heldout_accuracy
        )

    def words(self) -> SplitWords:
        """How the prompts were divided."""
        return SplitWords(
            drawn=f"{self.recipe.train_fraction:.0%} of the {self.data.group_name} are trained on, "
            f"drawn by NumPy's default generator from SeedSequence({self.recipe.seed}).",
            train=len(self.parts.train),
            heldout=len(self.parts.heldout),
        )

    def _batch(self, step: int) -> Int[Tensor, " row"]:
        size = self.recipe.batch_size
        if size is None:
            return self.parts.train
        generator = np.random.default_rng(stream(self.recipe.seed, Stream.BATCH, step))
        chosen = generator.choice(len(self.parts.train), size=size, replace=False)
        return self.parts.train[torch.from_numpy(chosen)]


def loss_and_accuracy(
    net: nn.Module, data: Dataset, rows: Int[Tensor, " row"]
) -> tuple[Tensor, float]:
    """Cross-entropy (nats, in float64: grokked losses are below float32's steps) and accuracy."""
    output = net(data.tokens[rows])
    logits = (output if isinstance(output, Tensor) else output.logits)[:, -1].double()
    answers = data.answers[rows]
    accuracy = (logits.argmax(-1) == answers).double().mean().item()
    return cross_entropy(logits, answers), accuracy
