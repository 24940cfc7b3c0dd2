"""What a model can no longer do without the neurons of a heuristic.

Source: Nikankin et al. 2025 (arXiv 2410.21272), section 4.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.intervals import share_interval
from mechnum.models.model import Model
from mechnum.neurons.bag.ablated_runs import Sites, answered_right, random_like
from mechnum.neurons.bag.kinds import KINDS, HeuristicKind
from mechnum.neurons.bag.matches import Matches, matches_of, prompt_numbers
from mechnum.neurons.edited_runs import mean_activations
from mechnum.patching.provenance import prompt_attributes
from mechnum.tasks.accuracy import Accuracy
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.task import Task

Value = Literal["zero", "mean"]
_SORTS = ("related", "unrelated")
_ABLATED = ("heuristic", "random")
_SHARES = ("accuracy", "low", "high")


def knock_out(
    model: Model,
    task: Task,
    found: xr.Dataset,
    n: int = 100,
    value: Value = "zero",
    seed: int = 0,
    accuracy: Accuracy | None = None,
) -> xr.Dataset:
    """Accuracy without the neurons of one heuristic, where it holds and where it does not.

    A trial is one heuristic and one prompt that the model answers correctly, so that without a
    knock-out the accuracy would be 1: all neurons that match the heuristic are knocked out. The
    prompt is *related* where the heuristic holds, and *unrelated* where it does not; a neuron that
    also matches another heuristic can matter there nevertheless, which makes the contrast smaller.
    The heuristics of a kind share its trials evenly.

    Args:
        found: what `heuristics` gave for neurons of this model on this task.
        n: at most so many trials for each kind with related prompts, and with unrelated ones.
        value: what the post-activation at the last position becomes: 0, or its mean over all
            prompts of the task.
        seed: draws prompts and controls.
        accuracy: what `task.accuracy(model)` gave, so that it is not measured again.

    Returns:
        Over (kind, prompts, ablated): `accuracy` with its 95 % Wilson interval `low`, `high`.
        `prompts` is "related" or "unrelated"; `ablated` is "heuristic" or "random": in the same
        trials as many other neurons of the same layers, drawn anew for each. Over (kind, prompts):
        `n`, the trials, and `n_neurons`, the mean number of neurons knocked out. Over kind:
        `n_heuristics` and `n_matching`, the heuristics that a neuron matches and the neurons that
        match one. NaN where there is no trial: the kind has no match, or no correct prompt is of
        that sort.

    Raises:
        MechnumError: on a table of other neurons or without a match, where no prompt is answered
            correctly, and where more than half of a layer would be knocked out.
    """
    n = positive_integer("n", n)
    inputs = _inputs(model, task, found, value, accuracy)
    drawing, control = map(np.random.default_rng, seed_sequence(seed).spawn(2))
    trials = _trials(inputs, n, drawing)
    rows = np.array([trial.row for trial in trials])
    sets = [trial.sites for trial in trials]
    others = [random_like(sites, model.spec.d_mlp, control) for sites in sets]
    right = [
        answered_right(model, inputs.prompts, rows, which, inputs.values)
        for which in (sets, others)
    ]
    shares = np.full((len(_SHARES), len(KINDS), len(_SORTS), len(_ABLATED)), np.nan)
    counts = np.zeros((len(KINDS), len(_SORTS)), dtype=np.int64)
    sizes = np.full(counts.shape, np.nan)
    for kind, sort in np.ndindex(counts.shape):
        own = [(one.kind, one.sort) == (KINDS[kind], _SORTS[sort]) for one in trials]
        counts[kind, sort] = sum(own)
        if any(own):
            sizes[kind, sort] = np.mean([len(trials[place].sites) for place in np.flatnonzero(own)])
            for place, which in enumerate(right):
                shares[:, kind, sort, place] = share_interval(which[np.array(own)])
    of_kind = [inputs.matches.of_kind(kind) for kind in KINDS]
    dims = ("kind", "prompts", "ablated")
    return xr.Dataset(
        {
            **{name: (dims, shares[row]) for row, name in enumerate(_SHARES)},
            "n": (dims[:2], counts),
            "n_neurons": (dims[:2], sizes),
            "n_heuristics": ("kind", [len(columns) for columns in of_kind]),
            "n_matching": ("kind", [inputs.matches.n_matching(columns) for columns in of_kind]),
        },
        coords={"kind": list(KINDS), "prompts": list(_SORTS), "ablated": list(_ABLATED)},
        attrs=_said(model, task, inputs, found, value, seed),
    )


def knock_out_by_prompt(
    model: Model,
    task: Task,
    found: xr.Dataset,
    per_layer: int = 25,
    n: int = 100,
    draws: int = 5,
    value: Value = "zero",
    seed: int = 0,
    accuracy: Accuracy | None = None,
) -> xr.Dataset:
    """Accuracy when each prompt loses the neurons whose heuristics hold for it.

    In each layer the `per_layer` neurons with the highest score of a matched heuristic that holds
    for the prompt are knocked out together, or as many as there are. Only prompts that the model
    answers correctly are asked, so that without a knock-out the accuracy would be 1.

    Args:
        found, value, seed, accuracy: as in `knock_out`.
        n: prompts, drawn without replacement; all correct ones where they are fewer.
        draws: how often as many other neurons of the same layers are drawn for comparison.

    Returns:
        Over condition ("heuristics", "random 1", "random 2", ...): `accuracy` with its 95 % Wilson
        interval `low`, `high`. Over (condition, prompt): `correct`. Over prompt: `n_neurons`, how
        many were knocked out; coordinates `a`, `b` and `answer`.

    Raises:
        MechnumError: as `knock_out`.
    """
    per_layer, n, draws = (
        positive_integer(name, given)
        for name, given in (("per_layer", per_layer), ("n", n), ("draws", draws))
    )
    inputs = _inputs(model, task, found, value, accuracy)
    streams = seed_sequence(seed).spawn(1 + draws)
    drawing, *controls = map(np.random.default_rng, streams)
    rows = np.sort(drawing.permutation(np.flatnonzero(inputs.correct))[:n])
    sets = [_strongest(inputs, row, per_layer) for row in rows.tolist()]
    conditions = {"heuristics": sets}
    for draw, control in enumerate(controls, 1):
        others = [random_like(sites, model.spec.d_mlp, control) for sites in sets]
        conditions[f"random {draw}"] = others
    correct = [
        answered_right(model, inputs.prompts, rows, which, inputs.values)
        for which in conditions.values()
    ]
    shares = np.array(share_interval(np.stack(correct)))
    numbers = prompt_numbers(inputs.prompts)
    return xr.Dataset(
        {
            **{name: ("condition", shares[row]) for row, name in enumerate(_SHARES)},
            "correct": (("condition", "prompt"), np.stack(correct)),
            "n_neurons": ("prompt", [len(sites) for sites in sets]),
        },
        coords={
            "condition": list(conditions),
            **{
                "answer" if name == "result" else name: ("prompt", values[rows])
                for name, values in numbers.items()
            },
        },
        attrs=_said(model, task, inputs, found, value, seed) | {"per_layer": per_layer},
    )


class _Inputs(NamedTuple):
    """What both need.

    Attributes:
        correct: whether the model answers each prompt correctly, group after group.
        held: for which prompts each matched heuristic holds.
        values: what neurons are overwritten with in each layer; None for zeros.
    """

    matches: Matches
    prompts: tuple[Prompts, ...]
    correct: Bool[np.ndarray, " prompt"]
    held: Bool[np.ndarray, "heuristic prompt"]
    values: Float[Tensor, "layer neuron"] | None


def _inputs(
    model: Model, task: Task, found: xr.Dataset, value: Value, accuracy: Accuracy | None
) -> _Inputs:
    if value not in get_args(Value):
        raise MechnumError(f"there is no value {value!r} to knock out with: use 'zero' or 'mean'")
    matches = matches_of(model, found)
    prompts = task.prompts(model)
    held = matches.held(prompts)
    if accuracy is None:
        accuracy = task.accuracy(model)
    index = torch.cat([group.index for group in prompts])
    if len(accuracy) != len(index):
        raise MechnumError(
            f"the accuracy given is of {len(accuracy)} prompts, but {task.name} has {len(index)}: "
            "give the one of this very task and model"
        )
    correct = accuracy.correct[index].numpy()
    if not correct.any():
        raise MechnumError(
            f"{model.name} answers no prompt of {task.name} correctly, so that a knock-out has "
            "nothing to take: choose a task that it can do"
        )
    means = mean_activations(model, prompts) if value == "mean" else None
    return _Inputs(matches, prompts, correct, held, means)


class _Trial(NamedTuple):
    kind: HeuristicKind
    sort: str
    row: int
    sites: Sites


def _trials(inputs: _Inputs, n: int, generator: np.random.Generator) -> list[_Trial]:
    """At most `n` of each kind and sort, no heuristic and prompt twice."""
    matches = inputs.matches
    trials = []
    for kind in KINDS:
        for sort in _SORTS:
            turns: list[tuple[int, float, int, int]] = []
            for column in matches.of_kind(kind):
                asked = inputs.held[column] == (sort == "related")
                rows = generator.permutation(np.flatnonzero(asked & inputs.correct))[:n]
                # All heuristics have their first prompt before any has its second.
                turns += [
                    (turn, generator.random(), column, row)
                    for turn, row in enumerate(rows.tolist())
                ]
            for _, _, column, row in sorted(turns)[:n]:
                trials.append(_Trial(kind, sort, row, matches.matching(column)))
    return trials


def _strongest(inputs: _Inputs, row: int, per_layer: int) -> Sites:
    """In each layer the neurons with the highest score of a heuristic that holds for a prompt."""
    sites = inputs.matches.sites
    score = (inputs.matches.score * inputs.held[:, row]).max(axis=1)
    order = np.argsort(-score, kind="stable")
    order = order[score[order] > 0]
    chosen = [order[sites[order, 0] == layer][:per_layer] for layer in np.unique(sites[:, 0])]
    return sites[np.concatenate(chosen)]


def _said(
    model: Model, task: Task, inputs: _Inputs, found: xr.Dataset, value: Value, seed: int
) -> dict[str, str | int | float]:
    return prompt_attributes(model, inputs.prompts) | {
        "task": task.name,
        "value": value,
        "position": "end",
        "n_correct": int(inputs.correct.sum()),
        "control": "as many other neurons of the same layers, drawn for each prompt",
        "interval": "Wilson, 95 %",
        "seed": seed,
        **{name: found.attrs[name] for name in ("threshold", "alpha") if name in found.attrs},
    }
