"""Training sets: token rows, answers, and the split that is written down beside the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.training.prompts import PromptExamples

if TYPE_CHECKING:
    from mechnum.training.recipe import Recipe


@dataclass(frozen=True)
class Dataset:
    """All prompts of a task as token ids.

    Attributes:
        tokens: one prompt a row.
        answers: token id that follows the last position.
        group: rows of one group stay on the same side of a split, so that `3+5=`
            in training does not give `5+3=` away.
        group_name: what a group is, in the plural, for the model card.
    """

    tokens: Int[Tensor, "prompt pos"]
    answers: Int[Tensor, " prompt"]
    group: Int[Tensor, " prompt"]
    group_name: str

    def examples(self, recipe: Recipe) -> PromptExamples:
        """What the run of `recipe` learns from: a part of the prompts, drawn by its seed.

        Raises:
            MechnumError: where a part would be empty, or a batch larger than the training part.
        """
        if recipe.train_fraction is None:
            raise MechnumError(
                f"{recipe.name} does not say how many prompts to train on: give train_fraction"
            )
        return PromptExamples(self, split(self, recipe.train_fraction, recipe.seed), recipe)


class Split(NamedTuple):
    """Row indices of the two parts of a dataset."""

    train: Int[Tensor, " train"]
    heldout: Int[Tensor, " heldout"]


def modular_addition(p: int, equals: bool = True) -> Dataset:
    """`a b =` → (a + b) mod p over all p² pairs; the `=` token has id p (Nanda et al. 2023).

    Args:
        equals: False leaves the `=` out (Zhong et al. 2023).
    """
    a, b = _operand_grid(p)
    columns = [a, b, torch.full_like(a, p)] if equals else [a, b]
    tokens = torch.stack(columns, dim=1)
    # Both papers split ordered pairs, and so do these nets that are compared with theirs.
    return Dataset(tokens, (a + b) % p, torch.arange(len(a)), "ordered pairs (a, b)")


def addition(size: int, plus: int, equals: int) -> Dataset:
    """`a + b =` → a + b for 0 ≤ a, b < size, where number n has token id n."""
    a, b = _operand_grid(size)
    tokens = torch.stack([a, torch.full_like(a, plus), b, torch.full_like(a, equals)], dim=1)
    unordered = torch.minimum(a, b) * size + torch.maximum(a, b)
    return Dataset(tokens, a + b, unordered, "unordered pairs {a, b}")


def split(data: Dataset, train_fraction: float, seed: int) -> Split:
    """Draw the training and the held-out part, whole groups on one side.

    Raises:
        MechnumError: where one of the parts would be empty.
    """
    groups = torch.unique(data.group)
    n_train = round(train_fraction * len(groups))
    if not 0 < n_train < len(groups):
        raise MechnumError(
            f"{train_fraction:g} of {len(groups)} {data.group_name} leaves nothing to train on "
            "or nothing to hold out: choose a share between 0 and 1"
        )
    generator = np.random.default_rng(np.random.SeedSequence(seed))
    shuffled = groups[torch.from_numpy(generator.permutation(len(groups)))]
    in_train = torch.isin(data.group, shuffled[:n_train])
    return Split(in_train.nonzero().flatten(), (~in_train).nonzero().flatten())


def _operand_grid(size: int) -> tuple[Int[Tensor, " pair"], Int[Tensor, " pair"]]:
    numbers = torch.arange(size)
    return numbers.repeat_interleave(size), numbers.repeat(size)
