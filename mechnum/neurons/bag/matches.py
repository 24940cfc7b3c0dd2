"""The matches that `heuristics` found, as sets of neurons and prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float64, Int

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.neurons.bag.kinds import Heuristic, HeuristicKind, Numbers, parse_heuristic
from mechnum.neurons.chosen import chosen_neurons
from mechnum.tasks.prompts import TokenSequences
from mechnum.tasks.states import numbers_of


class Matches(NamedTuple):
    """Which neuron matches which heuristic.

    Attributes:
        sites: layer and index of each neuron.
        heuristics: those that a neuron matches, each once.
        score: 0 where there is no match; the larger of both signs.
    """

    sites: Int[np.ndarray, "node 2"]
    heuristics: tuple[Heuristic, ...]
    score: Float64[np.ndarray, "node heuristic"]

    def of_kind(self, kind: HeuristicKind) -> list[int]:
        """Which of the heuristics are of a kind."""
        return [place for place, one in enumerate(self.heuristics) if one.kind == kind]

    def n_matching(self, columns: Sequence[int]) -> int:
        """How many neurons match one of these heuristics or more."""
        return int((self.score[:, columns] > 0).any(axis=1).sum())

    def matching(self, column: int) -> Int[np.ndarray, "neuron 2"]:
        """Layer and index of the neurons that match a heuristic."""
        return self.sites[self.score[:, column] > 0]

    def held(self, prompts: Sequence[TokenSequences]) -> Bool[np.ndarray, "heuristic prompt"]:
        """For which prompts, group after group, each heuristic holds.

        Raises:
            MechnumError: on heuristics of a second operand that the prompts do not have.
        """
        numbers = prompt_numbers(prompts)
        if "b" not in numbers:
            for one in self.heuristics:
                if one.variable in ("b", "both"):
                    raise MechnumError(
                        f"the prompts have no second operand for '{one}': give heuristics that "
                        "were found on maps of this very task"
                    )
        return np.stack([one.holds(numbers) for one in self.heuristics])


def prompt_numbers(prompts: Sequence[TokenSequences]) -> Numbers:
    """The integers behind the prompts, as heuristics read them."""
    names = {"a": "a", "b": "b", "result": "answer"}
    if "b" not in prompts[0].variables:
        del names["b"]
    columns = numbers_of(prompts, list(names.values())).astype(np.int64).T
    return dict(zip(names, columns, strict=True))


def matches_of(model: Model, found: xr.Dataset) -> Matches:
    """All matches of a table, each neuron's own set of results with them.

    Raises:
        MechnumError: on another table, on neurons that the model does not have, and where no
            neuron matches anything.
    """
    if not isinstance(found, xr.Dataset) or not {"matched", "match", "best"} <= set(found):
        raise MechnumError(
            "this is no table of heuristics: give what mechnum.neurons.heuristics gave"
        )
    nodes = chosen_neurons(model, [str(name) for name in found["node"].values])
    ordered = found.transpose("node", "heuristic", "sign", "kind")
    matched = ordered["matched"].values
    score = np.where(matched, ordered["score"].values, 0.0).max(axis=2)
    (used,) = np.nonzero(matched.any(axis=(0, 2)))
    columns = {str(ordered["heuristic"].values[place]): score[:, place] for place in used}
    own = ordered[["match", "best", "best_score"]].sel(kind="multi-result")
    for node in np.flatnonzero(own["match"].values):
        column = columns.setdefault(str(own["best"].values[node]), np.zeros(len(nodes)))
        column[node] = own["best_score"].values[node]
    if not columns:
        raise MechnumError(
            "no neuron matches a heuristic, so that there is none to knock out: find heuristics "
            "in other neurons, or with a lower threshold"
        )
    return Matches(
        sites=np.array([(node.layer, node.index) for node in nodes]),
        heuristics=tuple(parse_heuristic(words) for words in columns),
        score=np.column_stack(list(columns.values())).astype(np.float64),
    )
