"""The best layer and strength, chosen on half of the questions and scored on the other half."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Int

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.models.model import Model
from mechnum.probes.steering.questions import (
    question_halves,
    questions_of,
    share_by_question,
    some_prompts,
)
from mechnum.probes.steering.runs import mixed_answers
from mechnum.probes.steering.sweep import judged_answers, repair_shares
from mechnum.probes.steering.targets import (
    DECODED,
    decoded_target,
    oracle_targets,
    random_directions,
)
from mechnum.probes.steering.vectors import SteeringVectors
from mechnum.tasks.prompts import Prompts

DRAWS = 99


def best_steering(
    model: Model,
    prompts: Sequence[Prompts],
    vectors: SteeringVectors,
    found: xr.Dataset,
    draws: int = DRAWS,
    seed: int = 0,
) -> xr.Dataset:
    """For each kind of vector the layer and strength with the most right answers, scored apart.

    The best of many cells looks better than it is: it is chosen on half of the questions, and what
    it does is measured on the other half, beside random directions of the same length at the very
    same layer and strength.

    Args:
        prompts, vectors: those of `steer`, which gave `found`.
        draws: of random directions.
        seed: of these, and of the halves.

    Returns:
        Over vector, of those for the right answer and "decoded": `layer` and `alpha`, the first
        with the most right answers on the first half, and `chosen_accuracy`, their share. On the
        second half: `accuracy`, `repaired` and `broken`, with `_low` and `_high` as in `steer`.
        Over (vector, draw): `random_repaired` and `random_broken`; over vector `p`, how likely a
        random direction repairs as many or more, (1 + such draws) / (1 + draws). Of the second
        half: `accuracy_before`; `n_wrong` and `n_right`, its prompts, and `wrong_questions` and
        `right_questions`, how many questions these ask.

    Raises:
        MechnumError: on a half without wrong answers.
    """
    streams = seed_sequence(seed).spawn(1 + positive_integer("draws", draws))[1:]
    first = _choosing_half(found["question"].values, found["right_before"].values, seed)
    tested = some_prompts(prompts, ~first)
    targets = oracle_targets(tested, vectors)
    targets[DECODED] = decoded_target(model, tested, vectors)
    chosen = {name: _best(found["right"].sel(vector=name)[..., first]) for name in targets}
    second = found.isel(prompt=np.flatnonzero(~first))
    cells = []
    for name, target in targets.items():
        layer, alpha, accuracy = chosen[name]
        place = vectors.layers.index(layer)
        own, centre = target.at(place), vectors.centre[place : place + 1]
        random = [
            random_directions(own, centre, np.random.default_rng(stream)) for stream in streams
        ]
        _, right, _ = judged_answers(model, tested, vectors, random, [layer], (alpha,))
        # These are other draws than those of the whole grid.
        cell = second.drop_dims("draw").sel(vector=name, layer=layer, alpha=alpha)
        cell = cell.reset_coords(drop=True).assign(
            random_right=(("draw", "prompt"), right[:, 0, 0])
        )
        cells.append(_scores(cell).assign(layer=layer, alpha=alpha, chosen_accuracy=accuracy))
    names = xr.DataArray(list(targets), dims="vector", name="vector")
    joined = cast(xr.Dataset, xr.concat(cells, names, combine_attrs="drop"))
    return joined.assign(_counts(second)).assign_attrs(
        {**found.attrs, "seed": seed, "chosen_on": int(first.sum())}
    )


def check_repairable(model: Model, prompts: Sequence[Prompts], seed: int = 0) -> None:
    """Refuse at once what `best_steering` would refuse after all has been measured.

    Args:
        prompts, seed: those of `best_steering`.

    Raises:
        MechnumError: on a half without wrong answers.
    """
    said, _ = mixed_answers(model, prompts, [])
    right = torch.cat([group.answers for group in prompts]).numpy()
    _choosing_half(questions_of(prompts), said == right, seed)


def _best(right: xr.DataArray) -> tuple[int, float, float]:
    """Layer and strength with the most right answers, and their share."""
    accuracy = right.mean("prompt")
    layer, alpha = np.unravel_index(int(accuracy.values.argmax()), accuracy.shape)
    cell = accuracy[layer, alpha]
    return int(cell["layer"]), float(cell["alpha"]), float(cell)


def _scores(cell: xr.Dataset) -> xr.Dataset:
    """What one vector does at one layer and strength, beside random directions."""
    everyone = np.ones(cell.sizes["prompt"], dtype=bool)
    ends = share_by_question(cell["right"].values, everyone, cell["question"].values)
    random = repair_shares(cell, "random_right")
    shares = repair_shares(cell, "right")
    reached = (random["repaired"] >= shares["repaired"]).sum("draw")
    return xr.Dataset(
        {
            **dict(zip(("accuracy", "accuracy_low", "accuracy_high"), ends, strict=True)),
            **shares,
            "random_repaired": random["repaired"],
            "random_broken": random["broken"],
            "p": (1 + reached) / (1 + cell.sizes["draw"]),
        }
    )


def _counts(second: xr.Dataset) -> dict[str, float | int]:
    before, question = second["right_before"].values, second["question"].values
    return {
        "accuracy_before": float(before.mean()),
        "n_wrong": int((~before).sum()),
        "n_right": int(before.sum()),
        "wrong_questions": len(np.unique(question[~before])),
        "right_questions": len(np.unique(question[before])),
    }


def _choosing_half(
    question: Int[np.ndarray, " prompt"], before: Bool[np.ndarray, " prompt"], seed: int
) -> Bool[np.ndarray, " prompt"]:
    """Whether each prompt is in the half that chooses."""
    stream = seed_sequence(seed).spawn(1)[0]
    first = question_halves(question, int(stream.generate_state(1)[0]))
    if before[first].all() or before[~first].all():
        which = f"all {len(before)} prompts" if before.all() else "half of the questions"
        raise MechnumError(
            f"the model answers {which} correctly, so that there is nothing to repair: choose "
            "numbers that it cannot do, more prompts, or a model that makes errors"
        )
    return first
