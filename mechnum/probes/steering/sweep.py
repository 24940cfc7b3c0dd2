"""How many answers steering repairs and breaks, by layer and strength, beside controls.

Source: Štefánik et al. 2026 (arXiv 2510.26285), steering.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Bool

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.models.model import Model
from mechnum.patching.provenance import prompt_attributes
from mechnum.probes.steering.questions import questions_of, share_by_question
from mechnum.probes.steering.runs import mixed_answers
from mechnum.probes.steering.targets import (
    DECODED,
    MEAN_STATE,
    OTHER,
    Target,
    decoded_target,
    mean_state,
    oracle_targets,
    other_value,
    random_directions,
    right_places,
)
from mechnum.probes.steering.vectors import PROBE, SteeringVectors
from mechnum.tasks.prompts import Prompts

ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
DRAWS = 3
_CELL = ("layer", "alpha", "prompt")


def steer(
    model: Model,
    prompts: Sequence[Prompts],
    vectors: SteeringVectors,
    alphas: Sequence[float] = ALPHAS,
    draws: int = DRAWS,
    seed: int = 0,
) -> xr.Dataset:
    """Mix the state at the last position with a number's vector, and look at the answers.

    h ← (1 − α)·h + α·vector after one layer; all that comes after it is recomputed. A vector of the
    right answer uses what the model was to find out: what it repairs shows that an answer written
    there is read, and is no way to repair a model. "decoded" alone does without the answer.

    Args:
        prompts: others than those that the vectors are of (see `training_split`).
        alphas: strengths, 0 to 1. Štefánik et al. 2026 use 0.2 to 0.5 in steps of 0.025.
        draws: of random directions.
        seed: of these, and of the other values.

    Returns:
        Over (vector, layer, alpha, prompt): `right`, whether the answer is right, and `followed`,
        whether it is the number that the state was steered towards. Over (vector, layer, alpha):
        `repaired`, the share of wrong answers that become right, and `broken`, the share of right
        ones that become wrong, with `_low` and `_high` (see `share_by_question`). The vectors are
        those of `vectors.towards`, for the right answer; "decoded", the probe's vector of the
        number that the probe itself reads in the state; "other value", its vector of another
        number; "mean state", the centre. Over (draw, layer, alpha, prompt): `random_right`, with
        random directions from the centre, one for each number, as long as the probe's vectors;
        over (draw, layer, alpha): `random_repaired` and `random_broken`. Over (layer, prompt):
        `decoded`. Over prompt: `right_before`, `answer` and `question`.

    Raises:
        MechnumError: on strengths outside of 0 to 1 or given twice, on prompts whose answers have
            no vector, and where the model cannot run them.
    """
    strengths = checked_strengths(alphas)
    # Streams of their own: one does not depend on how many others there are.
    cycle, *streams = seed_sequence(seed).spawn(1 + positive_integer("draws", draws))
    oracles = oracle_targets(prompts, vectors)
    decoded = decoded_target(model, prompts, vectors)
    targets = {
        **oracles,
        DECODED: decoded,
        OTHER: other_value(oracles[PROBE], vectors, np.random.default_rng(cycle)),
        MEAN_STATE: mean_state(oracles[PROBE], vectors.centre),
    }
    random = [
        random_directions(oracles[PROBE], vectors.centre, np.random.default_rng(own))
        for own in streams
    ]
    right_before, right, followed = judged_answers(
        model, prompts, vectors, [*targets.values(), *random], vectors.layers, strengths
    )
    found = xr.Dataset(
        {
            "right": (("vector", *_CELL), right[: len(targets)]),
            "followed": (("vector", *_CELL), followed[: len(targets)]),
            "random_right": (("draw", *_CELL), right[len(targets) :]),
            "decoded": (("layer", "prompt"), vectors.numbers[decoded.which]),
            "right_before": ("prompt", right_before),
            "answer": ("prompt", vectors.numbers[right_places(prompts, vectors)]),
            "question": ("prompt", questions_of(prompts)),
        },
        coords={
            "vector": list(targets),
            "layer": list(vectors.layers),
            "alpha": list(strengths),
            "draw": np.arange(draws),
            "oracle": ("vector", [name in oracles for name in targets]),
        },
        attrs={
            **prompt_attributes(model, prompts),
            "probe": type(vectors.probes[0]).__name__,
            "seed": seed,
        },
    )
    random_shares = repair_shares(found, "random_right")
    return found.assign(repair_shares(found, "right")).assign(
        {f"random_{name}": random_shares[name] for name in ("repaired", "broken")}
    )


def judged_answers(
    model: Model,
    prompts: Sequence[Prompts],
    vectors: SteeringVectors,
    targets: Sequence[Target],
    layers: Sequence[int],
    alphas: tuple[float, ...],
) -> tuple[
    Bool[np.ndarray, " prompt"],
    Bool[np.ndarray, "target layer alpha prompt"],
    Bool[np.ndarray, "target layer alpha prompt"],
]:
    """Whether the model is right by itself; and steered, whether it is right and whether it says
    what it is steered towards.

    Raises:
        MechnumError: as `mixed_answers`.
    """
    mixtures = [mixture for target in targets for mixture in target.mixtures(layers, alphas)]
    plain, answers = mixed_answers(model, prompts, mixtures)
    said = np.stack(answers).reshape(len(targets), len(layers), len(alphas), -1)
    right = vectors.tokens[right_places(prompts, vectors)]
    wanted = np.stack([target.tokens for target in targets])[:, :, None]
    return plain == right, said == right, said == wanted


def repair_shares(found: xr.Dataset, name: str) -> dict[str, xr.DataArray]:
    """`repaired` and `broken`, with intervals, of a variable over prompts.

    Args:
        found: with `right_before` and `question`.
        name: whether answers are right: "right" or "random_right".
    """
    before, question = found["right_before"].values, found["question"].values
    after = found[name].transpose(..., "prompt")
    like = after.isel(prompt=0, drop=True).astype(np.float64)
    shares = {}
    for kind, hit, rows in (
        ("repaired", after.values, ~before),
        ("broken", ~after.values, before),
    ):
        ends = share_by_question(hit, rows, question)
        for end, values in zip(("", "_low", "_high"), ends, strict=True):
            shares[f"{kind}{end}"] = like.copy(data=values)
    return shares


def checked_strengths(alphas: Sequence[float]) -> tuple[float, ...]:
    """Strengths to steer with.

    Raises:
        MechnumError: none, one outside of 0 to 1, or one twice.
    """
    found = tuple(float(alpha) for alpha in alphas)
    if not found or len(set(found)) < len(found) or not all(0 <= own <= 1 for own in found):
        raise MechnumError(
            f"alphas {found} are no strengths: give one or more from 0 to 1, each once"
        )
    return found
