"""Steering towards numbers: does a vector of the right answer repair wrong ones?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import xarray as xr

from mechnum.circuits.running.comparison import with_published
from mechnum.errors import InvalidInput, MechnumError
from mechnum.fourier.periods import default_periods
from mechnum.helix import Helix
from mechnum.inputs import positive_integer
from mechnum.models import Model
from mechnum.probes import (
    FourierRegressionProbe,
    ParamSinProbe,
    SteeringVectors,
    best_steering,
    fit_vectors,
    steer,
    training_split,
)
from mechnum.probes.base import CodeProbe
from mechnum.probes.regression import PERIODS
from mechnum.probes.steering.choice import check_repairable
from mechnum.probes.steering.questions import answers_of, pooled
from mechnum.probes.steering.sweep import ALPHAS, checked_strengths
from mechnum.probes.steering.vectors import MEANS, Rival
from mechnum.tasks import Prompts, Task, sample_prompts
from mechnum.tasks.examples import bos_policy, example_tokens
from mechnum.tasks.worded import WordedTask

ProbeName = Literal["param-sin", "fourier"]
HELIX = "helix"


def measure_steering(
    model: Model,
    task: Task,
    probe: ProbeName = "param-sin",
    draws: int = 1,
    n_prompts: int = 2000,
    every: int = 1,
    alphas: Sequence[float] = ALPHAS,
    random: int = 3,
    null: int = 99,
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """Steer answers towards numbers (Štefánik et al. 2026, arXiv 2510.26285), beside controls.

    Half of the questions train the probe of each layer, on the right answers, and give the vectors.
    The others are steered; of these, half choose a layer and a strength, and half score them.

    Args:
        draws: of the solved examples before each question, each a prompt of its own.
        n_prompts: at most, of all draws together.
        every: steer after every so many layers, counted from the last.
        alphas: see `mechnum.probes.steer`.
        random: draws of random directions at each layer and strength.
        null: the same at the chosen ones.
        said: further attributes, such as the command.

    Returns:
        `/steering`: `steer`, also with "helix", the states of a helix that is fitted to the
        answers of the training prompts; `/best`: `best_steering`; `/vectors`: over (vector,
        layer) the mean `length` of vectors from the mean state, and `cosine`, their mean cosine
        with the class means', and `read`, the share of them that the probe reads as their number;
        over layer `radius`; `/published`: the paper's figures beside these; `/prompts`: the tokens
        of one prompt. The attribute `left_out` says what could not be measured, and why.

    Raises:
        MechnumError: on draws of a task without solved examples, on a model that cannot do the task
            at all or makes no errors, and on too few prompts.
    """
    strengths = checked_strengths(alphas)
    groups = sample_prompts(_drawn(model, task, draws), n_prompts, seed)
    train, test = training_split(groups, seed=seed)
    check_repairable(model, test, seed)
    answers = answers_of(train)
    rivals, left_out = _rivals(model, task, answers)
    layers = range(model.spec.n_layers - 1, -1, -positive_integer("every", every))[::-1]
    vectors = fit_vectors(model, train, _probe(probe, answers, seed), layers, rivals)
    swept = steer(model, test, vectors, strengths, random, seed)
    if not swept["right_before"].any():
        left_out["broken"] = "the model answers none of these prompts correctly"
    best = best_steering(model, test, vectors, swept, null, seed)
    attrs = {
        **swept.attrs,
        "task": task.name,
        "template": task.form(model),
        "bos": bos_policy(model, test[0]),
        "accuracy": float(swept["right_before"].mean()),
        "n_train": sum(map(len, train)),
        "n_questions": len(np.unique(swept["question"])),
        "draws": draws,
        **(said or {}),
    }
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    results = xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=attrs),
            "/steering": swept,
            "/best": best,
            "/vectors": _described(vectors),
            "/prompts": example_tokens(model, test[0]),
        }
    )
    return with_published(results, "universal_numbers", "steering", model)


def _drawn(model: Model, task: Task, draws: int) -> tuple[Prompts, ...]:
    """The task's prompts, once for each draw of its solved examples."""
    if positive_integer("draws", draws) == 1:
        return task.prompts(model)
    if not isinstance(task, WordedTask) or not task.shots:
        raise MechnumError(
            f"{task.name} has no solved examples to draw anew: give shots, or 1 draw"
        )
    return pooled([replace(task, seed=task.seed + draw).prompts(model) for draw in range(draws)])


def _probe(name: ProbeName, answers: np.ndarray, seed: int) -> CodeProbe:
    """A probe of as many numbers, all of which it has to be shown."""
    n_numbers = len(np.unique(answers))
    if name == "fourier":
        return FourierRegressionProbe([t for t in PERIODS if t <= 2 * n_numbers], seed=seed)
    if name == "param-sin":
        return ParamSinProbe(
            H=max(64, 2 * n_numbers), l1=3e-2, steps=1000, validation_share=0.0, seed=seed
        )
    raise MechnumError(f"unknown probe {name!r}: use {' or '.join(get_args(ProbeName))}")


def _rivals(
    model: Model, task: Task, answers: np.ndarray
) -> tuple[dict[str, Rival], dict[str, str]]:
    """The helix, and why it is missing where the answers, or a modular net's periods, are too
    few for it."""
    try:
        helix = Helix(default_periods(model, task, answers))
        helix.make_basis().fit(answers[:, None])
    except InvalidInput as few:
        return {}, {HELIX: str(few)}

    def states(numbers: np.ndarray, states: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return helix.fit(numbers, states).predict(asked)

    return {HELIX: states}, {}


def _described(vectors: SteeringVectors) -> xr.Dataset:
    """How long the vectors are, what the probe reads in them, and how much they look like the class
    means."""
    away = {name: own - vectors.centre[:, None] for name, own in vectors.towards.items()}
    length = {name: np.linalg.norm(own, axis=-1) for name, own in away.items()}
    with np.errstate(invalid="ignore"):
        cosine = [
            (own * away[MEANS]).sum(-1) / (length[name] * length[MEANS])
            for name, own in away.items()
        ]
    read = [
        [
            float(np.mean(probe.predict(states) == vectors.numbers))
            for probe, states in zip(vectors.probes, own, strict=True)
        ]
        for own in vectors.towards.values()
    ]
    return xr.Dataset(
        {
            "read": (("vector", "layer"), read),
            "length": (("vector", "layer"), np.stack([own.mean(1) for own in length.values()])),
            "cosine": (("vector", "layer"), np.stack([own.mean(1) for own in cosine])),
            "radius": ("layer", vectors.radius),
        },
        coords={"vector": list(away), "layer": list(vectors.layers)},
    )
