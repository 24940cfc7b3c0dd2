"""How a net that adds modulo a prime does it, and how it came to (Nanda et al. 2023)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Int

from mechnum.circuits.running.comparison import with_published
from mechnum.errors import MechnumError
from mechnum.grokking import (
    circle_planes,
    logit_map,
    net_spectra,
    neuron_maps,
    phases_of,
    progress_measures,
    progress_over,
)
from mechnum.grokking.nets import modular_task, net_from_model, prompts_of
from mechnum.grokking.pairs import pair_states
from mechnum.models import Model, load
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.examples import bos_policy, example_tokens
from mechnum.training import History

MAPPED_NEURONS = 24


def measure_grokking(
    model: Model,
    task: ModularAddition | None = None,
    keys: Any = None,
    history: History | None = None,
    layer: int = -1,
    top: int = MAPPED_NEURONS,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """Everything about how a net adds modulo p, and what is known of its training.

    Args:
        task: what the model adds by, where it does not say so itself.
        keys: key frequencies; by default those of `progress_measures`.
        history: of its training, see `mechnum.training.history_of`.
        layer: whose neurons and readout are measured; the last by default.
        top: how many neurons are mapped: the best explained, as many of each key frequency.
        said: further attributes, such as the command.

    Returns:
        `/progress`: `progress_measures`; `/spectra`: `net_spectra`; `/circles`: `circle_planes` of
        the embedding at the key frequencies; `/logits`: `logit_map`; `/maps`: `pre` and
        `activation` of neurons over (neuron, a, b); `/training`: the log; `/over`: `progress_over`
        the checkpoints with the keys of this model, with the attribute `phases` where the pairs
        trained on are known; `/published`, the paper's figures, for nets of its shapes;
        `/prompts`. The attribute `left_out` says what could not be measured and why.

    Raises:
        MechnumError: as `progress_measures`, on a run of another task, and on checkpoints of other
            shapes.
    """
    task = modular_task(model, task)
    history = History() if history is None else history
    if history.task not in (None, task.name):
        raise MechnumError(
            f"the run trained on {history.task}, and {model.name} does {task.name}: give its own"
            " run"
        )
    if history.checkpoints:
        # Refused before the measurement rather than after.
        checkpoint_of(model, next(iter(history.checkpoints.values())))
    progress = progress_measures(model, task, keys, history.trained_on, layer)
    keys = progress["key"].values
    states = pair_states(model, task, layer)
    found = {
        "/progress": progress,
        "/spectra": net_spectra(model, task, layer, states),
        "/circles": circle_planes(net_from_model(model, task).embeddings_a, keys),
        "/logits": logit_map(states.logits, keys),
    }
    if states.neurons.shape[2]:
        chosen = best_explained(progress, top)
        pre = neuron_maps(model, task, layer)
        found["/maps"] = _maps(progress, chosen, {"pre": pre, "activation": states.neurons})
    left_out = {}
    if history.scores is not None:
        found["/training"] = history.scores
    over = None
    if history.checkpoints:
        over = progress_along_training(history, model, task, keys, layer)
    elif history.measures is not None:
        if _suits(history.measures, progress):
            over = history.measures
        else:
            left_out["training"] = (
                "what is kept with the net was measured with other keys or of another layer: give "
                "its run"
            )
    if over is not None:
        try:
            over.attrs["phases"] = json.dumps(asdict(phases_of(over)))
        except MechnumError as reason:
            left_out["phases"] = str(reason)
        found["/over"] = over
    prompts = prompts_of(model, task)
    attrs = {
        **progress.attrs,
        "p": task.p,
        "template": task.form(model),
        "bos": bos_policy(model, prompts),
        "accuracy": float(progress["accuracy"].sel(part="all")),
        "n_prompts": len(prompts),
        **(said or {}),
    }
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    root = {"/": xr.Dataset(attrs=attrs), "/prompts": example_tokens(model, prompts)}
    results = xr.DataTree.from_dict(root | found)
    return with_published(results, "grokking", "measures", model)


def progress_along_training(
    history: History, model: Model, task: ModularAddition, keys: Any, layer: int = -1
) -> xr.Dataset:
    """`progress_over` the checkpoints of a run, which have the shapes of `model`.

    Raises:
        MechnumError: where they have not, and as `progress_over`.
    """
    loaded = ((step, checkpoint_of(model, place)) for step, place in history.checkpoints.items())
    return progress_over(loaded, task, keys, history.trained_on, layer)


def _suits(kept: xr.Dataset, progress: xr.Dataset) -> bool:
    """Whether measures along a run were taken as those of the net at its end are."""
    same_layer = kept.attrs["neurons_of_layer"] == progress.attrs["neurons_of_layer"]
    return same_layer and np.array_equal(kept["key"], progress["key"])


def best_explained(progress: xr.Dataset, top: int) -> Int[np.ndarray, " neuron"]:
    """The neurons that their frequency explains best, as many of each key as there are, in turn."""
    frequency, explained = progress["neuron_frequency"].values, progress["neuron_explained"].values
    order = np.argsort(-np.nan_to_num(explained), kind="stable")
    each = [order[frequency[order] == key] for key in progress["key"].values]
    longest = max(map(len, each))
    in_turn = [own[place] for place in range(longest) for own in each if place < len(own)]
    return np.array(in_turn[:top], dtype=np.int64)


def _maps(
    progress: xr.Dataset, chosen: Int[np.ndarray, " neuron"], states: Mapping[str, np.ndarray]
) -> xr.Dataset:
    return xr.Dataset(
        {
            **{name: (("a", "b", "neuron"), maps[..., chosen]) for name, maps in states.items()},
            "frequency": ("neuron", progress["neuron_frequency"].values[chosen]),
            "explained": ("neuron", progress["neuron_explained"].values[chosen]),
        },
        coords={"neuron": chosen},
    ).transpose("neuron", "a", "b")


def checkpoint_of(model: Model, place: Path) -> Model:
    """The model at `place`, which is one of the same shapes.

    Raises:
        MechnumError: where it is not, and as `mechnum.load`.
    """
    loaded = load(place, device=str(model.device), dtype=str(model.dtype).removeprefix("torch."))
    differs = next(
        (
            name
            for name, value in asdict(model.spec).items()
            if name != "family" and asdict(loaded.spec)[name] != value
        ),
        None,
    )
    if differs is not None:
        theirs, ours = getattr(loaded.spec, differs), getattr(model.spec, differs)
        raise MechnumError(
            f"the checkpoint {place} has {differs} = {theirs}, and {model.name} {ours}: give the "
            "checkpoints of its own run"
        )
    return loaded
