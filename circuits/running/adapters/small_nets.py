"""Instruments of nets that were trained for one task, and of their training."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import xarray as xr
from pydantic import Field

from mechnum.circuits.instruments.beliefs import measure_beliefs
from mechnum.circuits.instruments.clock_pizza import measure_clock_pizza
from mechnum.circuits.instruments.grokking import measure_grokking
from mechnum.circuits.running.context import Context, SeededSettings, Settings
from mechnum.errors import MechnumError
from mechnum.models import Model
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.training import history_files, history_of


class GrokkingSettings(Settings):
    """Of `mechnum.circuits.instruments.grokking.measure_grokking`."""

    run: str | None = None
    """Folder of the training run; by default the one in the model's own folder."""
    keys: tuple[int, ...] | None = None
    """Key frequencies; by default those of the neurons or, without any, of the embedding."""
    layer: int = -1
    """Whose neurons and readout; negative ones from the last."""
    top: int = Field(default=24, gt=0)
    """Neurons that are mapped."""

    def files(self, model: Model) -> Iterable[Path]:
        """The training's log and checkpoints."""
        return history_files(model.name, self.run)


def grokking(context: Context, settings: GrokkingSettings) -> xr.DataTree:
    """Key frequencies, progress measures, and phases of training."""
    history = history_of(context.model.name, settings.run)
    keys = None if settings.keys is None else list(settings.keys)
    return measure_grokking(
        context.model, _modular(context), keys, history, settings.layer, settings.top
    )


class ClockPizzaSettings(Settings):
    """Of `mechnum.circuits.instruments.clock_pizza.measure_clock_pizza`."""

    triples: int = Field(default=100, gt=0)
    """Triples (a, b, c) of the symmetricity."""
    triples_seed: int | None = Field(default=None, ge=0)
    """Draws them; by default they are the published ones."""
    n_circles: int = Field(default=6, gt=0)
    """Circles that are isolated, the strongest."""


def clock_pizza(context: Context, settings: ClockPizzaSettings) -> xr.DataTree:
    """Whether a net adds like a clock or like a pizza, with every figure."""
    return measure_clock_pizza(
        context.model,
        _modular(context),
        settings.triples,
        settings.triples_seed,
        settings.n_circles,
    )


class BeliefsSettings(SeededSettings):
    """Of `mechnum.circuits.instruments.beliefs.measure_beliefs`."""

    run: str | None = None
    """Folder of the training run; by default the one in the model's own folder."""
    length: int | None = Field(default=None, gt=0)
    """Tokens of the strings; by default the model's context."""
    strings: int = Field(default=5000, ge=10)
    """Strings; all of them where there are no more."""
    first: int | None = Field(default=None, ge=0)
    """Position from which on beliefs are read; by default the first that has 10 prefixes."""
    position: int | None = Field(default=None, ge=0)
    """Where beliefs are replaced; by default the middle."""
    n_pairs: int = Field(default=200, gt=0)
    """Pairs of histories of the causal test."""

    def files(self, model: Model) -> Iterable[Path]:
        """The training's log and snapshots."""
        return history_files(model.name, self.run)


def beliefs(context: Context, settings: BeliefsSettings) -> xr.DataTree:
    """What a net knows of the hidden state of the process that it predicts."""
    length = settings.length or context.model.spec.n_ctx
    return measure_beliefs(
        context.model,
        context.process,
        history_of(context.model.name, settings.run),
        length=settings.length,
        positions=None if settings.first is None else range(settings.first, length),
        strings=settings.strings,
        position=settings.position,
        n_pairs=settings.n_pairs,
        seed=settings.seed,
    )


def _modular(context: Context) -> ModularAddition:
    task = context.task
    if not isinstance(task, ModularAddition):
        raise MechnumError(
            f"{context.model.name} does {task.name}, and this measures addition modulo a prime: "
            "give a net that does it, or set task to modular_addition:P"
        )
    return task
