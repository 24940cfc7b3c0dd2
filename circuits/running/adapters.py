"""The instruments of this package as recipes use them: settings, and a measurement of a context."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import xarray as xr
from pydantic import Field

from mechnum.circuits.instruments.beliefs import measure_beliefs
from mechnum.circuits.instruments.clock import trace_clock
from mechnum.circuits.instruments.clock_pizza import measure_clock_pizza
from mechnum.circuits.instruments.filters import measure_filters
from mechnum.circuits.instruments.grokking import measure_grokking
from mechnum.circuits.instruments.helix import measure_helix
from mechnum.circuits.instruments.neurons import measure_neurons
from mechnum.circuits.instruments.trace import trace as measure_trace
from mechnum.circuits.running.context import Context, Settings
from mechnum.errors import MechnumError
from mechnum.fourier import lens_results, number_spectra
from mechnum.models import Model
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.single_numbers import own_numbers
from mechnum.training import history_files, history_of

Metric = Literal["logit_diff", "logprob", "prob", "logit"]
Basis = Literal["orthonormal", "paper"]

_ANSWERED = "those that the model answers correctly"


class TraceSettings(Settings):
    """Of `mechnum.trace`."""

    n_pairs: int = Field(default=100, gt=0)
    """Pairs of prompts, at most."""
    periods: tuple[float, ...] | None = None
    """Of the helix; by default the task's."""
    seed: int = Field(default=0, ge=0)
    """Of all that is drawn."""


def trace(context: Context, settings: TraceSettings) -> xr.DataTree:
    """Accuracy, errors, effects of heads, attention and MLPs, and the helix at each number."""
    return measure_trace(
        context.model,
        context.task,
        settings.n_pairs,
        settings.periods,
        settings.seed,
        context.accuracy(),
    )


class HelixSettings(Settings):
    """Of `mechnum.circuits.instruments.helix.measure_helix`."""

    position: str | int = "a"
    """Where: a, b, end, or an index."""
    variables: tuple[str, ...] | None = None
    """Numbers that the helix is of, such as a+b; by default the operand, elsewhere the answer."""
    periods: tuple[float, ...] | None = None
    """By default the task's."""
    search: bool = False
    """Whether every subset of the periods is scored."""
    metric: Metric = "logit_diff"
    """What a patched run is scored by."""
    in_sample: bool = False
    """Whether numbers are scored that were fitted, as the paper did."""
    n_pairs: int = Field(default=100, gt=0)
    """Pairs of prompts, at most."""
    seed: int = Field(default=0, ge=0)
    """Of all that is drawn."""


def helix(context: Context, settings: HelixSettings) -> xr.DataTree:
    """The helix of a number at one position, with its rivals and causal tests."""
    vary = "a" if settings.position == "a" else "b" if settings.position == "b" else "any"
    return measure_helix(
        context.model,
        context.task,
        context.pairs(settings.n_pairs, vary, settings.seed),
        context.accuracy(),
        settings.position,
        settings.variables,
        settings.periods,
        settings.search,
        settings.metric,
        folds=None if settings.in_sample else 5,
        seed=settings.seed,
        said={"template": context.task.form(context.model), "answered": _ANSWERED},
    )


class ClockSettings(Settings):
    """Of `mechnum.trace_clock`."""

    n_pairs: int = Field(default=200, gt=0)
    """Pairs of prompts, at most; half of them choose, half are measured."""
    n_heads: int = Field(default=20, gt=0)
    """Heads that are classified, at most."""
    n_mlps: int = Field(default=11, gt=0)
    """MLPs of the circuit, at most."""
    n_edges: int = Field(default=60, gt=0)
    """Edges of the circuit, at most."""
    n_mixed: int | None = None
    """Heads that are mixed; by default a fifth."""
    periods: tuple[float, ...] | None = None
    """Of the helices; by default the task's."""
    metric: Metric = "logit_diff"
    """What a patched run is scored by."""
    seed: int = Field(default=0, ge=0)
    """Of all that is drawn."""


def clock(context: Context, settings: ClockSettings) -> xr.DataTree:
    """Heads that move the numbers, MLPs that build and write the sum, and the circuit of both."""
    return trace_clock(
        context.model,
        context.task,
        n_pairs=settings.n_pairs,
        periods=settings.periods,
        n_heads=settings.n_heads,
        n_mlps=settings.n_mlps,
        n_edges=settings.n_edges,
        n_mixed=settings.n_mixed,
        metric=settings.metric,
        seed=settings.seed,
        accuracy=context.accuracy(),
    )


class NeuronsSettings(Settings):
    """Of `mechnum.circuits.instruments.neurons.measure_neurons`."""

    top: int = Field(default=100, gt=0)
    """Neurons that are described, the best ones."""
    by: Literal["estimate", "direct"] = "estimate"
    """Best by the estimated total effect, or by the direct effect."""
    of: Literal["pre", "hidden"] = "pre"
    """Whether waves are fitted to what the activation function reads, or gives."""
    periods: tuple[float, ...] | None = None
    """Of the waves; by default the task's."""
    metric: Metric = "logit_diff"
    """What a patched run is scored by."""
    n_pairs: int = Field(default=100, gt=0)
    """Pairs of prompts, at most."""
    seed: int = Field(default=0, ge=0)
    """Of all that is drawn."""


def neurons(context: Context, settings: NeuronsSettings) -> xr.DataTree:
    """All neurons by their effects, what the best ones compute, and how many are needed."""
    return measure_neurons(
        context.model,
        context.task,
        context.pairs(settings.n_pairs, "any", settings.seed),
        context.accuracy(),
        settings.top,
        settings.by,
        settings.of,
        settings.periods,
        settings.metric,
        settings.seed,
        said={"template": context.task.form(context.model), "answered": _ANSWERED},
    )


class SpectraSettings(Settings):
    """Of `mechnum.fourier.number_spectra`."""

    of: Literal[
        "embedding", "unembedding", "resid", "resid_mid", "attn_out", "mlp_out", "mlp_hidden"
    ] = "resid"
    """Whose rows: a matrix, or what each layer holds at the number."""
    periods: tuple[float, ...] | None = None
    """Of the waves that are fitted."""
    draws: int = Field(default=1000, ge=19)
    """Spectra of chance."""
    permutations: int = Field(default=200, ge=19)
    """Of the residues, for their p-values."""
    seed: int = Field(default=0, ge=0)
    """Of all that is drawn."""


def spectra(context: Context, settings: SpectraSettings) -> xr.DataTree:
    """The spectrum of the numbers in a model, and which residues can be read."""
    return number_spectra(
        context.model,
        own_numbers(context.model),
        settings.of,
        periods=settings.periods,
        draws=settings.draws,
        permutations=settings.permutations,
        seed=settings.seed,
    )


class LensSettings(Settings):
    """Of `mechnum.fourier.lens_results`."""

    position: str | int = "end"
    """Where: a, op, b, end, or an index."""
    basis: Basis = "orthonormal"
    """Waves over numbers; paper is that of Zhou et al. 2024."""
    permutations: int = Field(default=99, ge=19)
    """Of the number tokens, for chance."""
    n_prompts: int = Field(default=500, gt=0)
    """Prompts, at most."""
    seed: int = Field(default=0, ge=0)
    """Of all that is drawn."""


def lens(context: Context, settings: LensSettings) -> xr.DataTree:
    """Which waves over numbers each layer writes."""
    return lens_results(
        context.model,
        context.task,
        settings.n_prompts,
        settings.position,
        settings.basis,
        settings.permutations,
        settings.seed,
    )


class FiltersSettings(Settings):
    """Of `mechnum.circuits.instruments.filters.measure_filters`."""

    tau: int = Field(default=50, gt=0)
    """Where low components end."""
    tau_unit: Literal["row", "frequency"] = "row"
    """What tau counts: rows of the basis, two for a frequency, or waves."""
    single: tuple[int, ...] = ()
    """Frequencies that are kept alone, one at a time."""
    without: tuple[int, ...] = ()
    """Frequencies that are removed together."""
    position: str | int = "all"
    """Where: all, or one position."""
    basis: Basis = "orthonormal"
    """Waves over numbers; paper is that of Zhou et al. 2024."""
    n_prompts: int = Field(default=500, gt=0)
    """Prompts, at most."""
    seed: int = Field(default=0, ge=0)
    """Of all that is drawn."""


def filters(context: Context, settings: FiltersSettings) -> xr.DataTree:
    """What is answered without some waves over numbers."""
    return measure_filters(
        context.model,
        context.task,
        settings.tau,
        settings.tau_unit,
        settings.single,
        settings.without,
        position=settings.position,
        basis=settings.basis,
        n_prompts=settings.n_prompts,
        seed=settings.seed,
    )


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


class BeliefsSettings(Settings):
    """Of `mechnum.circuits.instruments.beliefs.measure_beliefs`."""

    run: str | None = None
    """Folder of the training run; by default the one in the model's own folder."""
    length: int | None = Field(default=None, gt=0)
    """Tokens of the strings; by default the model's context."""
    strings: int = Field(default=5000, ge=10)
    """Strings; all of them where there are no more."""
    position: int | None = Field(default=None, ge=0)
    """Where beliefs are replaced; by default the middle."""
    n_pairs: int = Field(default=200, gt=0)
    """Pairs of histories of the causal test."""
    seed: int = Field(default=0, ge=0)
    """Of all that is drawn."""

    def files(self, model: Model) -> Iterable[Path]:
        """The training's log and snapshots."""
        return history_files(model.name, self.run)


def beliefs(context: Context, settings: BeliefsSettings) -> xr.DataTree:
    """What a net knows of the hidden state of the process that it predicts."""
    return measure_beliefs(
        context.model,
        context.process,
        history_of(context.model.name, settings.run),
        length=settings.length,
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
