"""A vector for each number and layer, from the states of training prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from jaxtyping import Float64, Int
from sklearn.base import clone

from mechnum.errors import MechnumError
from mechnum.inputs import value_means
from mechnum.models.model import Model
from mechnum.probes.base import CodeProbe, NumberProbe
from mechnum.probes.steering.inversion import invert_probe, linear
from mechnum.probes.steering.questions import answers_of
from mechnum.progress import track
from mechnum.tasks.answers import answer_tokens
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import states_of

PROBE, ROUND, MEANS = "probe", "probe, any state", "class means"

_FLAT = 1e-6  # Axes along which states vary less than this part of the largest are none.

# States [number, d] for the numbers asked for, from training numbers [row] and states [row, d].
Rival = Callable[
    [Int[np.ndarray, " row"], Float64[np.ndarray, "row d"], Int[np.ndarray, " number"]],
    Float64[np.ndarray, "number d"],
]


@dataclass(frozen=True, eq=False)
class SteeringVectors:
    """What states at the last position are steered towards.

    Attributes:
        layers: the layers after which a state is steered.
        numbers: the answers that vectors stand for, in order.
        tokens: the answer token of each number.
        towards: by name, a vector for each layer and number. "probe": the state that the probe is
            surest of among those that are as likely as training states (see `invert_probe`);
            "probe, any state": the same among all that are as far from the centre, as the paper's
            but for the bound; "class means": mean training state of each number; and the rivals.
        centre: mean training state of each layer.
        radius: root mean square distance of the training states from it; so far from it are the
            vectors of both inversions, at most.
        probes: the fitted probe of each layer.
    """

    layers: tuple[int, ...]
    numbers: Int[np.ndarray, " number"]
    tokens: Int[np.ndarray, " number"]
    towards: Mapping[str, Float64[np.ndarray, "layer number d"]]
    centre: Float64[np.ndarray, "layer d"]
    radius: Float64[np.ndarray, " layer"]
    probes: tuple[CodeProbe, ...]

    def lengths(self, name: str) -> Float64[np.ndarray, "layer number"]:
        """How far the vectors of one name are from the centre."""
        return np.linalg.norm(self.towards[name] - self.centre[:, None], axis=-1)


def fit_vectors(
    model: Model,
    prompts: Sequence[Prompts],
    probe: NumberProbe,
    layers: Sequence[int] | None = None,
    rivals: Mapping[str, Rival] | None = None,
) -> SteeringVectors:
    """Fit a probe to the right answers of training prompts at each layer, and invert it.

    The probe reads the state at the last position, whatever the model answers there. Only the
    answers of these prompts compete in it.

    Args:
        probe: with its parameters, fitted or not; it is not changed.
        layers: all by default.
        rivals: other vectors, by name.

    Raises:
        MechnumError: on layers that do not exist, prompts without answers as numbers, answers that
            are not one token each or negative, and states that are all the same.
    """
    n_layers = model.spec.n_layers
    chosen = tuple(range(n_layers) if layers is None else layers)
    if not chosen or len(set(chosen)) < len(chosen):
        raise MechnumError(f"layers {chosen}: give one or more, each once")
    if outside := [layer for layer in chosen if not 0 <= layer < n_layers]:
        raise MechnumError(
            f"{model.name} has no layer {outside[0]} to steer after: use 0 to {n_layers - 1}"
        )
    answers = answers_of(prompts)
    numbers = np.unique(answers)
    tokens = answer_tokens(model, prompts).numpy()[numbers]
    fresh = cast(CodeProbe, clone(linear(probe))).set_params(numbers=numbers)
    stages = states_of(model, prompts)
    names = (PROBE, ROUND, MEANS, *(rivals or {}))
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    centres, radii, probes = [], [], []
    for layer in track(chosen, "inverting probes"):
        states = stages[layer + 1].astype(np.float64)
        centre = states.mean(axis=0)
        fitted = cast(CodeProbe, clone(fresh)).fit(states, answers)
        radius = float(np.sqrt(((states - centre) ** 2).sum(axis=1).mean()))
        found[PROBE].append(likely_states(fitted, states, radius))
        found[ROUND].append(invert_probe(fitted, centre, radius))
        found[MEANS].append(value_means(answers[:, None].astype(np.float64), states)[1])
        for name, rival in (rivals or {}).items():
            found[name].append(rival(answers, states, numbers))
        centres.append(centre)
        radii.append(radius)
        probes.append(fitted)
    return SteeringVectors(
        layers=chosen,
        numbers=numbers,
        tokens=tokens,
        towards={name: np.stack(own) for name, own in found.items()},
        centre=np.stack(centres),
        radius=np.array(radii),
        probes=tuple(probes),
    )


def likely_states(
    probe: CodeProbe, states: Float64[np.ndarray, "row d"], radius: float
) -> Float64[np.ndarray, "number d"]:
    """The states that a probe is surest of, as far from the mean as `radius`.

    Found in the ellipsoid of the states' covariance, at the distance that states have in it, and
    from there along the line to the mean.
    """
    centre = states.mean(axis=0)
    _, sizes, axes = np.linalg.svd(states - centre, full_matrices=False)
    varied = sizes > _FLAT * sizes[0]
    shape = axes[varied].T * sizes[varied] / np.sqrt(len(states))
    found = invert_probe(probe, centre, float(np.sqrt(varied.sum())), shape=shape) - centre
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return centre + found * radius / np.maximum(length, np.finfo(np.float64).tiny)
