"""Where the values come from that a patch puts in: another prompt, zero, a mean, any prompt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.models.decoder import Decoder, StateName
from mechnum.models.run import Run

ValueName = Literal["other", "zero", "mean", "resample"]
# Over which tokens the mean of an ablation is taken.
MeanOver = Literal["position", "token", "prompt"]
# States that hold the position of their token.
_ROTATED: tuple[StateName, ...] = ("q", "k")


class Values(ABC):
    """What a patch puts in."""

    @abstractmethod
    def at(self, name: StateName, layer: int) -> Float[Tensor, "pair pos ..."]:
        """The state as `kept` gives it, in the precision of the model."""

    @abstractmethod
    def from_position(self, start: int) -> Values:
        """The same values from a later position on."""


def kept(run: Run, name: StateName, layer: int) -> Float[Tensor, "pair pos ..."]:
    """A state at the kept positions alone, with the position as second axis.

    [pair, pos, d_model], [pair, pos, part, d_head], [pair, pos, head, key] or [pair, pos, d_mlp].
    """
    state = run[name, layer]
    if name == "pattern":
        return state.transpose(1, 2)
    return state[:, run.start :] if name in ("k", "v") else state


@dataclass(frozen=True)
class RunValues(Values):
    """The values of another run: the other prompt of the pair, or one drawn at random."""

    run: Run

    def at(self, name: StateName, layer: int) -> Float[Tensor, "pair pos ..."]:
        """The other run's state."""
        return kept(self.run, name, layer)

    def from_position(self, start: int) -> RunValues:
        """From a later position on."""
        return RunValues(self.run.from_position(start))


@dataclass(frozen=True)
class ZeroValues(Values):
    """Zero in place of every state of `base`."""

    base: Run

    def at(self, name: StateName, layer: int) -> Float[Tensor, "pair pos ..."]:
        """Zeros."""
        return torch.zeros_like(kept(self.base, name, layer))

    def from_position(self, start: int) -> ZeroValues:
        """From a later position on."""
        return ZeroValues(self.base.from_position(start))


@dataclass(frozen=True)
class Means:
    """Means of states over prompts.

    Attributes:
        states: for each state and layer, one mean for each position counted from the end, or a
            single one for all.
        turned_by: the decoder that puts the position into the means of queries and keys; None where
            they hold it already.
    """

    states: Mapping[tuple[StateName, int], Float[Tensor, "pos ..."]]
    turned_by: Decoder | None


@dataclass(frozen=True)
class MeanValues(Values):
    """A mean in place of every state of `base`."""

    base: Run
    means: Means

    def at(self, name: StateName, layer: int) -> Float[Tensor, "pair pos ..."]:
        """The means at the positions that the base run keeps."""
        like = kept(self.base, name, layer)
        mean = self.means.states[name, layer]
        if len(mean) > 1:
            mean = mean[len(mean) - like.shape[1] :]
        everywhere = mean.to(like).expand_as(like)
        if name in _ROTATED and self.means.turned_by is not None:
            return self.means.turned_by.rotated(everywhere, self.base.start)
        return everywhere

    def from_position(self, start: int) -> MeanValues:
        """From a later position on."""
        return MeanValues(self.base.from_position(start), self.means)


class MeanOfStates:
    """Running means of states over prompts that may differ in length; nothing is padded.

    Args:
        over: "position" gives one mean for each position counted from the end; "token" one mean
            over all tokens of all prompts; "prompt" the mean of the prompts' own means.
        turned_by: given where a mean is over several positions, which turn queries and keys by
            different angles: these are then averaged without their position.
    """

    def __init__(self, over: MeanOver, turned_by: Decoder | None = None) -> None:
        self.over: MeanOver = over
        self.turned_by = turned_by
        self.sums: dict[tuple[StateName, int], Tensor] = {}
        self.counts: dict[tuple[StateName, int], Tensor] = {}

    def add(
        self,
        run: Run,
        names: Iterable[StateName],
        n_layers: int,
        n_positions: int | None = None,
    ) -> None:
        """Take the kept positions of one more run in, or the first `n_positions` of them."""
        for name in names:
            for layer in range(n_layers):
                values = kept(run, name, layer)
                # Sums of many states: float64, as far as the device has it.
                wide = values.float() if values.is_mps else values.double()
                if name in _ROTATED and self.turned_by is not None:
                    wide = self.turned_by.rotated(wide, run.start, back=True)
                self._add((name, layer), wide[:, :n_positions])

    def _add(self, key: tuple[StateName, int], values: Float[Tensor, "pair pos ..."]) -> None:
        n_prompts, length = values.shape[:2]
        if self.over == "position":
            total, count = values.sum(0), values.new_full((length,), n_prompts)
        elif self.over == "token":
            total = values.sum((0, 1)).unsqueeze(0)
            count = values.new_full((1,), n_prompts * length)
        else:
            total, count = values.mean(1).sum(0).unsqueeze(0), values.new_full((1,), n_prompts)
        if key in self.sums:
            total, count = (
                _from_the_end(self.sums[key], total),
                _from_the_end(self.counts[key], count),
            )
        self.sums[key], self.counts[key] = total, count

    def means(self) -> Means:
        """The mean of each state and layer."""
        states = {
            key: total / self.counts[key].view(-1, *[1] * (total.ndim - 1))
            for key, total in self.sums.items()
        }
        return Means(states, self.turned_by)


def _from_the_end(one: Tensor, other: Tensor) -> Tensor:
    """Sum of two tables of positions whose last rows belong together."""
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    total = longer.clone()
    total[len(longer) - len(shorter) :] += shorter
    return total
