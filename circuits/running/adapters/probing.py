"""Instruments that read numbers from states, compare them between models, and steer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import xarray as xr
from pydantic import Field

from mechnum.circuits.instruments.probe import PROBES, STEPS, measure_numbers
from mechnum.circuits.instruments.probe_ordinals import PERMUTATIONS, measure_ordinals
from mechnum.circuits.instruments.probe_task import PROMPTS, measure_task
from mechnum.circuits.instruments.similarity import Chosen, measure_similarity
from mechnum.circuits.instruments.steer import ProbeName, measure_steering
from mechnum.circuits.running.context import Context, SeededSettings
from mechnum.probes.similarity import DRAWS, TOP
from mechnum.probes.steering.sweep import ALPHAS
from mechnum.tasks.contexts import CONTEXTS, ORDINALS, context_prompts


class ProbeSettings(SeededSettings):
    """Of `mechnum.circuits.instruments.probe.measure_numbers`."""

    asks_task: ClassVar[bool] = False

    contexts: tuple[str, ...] = tuple(CONTEXTS)
    """Texts that the numbers stand in."""
    numbers: tuple[int, int] = (0, 999)
    """The first number and the last."""
    per_number: int = Field(default=4, gt=0)
    """How often each stands in the texts."""
    piece: int = -1
    """Token of a number that is read at: -1 the last, 0 the first."""
    layers: tuple[int, ...] | None = None
    """Layers, -1 the embedding; by default 8 at equal distances."""
    probes: tuple[str, ...] = PROBES
    """What reads."""
    steps: int = Field(default=STEPS, gt=0)
    """Of probes that are trained by gradients."""


def probe(context: Context, settings: ProbeSettings) -> xr.DataTree:
    """Numbers in texts: what probes and lenses read at each layer, beside controls."""
    prompts = context_prompts(
        context.model,
        settings.contexts,
        _run_of(settings.numbers),
        settings.per_number,
        settings.seed,
        settings.piece,
    )
    return measure_numbers(
        context.model,
        prompts,
        settings.layers,
        settings.probes,
        settings.steps,
        seed=settings.seed,
    )


class ProbeTaskSettings(SeededSettings):
    """Of `mechnum.circuits.instruments.probe_task.measure_task`."""

    n_prompts: int = Field(default=PROMPTS, ge=50)
    """Prompts, at most."""
    layers: tuple[int, ...] | None = None
    """Layers, -1 the embedding; by default all, of deep models 8."""


def probe_task(context: Context, settings: ProbeTaskSettings) -> xr.DataTree:
    """Operands and answer of the task, as read at each layer and position."""
    return measure_task(
        context.model, context.task, settings.n_prompts, settings.layers, settings.seed
    )


class OrdinalsSettings(SeededSettings):
    """Of `mechnum.circuits.instruments.probe_ordinals.measure_ordinals`."""

    asks_task: ClassVar[bool] = False

    kinds: tuple[str, ...] = tuple(ORDINALS)
    """Of words: weekdays, months, number words."""
    layers: tuple[int, ...] | None = None
    """Layers, -1 the embedding; by default 8 at equal distances."""
    permutations: int = Field(default=PERMUTATIONS, ge=19)
    """Of the words, for p."""


def ordinals(context: Context, settings: OrdinalsSettings) -> xr.DataTree:
    """Weekdays, months and number words, each read by probes that saw all others."""
    return measure_ordinals(
        context.model,
        settings.kinds,
        settings.layers,
        settings.permutations,
        seed=settings.seed,
    )


class SimilaritySettings(SeededSettings):
    """Of `mechnum.circuits.instruments.similarity.measure_similarity`."""

    asks_task: ClassVar[bool] = False

    beside: tuple[str, ...] = ()
    """Models that are compared with this one, and with each other; without any its own layers."""
    numbers: tuple[int, int] = (0, 199)
    """The first number and the last; compared is the longest run of these that all models read."""
    template: str | None = None
    """What is read, with {n} for the number."""
    top: int = Field(default=TOP, gt=0)
    """Strongest frequencies that are compared."""
    draws: int = Field(default=DRAWS, ge=19)
    """Of each null."""
    transfer: bool = True
    """Whether probes of each model are read on the others."""

    def models(self) -> Iterable[str]:
        """Those beside the model."""
        return self.beside


def similarity(context: Context, settings: SimilaritySettings) -> xr.DataTree:
    """How alike numbers lie in models, and whether a probe of one reads the others."""
    models = [context.model, *(other.model for other in context.others)]
    return measure_similarity(
        [Chosen(model) for model in {model.name: model for model in models}.values()],
        _run_of(settings.numbers),
        settings.template,
        settings.top,
        draws=settings.draws,
        transfer=settings.transfer,
        seed=settings.seed,
    )


class SteerSettings(SeededSettings):
    """Of `mechnum.circuits.instruments.steer.measure_steering`."""

    probe: ProbeName = "param-sin"
    """The probe that is inverted."""
    alphas: tuple[float, ...] = ALPHAS
    """How much of the vector is mixed in, 0 to 1."""
    every: int = Field(default=1, gt=0)
    """Steer after every so many layers, from the last."""
    draws: int = Field(default=1, gt=0)
    """Of the solved questions before each prompt."""
    n_prompts: int = Field(default=2000, gt=0)
    """Prompts, at most; half train the probes."""
    random: int = Field(default=3, gt=0)
    """Random directions at each layer and strength."""
    null: int = Field(default=99, gt=0)
    """Random directions at the chosen ones."""


def steer(context: Context, settings: SteerSettings) -> xr.DataTree:
    """What vectors of the right answers repair and break, beside random directions."""
    return measure_steering(
        context.model,
        context.task,
        settings.probe,
        settings.draws,
        settings.n_prompts,
        settings.every,
        settings.alphas,
        settings.random,
        settings.null,
        settings.seed,
    )


def _run_of(ends: tuple[int, int]) -> range:
    return range(ends[0], ends[1] + 1)
