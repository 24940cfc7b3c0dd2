"""What is put where, and how the outcome is scored: the choices that all measurements share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.patching.batches import Direction
from mechnum.patching.metrics import MetricName
from mechnum.patching.provenance import attributes
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.numbers import check_integer
from mechnum.tasks.pairs import Pairs

_CHOICES: dict[str, Any] = {
    "metric": MetricName,
    "direction": Direction,
    "values": ValueName,
    "mean_over": MeanOver,
}


@dataclass(frozen=True)
class Intervention:
    """The arguments of these names of `mechnum.effects`.

    Raises:
        MechnumError: on a metric, direction, values or means that are not known, and on a seed
            that is none.
    """

    position: str | int
    metric: MetricName
    direction: Direction
    values: ValueName
    mean_over: MeanOver
    seed: int

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if (value := getattr(self, name)) not in get_args(known):
                raise MechnumError(
                    f"unknown {name} {value!r}: use one of {', '.join(get_args(known))}"
                )
        if check_integer(self.seed) < 0:
            raise MechnumError(f"seed={self.seed} is negative: give 0 or more")

    def said(self, model: Model, pairs: Pairs) -> dict[str, str | int | float]:
        """Where a result comes from, as its attributes.

        Raises:
            MechnumError: on what is no wrapped model and no pairs.
        """
        if not isinstance(model, Model):
            raise MechnumError(f"a {type(model).__name__} is not wrapped: use mechnum.wrap first")
        if not isinstance(pairs, Pairs):
            raise MechnumError(
                f"a {type(pairs).__name__} is no pairs: make them with task.pairs or "
                "mechnum.tasks.pairs_from_tokens"
            )
        said = attributes(model, pairs, self.metric) | {
            "position": str(self.position),
            "direction": self.direction,
            "values": self.values,
        }
        if self.values == "mean":
            said["mean_over"] = self.mean_over
        if self.values == "resample":
            said["resample_seed"] = self.seed
        return said
