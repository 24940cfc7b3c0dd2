"""Instruments that patch the answers of a task."""

from __future__ import annotations

from typing import Literal

import xarray as xr
from pydantic import Field

from mechnum.circuits.instruments.clock import trace_clock
from mechnum.circuits.instruments.helix import measure_helix
from mechnum.circuits.instruments.neurons import measure_neurons
from mechnum.circuits.instruments.trace import trace as measure_trace
from mechnum.circuits.running.context import Context, SeededSettings

Metric = Literal["logit_diff", "logprob", "prob", "logit"]

_ANSWERED = "those that the model answers correctly"


class TraceSettings(SeededSettings):
    """Of `mechnum.trace`."""

    n_pairs: int = Field(default=100, gt=0)
    """Pairs of prompts, at most."""
    periods: tuple[float, ...] | None = None
    """Of the helix; by default the task's."""


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


class HelixSettings(SeededSettings):
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


class ClockSettings(SeededSettings):
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


class NeuronsSettings(SeededSettings):
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
