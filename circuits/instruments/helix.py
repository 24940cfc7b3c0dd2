"""How much of a model's states at one position is a helix of a number: all measurements at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xarray as xr

from mechnum.circuits.running.comparison import with_published
from mechnum.errors import InvalidInput
from mechnum.fourier.periods import default_periods
from mechnum.helix import (
    Helix,
    ablation_scores,
    causal_scores,
    circle_continuity,
    helix_planes,
    linear_addition,
    number_structure,
    search_periods_causally,
    variable_scores,
)
from mechnum.models import Model
from mechnum.patching.metrics import MetricName
from mechnum.patching.tree import example_prompts
from mechnum.tasks import Accuracy, Pairs, Task, numbers_of, sample_prompts, states_of
from mechnum.tasks.examples import bos_policy, example_pair

_METHODS = ("full", "pca", "helix", "circle", "polynomial", "permuted")
_LINEAR_PROMPTS = 2000  # Enough that some have both operands below 10.


def measure_helix(
    model: Model,
    task: Task,
    pairs: Pairs,
    accuracy: Accuracy,
    position: str | int = "a",
    variables: Sequence[str] | None = None,
    periods: Sequence[float] | None = None,
    search: bool = False,
    metric: MetricName = "logit_diff",
    folds: int | None = 5,
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """Everything about the helix at one position (Kantamneni & Tegmark 2025, sections 3 and 4).

    Fits at an operand use 500 prompts whatever the model answers, elsewhere 500 that it answers
    correctly. What the numbers do not allow is left out, and the attribute `left_out` says why.

    Args:
        pairs: to patch.
        accuracy: of the model on the task.
        periods: of the helix; by default those of `mechnum.trace`: of 2, 5, 10 and 100 those that
            the numbers can tell apart, and the strongest of the embedding of a modular net.
        search: whether to score every subset of the periods.
        said: further attributes, such as the command.

    Returns:
        `/helix/<position>`: `causal_scores` with all rivals; `/helix/planes`: `helix_planes` at the
        layer where the helix explains most; `/ablation`: `ablation_scores`; `/continuity`:
        `circle_continuity` of the longest period at that layer; `/structure`: `number_structure`
        after layer 0; `/variables`: `variable_scores`, at positions that see a and b; `/search`:
        `search_periods_causally`; `/linear`: `linear_addition`, for sums;
        `/published`, what the paper has of GPT-J at this position; `/prompts`.

    Raises:
        MechnumError: where the model cannot read the prompts, or the helix itself cannot be fitted.
    """
    periods = tuple(periods or default_periods(model, task, accuracy.variables["a"]))
    operand = position in accuracy.variables
    groups = task.prompts(model)
    prompts = sample_prompts(groups, seed=seed, accuracy=None if operand else accuracy)
    shared = {"metric": metric, "folds": folds, "seed": seed}
    here = {**shared, "variables": variables, "periods": periods}
    scores = causal_scores(model, pairs, prompts, position, methods=_METHODS, **here)
    names = scores.attrs["features"].split(", ")
    numbers, states = numbers_of(prompts, names), states_of(model, prompts, position)
    layer = best_layer(scores)
    at_layer = states[layer + 1]
    sums = {"a", "b"} <= accuracy.variables.keys() and task.name == "addition"
    parts: dict[str, Callable[[], xr.Dataset]] = {
        "/ablation": lambda: ablation_scores(model, pairs, prompts, position, **here),
    }
    if len(names) == 1:
        place = {"site": str(position), "layer": layer}
        helix = Helix(tuple(periods))
        parts |= {
            "/helix/planes": lambda: helix_planes(
                helix.fit(numbers, at_layer), numbers, at_layer
            ).assign_attrs(place),
            "/continuity": lambda: circle_continuity(
                numbers, at_layer, max(periods), seed=seed
            ).assign_attrs(place),
            "/structure": lambda: number_structure(numbers, states[1]).assign_attrs(
                {**place, "layer": 0}
            ),
        }
    if sums and not operand and variables is None:
        parts["/variables"] = lambda: variable_scores(
            model, pairs, prompts, position, periods=periods, **shared
        )
    if search:
        rest = {name: value for name, value in here.items() if name != "periods"}
        parts["/search"] = lambda: search_periods_causally(
            model, pairs, prompts, position, candidates=periods, **rest
        )
    if sums:
        drawn = sample_prompts(groups, _LINEAR_PROMPTS, seed=seed)
        parts["/linear"] = lambda: linear_addition(model, drawn, accuracy, seed=seed)
    found = {f"/helix/{position}": scores}
    left_out = {}
    for path, measured in parts.items():
        try:
            found[path] = measured()
        except InvalidInput as few:
            left_out[path.split("/")[-1]] = str(few)
    example, _ = example_pair(pairs)
    attrs = {
        **scores.attrs,
        "family": model.spec.family,
        "bos": bos_policy(model, example),
        "direction": "denoise",
        "accuracy": accuracy.share,
        "n_prompts": len(accuracy),
        "dropped": json.dumps(dict(pairs.dropped)),
        **(said or {}),
    }
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    root = {"/": xr.Dataset(attrs=attrs), "/prompts": example_prompts(model, pairs)}
    results = xr.DataTree.from_dict({**root, **found})
    return with_published(results, "trigonometry", f"helix_{position}", model)


def best_layer(scores: xr.Dataset) -> int:
    """The layer where the helix explains the states best; the last one where none is explained."""
    r2 = scores["r2"].sel({"method": "helix"}).values
    if np.isnan(r2).all():
        return int(scores["layer"].values[-1])
    return int(scores["layer"].values[np.nanargmax(r2)])
