"""What a node's output could be made of: fits of helices to it, for pairs that they never saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float, Float64

from mechnum.errors import InvalidInput, MechnumError
from mechnum.helix.basis import check_periods
from mechnum.helix.components import TrainingStates
from mechnum.helix.crossfit import Part, parts_by_value
from mechnum.helix.estimators import Helix, explained_variance
from mechnum.inputs import positive_integer
from mechnum.models.decoder import StateName
from mechnum.models.model import Model
from mechnum.patching.nodes import Node
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import activations_of, numbers_of

# What is fitted, and the prompts' variables that it is a function of. The answer is a+b, or a+b
# modulo p, which is the same to a circle.
CONTENTS: Mapping[str, tuple[str, ...]] = {
    "a,b": ("a", "b"),
    "a+b": ("answer",),
    "a,b,a+b": ("a", "b", "answer"),
    "mean": (),
}
# The fit of all variables that are there, to prompts whose numbers were shuffled.
PERMUTED = "permuted"
VARIABLES = ("a", "b", "answer")
_STATES: Mapping[str, StateName] = {"head": "z", "mlp": "mlp_out"}


@dataclass(frozen=True)
class Fits:
    """Prompts to fit to, and how.

    Attributes:
        prompts: what is fitted, see `mechnum.tasks.states.sample_prompts`.
        helix: the fit of each content, unfitted: periods, linear column and components.
        folds: no pair is scored by a fit that has seen its a, its b or its answer: the values of
            each are dealt into this many folds (`mechnum.helix.crossfit.parts_by_value`).
        seed: of the folds, and of the numbers that "permuted" shuffles.

    Raises:
        InvalidInput: on fewer than 2 folds, and on periods that are none.
    """

    prompts: Sequence[Prompts]
    helix: Helix
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        check_periods(self.helix.periods)
        if positive_integer("folds", self.folds) < 2:
            raise InvalidInput("1 fold leaves nothing to fit: give 2 or more")

    def values(
        self, model: Model, pairs: Pairs, nodes: Sequence[Node], contents: Sequence[str]
    ) -> xr.Dataset:
        """What each fit says of the clean run's value of each node, at the last position.

        Every content is fitted to the same prompts, so that none has the advantage of more of them;
        only then do their effects compare.

        Args:
            nodes: heads (z), or MLPs (their output).
            contents: names in `CONTENTS`: helix(a, b), helix(a+b), both in one, or the mean alone.

        Returns:
            `values` over (content, node, pair, dim) for these contents and "permuted", the fit of
            all their variables to prompts whose numbers were shuffled; `true` over (node, pair,
            dim); `r2` over (content, node), over pairs and out of sample, NaN where the node's
            value does not vary.

        Raises:
            MechnumError: on other nodes and contents, and where the prompts have too few numbers.
        """
        unknown = [name for name in contents if name not in CONTENTS]
        if unknown:
            raise MechnumError(
                f"unknown content {unknown[0]!r}: use some of {', '.join(map(repr, CONTENTS))}"
            )
        used = [name for name in VARIABLES if any(name in CONTENTS[one] for one in contents)]
        numbers, asked = numbers_of(self.prompts, used), numbers_of_pairs(pairs, used)
        states = node_states(model, self.prompts, nodes)
        true = node_states(model, [group.clean for group in pairs.groups], nodes)
        true = true[:, pair_order(pairs)]
        fits = []
        for content in contents:
            columns = [used.index(name) for name in CONTENTS[content]]
            fits.append((numbers[:, columns], asked[:, columns]))
        fits.append((self._shuffled(numbers), asked))
        parts = parts_by_value(numbers, asked, self.folds, self.seed)
        fitted = stacked_predictions(self.helix, states, fits, parts)
        r2 = [[_r2(*one) for one in zip(true, own, strict=True)] for own in fitted]
        return xr.Dataset(
            {
                "values": (("content", "node", "pair", "dim"), fitted),
                "true": (("node", "pair", "dim"), true),
                "r2": (("content", "node"), r2),
            },
            {"content": [*contents, PERMUTED], "node": [str(node) for node in nodes]},
        )

    def _shuffled(self, numbers: Float64[np.ndarray, "row v"]) -> Float64[np.ndarray, "row v"]:
        # A stream of its own, apart from the one that deals the folds.
        stream = np.random.SeedSequence(self.seed).spawn(1)[0]
        return np.random.default_rng(stream).permutation(numbers)


def stacked_predictions(
    helix: Helix,
    states: Float64[np.ndarray, "node row d"],
    fits: Sequence[tuple[np.ndarray, np.ndarray]],
    parts: Sequence[Part],
) -> Float64[np.ndarray, "fit node asked d"]:
    """Predictions of several fits to each of several nodes, each from its part's training rows.

    The weights of a fit are found once for all nodes, and the components of a node's states once
    for all fits (`mechnum.helix.components`).

    Args:
        fits: numbers [row, variable] to fit, and those [asked, variable] to predict; without a
            variable the prediction is the mean.
    """
    n_asked = len(fits[0][1])
    found = np.full((len(fits), len(states), n_asked, states.shape[2]), np.nan)
    for part in track(list(parts), "fitting helices to outputs"):
        weights = [_weights(helix, own[part.train], to[part.asked]) for own, to in fits]
        for node, own in enumerate(states[:, part.train]):
            training = TrainingStates(own)
            for row, weight in enumerate(weights):
                found[row, node, part.asked] = training.predicted(weight, helix.components)
    return found


def _weights(
    helix: Helix, numbers: Float64[np.ndarray, "train v"], asked: Float64[np.ndarray, "asked v"]
) -> Float64[np.ndarray, "asked train"]:
    """How much of each fitted state is in each prediction."""
    if not numbers.shape[1]:
        return np.full((len(asked), len(numbers)), 1 / len(numbers))
    return helix.weights(numbers, asked)


def node_states(
    model: Model, prompts: Sequence[Prompts], nodes: Sequence[Node]
) -> Float64[np.ndarray, "node prompt d"]:
    """What heads (z) or MLPs (their output) compute at the last position, group after group.

    Raises:
        MechnumError: on no nodes, and on nodes of other or of several kinds.
    """
    kinds = {node.kind for node in nodes}
    if len(kinds) != 1 or not kinds <= set(_STATES):
        raise MechnumError("helices are fitted to heads or to MLPs: give nodes of one of the two")
    states = activations_of(model, prompts, _STATES[kinds.pop()], "end")
    rows = [
        states[node.layer or 0] if node.index is None else states[node.layer or 0][:, node.index]
        for node in nodes
    ]
    return np.stack(rows).astype(np.float64)


def numbers_of_pairs(
    pairs: Pairs, variables: Sequence[str]
) -> Float64[np.ndarray, "pair variable"]:
    """The clean prompts' numbers in the order of the pairs' `index`."""
    clean = [group.clean for group in pairs.groups]
    return numbers_of(clean, variables)[pair_order(pairs)]


def pair_order(pairs: Pairs) -> np.ndarray:
    """Rows of the groups, one after the other, in the order of the pairs' `index`."""
    return np.argsort(np.concatenate([group.index.numpy() for group in pairs.groups]))


def _r2(true: Float[np.ndarray, "pair d"], fitted: Float[np.ndarray, "pair d"]) -> float:
    return explained_variance(true, fitted) if bool((true != true[0]).any()) else np.nan
