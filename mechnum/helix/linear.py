"""The control of the helix: is a linear code of numbers fine enough to add with?

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section on errors and linear addition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float64

from mechnum.errors import MechnumError
from mechnum.helix.components import TrainingStates
from mechnum.helix.crossfit import Part, parts_by_value
from mechnum.inputs import positive_integer
from mechnum.models.model import Model
from mechnum.progress import track
from mechnum.tasks.accuracy import Accuracy
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import numbers_of, states_of

RANGES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


def linear_addition(
    model: Model,
    prompts: Sequence[Prompts],
    accuracy: Accuracy,
    components: int = 50,
    ranges: Sequence[int] = RANGES,
    folds: int = 5,
    seed: int = 0,
) -> xr.Dataset:
    """How often sums come right that are added along a linear direction of the number.

    For each operand the number is regressed on `components` principal components of the states at
    its position: n ≈ w·h + c. Moving the state of a along w/|w|² by what is read at b is what a
    linear code can do; the sum is then read as w·h + c, which comes to the sum of the two readings,
    and is right where it rounds to a + b.

    Args:
        prompts: sums of a and b; the more of them, the finer the shares of small ranges.
        accuracy: of the model on all prompts of the task.
        ranges: R, the sums with a and b below R are counted.
        folds: the readings "held out" are of numbers that the regression has not seen.
        seed: of the folds.

    Returns:
        `right` over (fit, layer, range): share of the prompts that come right; fit is "in sample",
        which favours the linear code, or "held out". `r2` over (fit, layer, operand) of the
        readings; `model` over range, the model's share of right answers, and `n` prompts over
        range. NaN where a range has none. Layer −1 is the embedding.

    Raises:
        MechnumError: where the prompts have no a and b, and on impossible components or folds.
    """
    positive_integer("components", components)
    if not ranges or min(ranges) < 1:
        raise MechnumError("a range is the number that operands stay below: give 1 or more")
    numbers = numbers_of(prompts, ("a", "b"))
    fits = ("in sample", "held out")
    layers = range(-1, model.spec.n_layers)
    readings = np.empty((len(fits), len(layers), *numbers.shape))
    for column, operand in enumerate(("a", "b")):
        states = states_of(model, prompts, operand)
        own = numbers[:, [column]]
        parts = [parts_by_value(own, own, one, seed) for one in (None, folds)]
        for row in track(range(len(layers)), f"reading {operand} linearly"):
            stage = states[row].astype(np.float64)
            for fit, of in enumerate(parts):
                readings[fit, row, :, column] = _read(own[:, 0], stage, of, components)
    inside = [numbers.max(axis=1) < bound for bound in ranges]
    right = np.round(readings.sum(axis=3)) == numbers.sum(axis=1)
    spread = ((numbers - numbers.mean(axis=0)) ** 2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = 1 - ((readings - numbers) ** 2).sum(axis=2) / np.where(spread, spread, np.nan)
    asked = np.column_stack([accuracy.variables[name].numpy() for name in ("a", "b")])
    asked_inside = [asked.max(axis=1) < bound for bound in ranges]
    correct = accuracy.correct.numpy()
    return xr.Dataset(
        {
            "right": (("fit", "layer", "range"), np.stack([_share(right, i) for i in inside], -1)),
            "r2": (("fit", "layer", "operand"), r2),
            "model": ("range", [float(_share(correct, i)) for i in asked_inside]),
            "n": ("range", [int(i.sum()) for i in inside]),
        },
        coords={
            "fit": list(fits),
            "layer": list(layers),
            "range": list(ranges),
            "operand": ["a", "b"],
        },
        attrs={"components": components, "folds": str(folds), "seed": seed},
    )


def _read(
    numbers: Float64[np.ndarray, " row"],
    states: Float64[np.ndarray, "row d"],
    parts: Sequence[Part],
    components: int,
) -> Float64[np.ndarray, " row"]:
    """Each row's number, read by the regression of its part."""
    found = np.empty(len(numbers))
    for part in parts:
        training = TrainingStates(states[part.train])
        axes = training.axes[:components]
        scores, asked = (
            (states[rows] - training.mean) @ axes.T for rows in (part.train, part.asked)
        )
        mean = numbers[part.train].mean()
        weights = np.linalg.lstsq(scores, numbers[part.train] - mean, rcond=None)[0]
        found[part.asked] = mean + asked @ weights
    return found


def _share(
    right: Bool[np.ndarray, "*row prompt"], rows: Bool[np.ndarray, " prompt"]
) -> Float64[np.ndarray, "*row"]:
    """Of the prompts at these rows; NaN where there are none."""
    picked = right[..., rows]
    return np.asarray(picked.mean(axis=-1)) if rows.any() else np.full(picked.shape[:-1], np.nan)
