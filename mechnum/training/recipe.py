"""What a training run is: a frozen description from which anyone repeats it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from mechnum.errors import MechnumError

if TYPE_CHECKING:
    from mechnum.training.examples import Data
    from mechnum.training.nets import Architecture

# Fields that say something about the model, and nothing about how its weights come about.
_ASIDE = frozenset({"about", "good_for", "not_for", "template", "snapshot_every"})


@dataclass(frozen=True)
class Recipe:
    """One reproducible training run.

    Attributes:
        name: the bundled model's name.
        about: one sentence for the model card.
        good_for, not_for: what to use the model for and what not, for the model card.
        task: what it is trained on, as `mechnum.tasks.parse` or, of a process,
            `mechnum.tasks.processes.find_process` reads it.
        template: the prompt as text with {a} and {b}; None for a net without a tokenizer.
        data: makes what is learned from: all prompts and answers, or strings of a process.
        net: the architecture and its initial weights.
        train_fraction: share of the groups of `data` that is trained on; None for a process, which
            gives new strings at each step.
        seed: of the weights, the split and the batches.
        steps: optimiser steps.
        batch_size: prompts or strings a step; None takes the whole training set.
        warmup_steps: steps over which the learning rate rises linearly.
        schedule: what the learning rate does besides: nothing, or falling to 0 along a cosine.
        checkpoint_every: steps between two saved states and two lines of the log.
        snapshot_every: steps between two copies of the net that stay in the run's folder, from the
            untrained one on; a multiple of checkpoint_every. None keeps none.
    """

    name: str
    about: str
    good_for: str
    not_for: str
    task: str
    template: str | None
    data: Callable[[], Data]
    net: Architecture
    train_fraction: float | None
    seed: int
    steps: int
    batch_size: int | None
    learning_rate: float
    weight_decay: float
    betas: tuple[float, float] = (0.9, 0.98)
    warmup_steps: int = 10
    schedule: Literal["constant", "cosine"] = "constant"
    checkpoint_every: int = 100
    snapshot_every: int | None = None

    def __post_init__(self) -> None:
        """Refuse snapshots between two saved states.

        Raises:
            MechnumError: there are some.
        """
        if self.snapshot_every is not None and self.snapshot_every % self.checkpoint_every:
            raise MechnumError(
                f"snapshot_every={self.snapshot_every} is no multiple of "
                f"checkpoint_every={self.checkpoint_every}: make it one"
            )

    def settings(self) -> dict[str, Any]:
        """All that decides the trained weights, as JSON, and the same in each process."""
        return {
            field.name: _as_json(getattr(self, field.name))
            for field in fields(self)
            if field.name not in _ASIDE
        }


def _as_json(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, tuple):
        return [_as_json(v) for v in value]
    return _in_words(value)


def _in_words(value: Any) -> str:
    """`repr`, but without the memory address that a function has in it."""
    if isinstance(value, partial):
        arguments = [_in_words(v) for v in value.args]
        arguments += [f"{name}={_in_words(v)}" for name, v in value.keywords.items()]
        return f"{_in_words(value.func)}({', '.join(arguments)})"
    return getattr(value, "__qualname__", None) or repr(value)
