"""The operands and the answer of a task: where in a prompt, and from which layer on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float32, Int

from mechnum.circuits.instruments.probe import spread_layers
from mechnum.circuits.running.comparison import with_published
from mechnum.errors import MechnumError
from mechnum.models import Model
from mechnum.patching.provenance import prompt_attributes
from mechnum.probes import (
    FourierRegressionProbe,
    LinearNumberProbe,
    NumberProbe,
    StateTable,
    permuted,
    probe_curves,
)
from mechnum.probes.collection import checked_layers
from mechnum.probes.controls import token_indicators
from mechnum.probes.regression import PERIODS
from mechnum.probes.tables import Label
from mechnum.progress import track
from mechnum.tasks import Prompts, Task, numbers_of, sample_prompts, states_of
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.examples import bos_policy, example_tokens
from mechnum.tasks.positions import resolve_position

VARIABLES = ("a", "b", "answer")
PROMPTS = 2000
"""Prompts that are drawn where nothing else is said."""


def measure_task(
    model: Model,
    task: Task,
    n_prompts: int = PROMPTS,
    layers: Sequence[int] | None = None,
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """What is read of a, b and the answer at each layer and position.

    A fifth of the numbers is held out of training: of those that a has where a is read, and so on.
    Before its first token a number cannot be read, and what the tokens so far tell by themselves is
    measured beside it.

    Args:
        n_prompts: drawn ones, at most.
        layers: −1 is the embedding; by default all, of deep models 8.
        said: further attributes, such as the command.

    Returns:
        `/task_probes` over (variable, probe, position, layer): `accuracy`, `low`, `high`,
        `absolute_error`; over variable `chance`; over (variable, probe, position) `tokens`, of the
        same probe on the tokens so far; over (variable, probe, layer) `permuted`, the accuracy at
        the end of numbers that are dealt anew. `/prompts`: one prompt. `/published`: the paper's
        figures beside these. The attribute `left_out` says which variables are no numbers that
        probes read.

    Raises:
        MechnumError: the model cannot do the task, layers that it does not have or one of them
            twice, or no variable that can be read.
    """
    chosen = spread_layers(model) if layers is None else checked_layers(model, layers)
    accuracy = task.accuracy(model)
    prompts = sample_prompts(task.prompts(model), n_prompts, seed)
    known, left_out = _variables(prompts)
    if not known:
        raise MechnumError(f"{task.name} has no number to read: {'; '.join(left_out.values())}")
    attrs = {
        **prompt_attributes(model, prompts),
        "task": task.name,
        "n_layers": model.spec.n_layers,
        "bos": bos_policy(model, prompts[0]),
        "accuracy": accuracy.share,
        "n_drawn": sum(map(len, prompts)),
        "seed": seed,
        **(said or {}),
    }
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    by_variable = {name: [] for name in known}
    places = _positions(prompts)
    for position in track(list(places.values()), "reading each position"):
        states = states_of(model, prompts, position)
        tokens = _tokens_so_far(prompts, position)
        for name, values in known.items():
            probes = task_probes(task, values, seed)
            read = _read(probes, states, tokens, values, chosen, position == "end", seed)
            by_variable[name].append(read)
    found = xr.concat(
        [_along(own, "position", list(places)) for own in by_variable.values()],
        xr.DataArray(list(known), dims="variable", name="variable"),
        combine_attrs="drop",
    )
    found["chance"] = found["chance"].isel(probe=0, position=0, layer=0, drop=True)
    found["permuted"] = found["permuted"].sel(position="end", drop=True)
    results = xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=attrs),
            "/task_probes": found,
            "/prompts": example_tokens(model, prompts[0]),
        }
    )
    return with_published(results, "universal_numbers", "operands", model)


def task_probes(task: Task, values: Int[np.ndarray, " row"], seed: int) -> dict[str, NumberProbe]:
    """The linear and the Fourier probe; a modulus has waves of its own."""
    if isinstance(task, ModularAddition):
        periods = [task.p / k for k in range(1, (task.p - 1) // 2 + 1)]
    else:
        # No wave is longer than the power of ten that all numbers are below.
        periods = [period for period in PERIODS if period <= 10 ** len(str(values.max()))]
    return {
        "linear": LinearNumberProbe(seed=seed),
        "fourier": FourierRegressionProbe(periods, seed=seed),
    }


def _variables(
    prompts: Sequence[Prompts],
) -> tuple[dict[str, Int[np.ndarray, " row"]], dict[str, str]]:
    """The numbers behind the prompts that probes read, and why others are not."""
    found, left_out = {}, {}
    for name in VARIABLES:
        if any(name not in group.variables for group in prompts):
            continue
        values = numbers_of(prompts, (name,))[:, 0]
        if values.min() < 0 or (values % 1).any():
            left_out[name] = f"{name} has numbers that are not whole or below 0"
        elif len(np.unique(values)) < 5:
            left_out[name] = f"{name} has {len(np.unique(values))} values, too few to hold some out"
        else:
            found[name] = values.astype(np.int64)
    return found, left_out


def _positions(prompts: Sequence[Prompts]) -> dict[str, str | int]:
    """Positions by what they are called: those with names, and of prompts of one shape all."""
    named = [name for name in prompts[0].positions if name != "end"]
    alike = len(prompts) == 1 and all(
        len(places.unique()) == 1 for places in prompts[0].positions.values()
    )
    if not alike:
        shared = [name for name in named if all(name in group.positions for group in prompts)]
        return {name: name for name in [*shared, "end"]}
    names = {int(prompts[0].positions[name][0]): name for name in named}
    last = prompts[0].tokens.shape[1] - 1
    found: dict[str, str | int] = {
        names.get(place, f"position {place}"): names.get(place, place) for place in range(last)
    }
    return {**found, "end": "end"}


def _tokens_so_far(
    prompts: Sequence[Prompts], position: str | int
) -> Float32[np.ndarray, "row token"]:
    groups = [
        (group.tokens, resolve_position(position, group.positions, group.tokens.shape[1])[:, None])
        for group in prompts
    ]
    return token_indicators(groups, max(tokens.shape[1] for tokens, _ in groups))


def _read(
    probes: Mapping[str, NumberProbe],
    states: Float32[np.ndarray, "stage row d"],
    tokens: Float32[np.ndarray, "row token"],
    values: Int[np.ndarray, " row"],
    layers: Sequence[int],
    last: bool,
    seed: int,
) -> xr.Dataset:
    """All layers at one position, over (probe, layer)."""
    usable: dict[Label, StateTable] = {
        layer: StateTable(states[layer + 1], values)
        for layer in layers
        if np.ptp(states[layer + 1], axis=0).any()
    }
    blank = xr.DataArray(
        np.full((len(probes), len(layers)), np.nan),
        {"probe": list(probes), "layer": list(layers)},
        ("probe", "layer"),
    )
    names = ("accuracy", "low", "high", "absolute_error", "chance")
    found = xr.Dataset(dict.fromkeys((*names, "permuted"), blank))
    found["tokens"] = blank.isel(layer=0, drop=True)
    if usable:
        own = probe_curves(probes, usable, template_share=0.0, seed=seed)
        for name in names:
            found[name] = own[name].reindex_like(blank)
    if usable and last:
        dealt: dict[Label, StateTable] = {
            layer: permuted(table, seed) for layer, table in usable.items()
        }
        own = probe_curves(probes, dealt, template_share=0.0, seed=seed)
        found["permuted"] = own["accuracy"].reindex_like(blank)
    if np.ptp(tokens, axis=0).any():
        seen: dict[Label, StateTable] = {"tokens": StateTable(tokens, values)}
        own = probe_curves(probes, seen, dim="reader", template_share=0.0, seed=seed)
        found["tokens"] = own["accuracy"].isel(reader=0, drop=True)
    return found


def _along(parts: Sequence[xr.Dataset], dim: str, labels: Sequence[str]) -> xr.Dataset:
    return xr.concat(
        list(parts), xr.DataArray(list(labels), dims=dim, name=dim), combine_attrs="drop"
    )
