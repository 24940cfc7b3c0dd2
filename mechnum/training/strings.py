"""Learning to predict a hidden Markov process: new strings at each step, loss at all positions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mechnum.errors import MechnumError
from mechnum.tasks.processes import Process, find_process, myopic_entropy
from mechnum.training.examples import SplitWords
from mechnum.training.log import ProcessScore
from mechnum.training.streams import Stream, stream

if TYPE_CHECKING:
    from mechnum.training.recipe import Recipe

HELD_OUT = 1000
"""Strings on which a net is scored."""


@dataclass(frozen=True, eq=False)
class ProcessStrings:
    """Strings of a process, of `n_ctx` tokens that a net reads and one more to predict."""

    process: Process
    n_ctx: int

    def examples(self, recipe: Recipe) -> StringExamples:
        """What the run of `recipe` learns from.

        Raises:
            MechnumError: without a batch size, since there is no whole set to take, and on a share
                to train on.
        """
        if recipe.batch_size is None or recipe.train_fraction is not None:
            raise MechnumError(
                f"{self.process.name} has no end of strings, and so no share of them to train on: "
                "give batch_size, and train_fraction=None"
            )
        return StringExamples(self.process, self.n_ctx, recipe, recipe.batch_size)


def process_strings(name: str, n_ctx: int) -> ProcessStrings:
    """Strings of the process that `mechnum.tasks.processes.find_process` finds by this name."""
    return ProcessStrings(find_process(name), n_ctx)


@dataclass(frozen=True, eq=False)
class StringExamples:
    """A run's strings.

    Attributes:
        bound: the least loss, nats: the entropy of the next token given all before it, mean over
            the positions that are predicted.
    """

    process: Process
    n_ctx: int
    recipe: Recipe
    batch_size: int
    bound: float = field(init=False)
    held_out: Tensor = field(init=False)
    following: Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Draw what is held out, with the exact distributions of the tokens that follow."""
        entropy = myopic_entropy(self.process, self.n_ctx + 1)["entropy"].values
        drawn = stream(self.recipe.seed, Stream.HELD_OUT)
        strings = self.process.sample(HELD_OUT, self.n_ctx, drawn)
        following = self.process.next_token(self.process.beliefs(strings)[:, 1:])
        object.__setattr__(self, "bound", float(entropy[1:].mean()))
        object.__setattr__(self, "held_out", torch.from_numpy(strings))
        object.__setattr__(self, "following", torch.from_numpy(following))

    def loss(self, net: nn.Module, step: int) -> Tensor:
        """Cross-entropy of each next token of this step's strings."""
        drawn = stream(self.recipe.seed, Stream.BATCH, step)
        strings = torch.from_numpy(self.process.sample(self.batch_size, self.n_ctx + 1, drawn))
        return cross_entropy(_logits(net, strings[:, :-1]).flatten(0, 1), strings[:, 1:].flatten())

    def score(self, net: nn.Module, step: int, seconds: float) -> ProcessScore:
        """The bound plus what the net's predictions miss.

        That is the mean divergence from the exact distributions after histories that are held out:
        in expectation the cross-entropy of tokens, without the noise of drawing them.
        """
        predicted = _logits(net, self.held_out).double().log_softmax(-1)
        gap = torch.xlogy(self.following, self.following) - self.following * predicted
        missed = gap.sum(-1).mean().item()
        return ProcessScore(step, seconds, self.bound + missed, self.bound)

    def words(self) -> SplitWords:
        """How the strings were drawn."""
        return SplitWords(
            drawn=f"Each step draws {self.batch_size} new strings of {self.n_ctx + 1} tokens of "
            f"`{self.process.name}`, and learns from all positions. The held-out ones are drawn "
            f"in the same way (NumPy's default generator, SeedSequence({self.recipe.seed}) with "
            f"spawn keys ({int(Stream.BATCH)}, step) and ({int(Stream.HELD_OUT)},)), and scored "
            "against the exact distributions of the next token.",
            train=self.recipe.steps * self.batch_size,
            heldout=HELD_OUT,
            of="strings",
        )


def _logits(net: nn.Module, tokens: Tensor) -> Tensor:
    output = net(tokens)
    return output if isinstance(output, Tensor) else output.logits
