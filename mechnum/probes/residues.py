"""Is n mod m readable? The linear probe of residues as an estimator on numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Float64, Int
from sklearn.pipeline import Pipeline

from mechnum.errors import InvalidInput
from mechnum.fourier.probes import kappa, residue_reader
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.probes.base import NumberProbe
from mechnum.probes.values import numbers_of_states


class ResidueProbe(NumberProbe):
    """Reads n mod m by a shrunk linear discriminant: `fourier.residue_probe` as an estimator.

    It is fitted to states and their numbers, as the other probes, and predicts residues. Source: Fu
    et al. 2026 (arXiv 2604.20817), who score held-out numbers by Cohen's κ.

    Args:
        modulus: m, 2 or more.
        components: principal components of the scaled training states that are used, at most.
        seed: of the principal components, where their solver is a random one.

    Attributes:
        classes_: the residues that fit saw.
        reader_: the fitted pipeline of scaling, principal components and discriminant.
    """

    numbers = None
    reader_: Pipeline

    def __init__(self, modulus: int = 10, components: int = 100, seed: int = 0) -> None:
        self.modulus = modulus
        self.components = components
        self.seed = seed

    def score(self, X: Any, y: Any) -> float:
        """Accuracy: the share of rows whose residue is read; y are the numbers, not residues."""
        read = self.predict(X)
        return float(np.mean(read == numbers_of_states(y, len(read)) % self.modulus))

    def kappa(self, X: Any, y: Any) -> float:
        """Cohen's κ of the residues read and those of the numbers y: 1 for all, 0 for chance."""
        read = self.predict(X)
        return kappa(numbers_of_states(y, len(read)) % self.modulus, read, self.modulus)

    def _fit(self, states: Float[np.ndarray, "row d"], values: Int[np.ndarray, " row"]) -> None:
        if positive_integer("modulus", self.modulus) < 2:
            raise InvalidInput("modulus is 1: give 2 or more, such as 10")
        residues = values % self.modulus
        self.classes_ = np.unique(residues)
        if len(self.classes_) < 2:
            raise InvalidInput(
                f"all numbers have the residue {self.classes_[0]}: give states of two or more"
            )
        state = int(seed_sequence(self.seed).generate_state(1)[0])
        reader = residue_reader(positive_integer("components", self.components), state)
        self.reader_ = reader.fit(states, residues)

    def _scores(self, states: Float[np.ndarray, "row d"]) -> Float64[np.ndarray, "row number"]:
        return self.reader_.decision_function(states)[:, 0]
