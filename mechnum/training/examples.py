"""What a run learns from, whatever it is: the loss of each step, and the scores in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor, nn

    from mechnum.training.log import Score
    from mechnum.training.recipe import Recipe


@dataclass(frozen=True)
class SplitWords:
    """How what is trained on and what is held out were drawn.

    Attributes:
        drawn: in words, enough to draw it again.
        train, heldout: how many.
        of: what is counted, in the plural.
    """

    drawn: str
    train: int
    heldout: int
    of: str = "prompts"


@runtime_checkable
class Examples(Protocol):
    """What one run learns from; all that is drawn depends on its seed alone."""

    def loss(self, net: nn.Module, step: int) -> Tensor:
        """Of the batch of this step, for its gradient."""
        ...

    def score(self, net: nn.Module, step: int, seconds: float) -> Score:
        """Of `net` after `step` steps."""
        ...

    def words(self) -> SplitWords:
        """For the model card."""
        ...


@runtime_checkable
class Data(Protocol):
    """What can be learned from."""

    def examples(self, recipe: Recipe) -> Examples:
        """What the run of `recipe` learns from.

        Raises:
            MechnumError: where the recipe asks for what these data do not have.
        """
        ...
