"""One position of a task's prompts: its states, its numbers, and what fits say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float32, Float64, Int

from mechnum.errors import MechnumError
from mechnum.helix.crossfit import CrossFits, parts_by_value
from mechnum.helix.estimators import explained_variance
from mechnum.helix.heldout import Estimator
from mechnum.models.model import Model
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import numbers_of, states_of


@dataclass(frozen=True)
class Site:
    """States at one position, of prompts to fit and of the clean prompts of pairs.

    The states are read when they are first used, and kept: all stages of the prompts and pairs,
    4 bytes a number.

    Args:
        position: name of a position ("a", "b", "end") or an index, negative ones from the end.

    Raises:
        MechnumError: where there are no pairs or no prompts.
    """

    model: Model
    pairs: Pairs
    prompts: Sequence[Prompts]
    position: str | int = "end"

    def __post_init__(self) -> None:
        if len(self.pairs) == 0 or not self.prompts:
            raise MechnumError("there are no pairs or no prompts to fit: give at least one of each")

    @cached_property
    def states(self) -> Float32[np.ndarray, "stage prompt d_model"]:
        """The embedding and the state after each layer, of the prompts to fit."""
        return states_of(self.model, self.prompts, self.position)

    @cached_property
    def clean_states(self) -> Float32[np.ndarray, "stage pair d_model"]:
        """The same of the clean prompts, in the order of the pairs."""
        return states_of(self.model, self._clean, self.position)[:, self._order]

    def numbers(self, variables: Sequence[str]) -> Float64[np.ndarray, "prompt variable"]:
        """The numbers of the prompts to fit."""
        return numbers_of(self.prompts, variables)

    def clean_numbers(self, variables: Sequence[str]) -> Float64[np.ndarray, "pair variable"]:
        """The numbers of the clean prompts, in the order of the pairs."""
        return numbers_of(self._clean, variables)[self._order]

    @property
    def default_variables(self) -> tuple[str, ...]:
        """The operand at its own position, and the answer everywhere else."""
        operand = isinstance(self.position, str) and self.position in self.prompts[0].variables
        return (str(self.position) if operand else "answer",)

    def layers(self, layers: Sequence[int] | None) -> list[int]:
        """The layers asked for, −1 for the embedding; all of them for None.

        Raises:
            MechnumError: on none, and on layers that do not exist.
        """
        n_layers = self.model.spec.n_layers
        chosen = list(range(-1, n_layers) if layers is None else layers)
        if not chosen:
            raise MechnumError("no layers to patch: name at least one, or leave `layers` out")
        outside = [layer for layer in chosen if not -1 <= layer < n_layers]
        if outside:
            raise MechnumError(
                f"layer {outside[0]} does not exist: {self.model.name} has layers −1 (the "
                f"embedding) to {n_layers - 1}"
            )
        return chosen

    def fitted(
        self,
        estimators: Mapping[str, Estimator | None],
        variables: Sequence[str],
        layers: Sequence[int],
        folds: int | None,
        seed: int,
    ) -> tuple[
        Float32[np.ndarray, "layer method pair d_model"], Float64[np.ndarray, "layer method"]
    ]:
        """What each fit says of the clean prompts' states, and its R² over the pairs.

        Args:
            estimators: by method; all are fitted to the same variables. None is the state itself.
            folds: see `mechnum.helix.crossfit.parts_by_value`.

        Raises:
            MechnumError: where the prompts have too few numbers for the columns.
        """
        numbers, asked = self.numbers(variables), self.clean_numbers(variables)
        real = {name: one for name, one in estimators.items() if one is not None}
        parts = parts_by_value(numbers, asked, folds, seed)
        fits = CrossFits.of(real, numbers, asked, parts)
        shape = (len(layers), len(estimators), len(asked), self.model.spec.d_model)
        values = np.empty(shape, dtype=np.float32)
        r2 = np.full(shape[:2], np.nan)
        for row, layer in enumerate(track(layers, f"fitting states at {self.position}")):
            true = self.clean_states[layer + 1].astype(np.float64)
            found = fits.predictions(self.states[layer + 1].astype(np.float64), true)
            differ = bool((true != true[0]).any())
            for column, name in enumerate(estimators):
                predicted = found.get(name, true)
                values[row, column] = predicted
                r2[row, column] = explained_variance(true, predicted) if differ else np.nan
        return values, r2

    @property
    def _clean(self) -> tuple[Prompts, ...]:
        return tuple(group.clean for group in self.pairs.groups)

    @property
    def _order(self) -> Int[np.ndarray, " pair"]:
        return np.argsort(np.concatenate([group.index.numpy() for group in self.pairs.groups]))
