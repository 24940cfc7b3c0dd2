"""Which vector each prompt's state is steered towards: the right answer's, and controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.probes.steering.questions import answers_of
from mechnum.probes.steering.runs import Mixture
from mechnum.probes.steering.vectors import PROBE, SteeringVectors
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import states_of

DECODED, OTHER, MEAN_STATE = "decoded", "other value", "mean state"
NO_TOKEN = -1


@dataclass(frozen=True, eq=False)
class Target:
    """What the state of each prompt is steered towards, layer by layer.

    Attributes:
        vectors: some vectors of each layer, and `which` of them each prompt gets.
        tokens: the token of the number that it stands for; −1 where it stands for none.
    """

    vectors: Float64[np.ndarray, "layer vector d"]
    which: Int[np.ndarray, "layer prompt"]
    tokens: Int[np.ndarray, "layer prompt"]

    def at(self, layer: int) -> Target:
        """The same at one layer, counted among those of the target."""
        one = slice(layer, layer + 1)
        return Target(self.vectors[one], self.which[one], self.tokens[one])

    def mixtures(self, layers: Sequence[int], alphas: tuple[float, ...]) -> list[Mixture]:
        """One for each layer."""
        return [
            Mixture(layer, own, which, alphas)
            for layer, own, which in zip(layers, self.vectors, self.which, strict=True)
        ]


def oracle_targets(prompts: Sequence[Prompts], vectors: SteeringVectors) -> dict[str, Target]:
    """By name, the vectors of the right answers.

    Raises:
        MechnumError: an answer has no vector.
    """
    which = np.tile(right_places(prompts, vectors), (len(vectors.layers), 1))
    return {
        name: Target(own, which, vectors.tokens[which]) for name, own in vectors.towards.items()
    }


def right_places(
    prompts: Sequence[Prompts], vectors: SteeringVectors
) -> Int[np.ndarray, " prompt"]:
    """Which of the numbers each right answer is.

    Raises:
        MechnumError: an answer has no vector.
    """
    answers = answers_of(prompts)
    if not (known := np.isin(answers, vectors.numbers)).all():
        raise MechnumError(
            f"no training prompt has the answer {answers[~known][0]}, so that it has no vector: "
            "split the prompts with training_split"
        )
    return np.searchsorted(vectors.numbers, answers)


def decoded_target(model: Model, prompts: Sequence[Prompts], vectors: SteeringVectors) -> Target:
    """The probe's vectors of the numbers that it reads itself: no answer is used."""
    stages = states_of(model, prompts)
    read = np.stack(
        [
            probe.predict(stages[layer + 1])
            for layer, probe in zip(vectors.layers, vectors.probes, strict=True)
        ]
    )
    which = np.searchsorted(vectors.numbers, read)
    return Target(vectors.towards[PROBE], which, vectors.tokens[which])


def other_value(right: Target, vectors: SteeringVectors, generator: np.random.Generator) -> Target:
    """The probe's vectors of other numbers: each number has one other, the same in all layers."""
    order = generator.permutation(len(vectors.numbers))
    # A cycle through all numbers leaves none in its place.
    after = np.empty_like(order)
    after[order] = np.roll(order, 1)
    which = after[right.which]
    return Target(vectors.towards[PROBE], which, vectors.tokens[which])


def mean_state(right: Target, centre: Float64[np.ndarray, "layer d"]) -> Target:
    """The mean training state, whatever the number."""
    nothing = np.full_like(right.which, NO_TOKEN)
    return Target(centre[:, None], np.zeros_like(right.which), nothing)


def random_directions(
    target: Target, centre: Float64[np.ndarray, "layer d"], generator: np.random.Generator
) -> Target:
    """For each vector of a target a random direction from the centre, as long as its own."""
    length = np.linalg.norm(target.vectors - centre[:, None], axis=-1, keepdims=True)
    drawn = generator.normal(size=target.vectors.shape)
    drawn *= length / np.linalg.norm(drawn, axis=-1, keepdims=True)
    nothing = np.full_like(target.which, NO_TOKEN)
    return Target(centre[:, None] + drawn, target.which, nothing)
