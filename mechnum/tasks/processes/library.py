"""The processes of the literature, and controls on which belief states say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mechnum.errors import MechnumError
from mechnum.tasks.processes.process import Process, as_array, distribution, from_matrices


def mess3(x: float = 0.05, a: float = 0.85) -> Process:
    """Three states, three tokens, and a fractal of beliefs (Marzen & Crutchfield 2017).

    A state stays with 1 − 2x and goes to each other one with x; then the state that it came to is
    emitted with a, and each other token with (1 − a) / 2. The defaults are those of Shai et al.
    2024, section 3.

    Raises:
        MechnumError: unless 0 ≤ x ≤ 1/2 and 0 ≤ a ≤ 1.
    """
    _probability("x", x, 0.5)
    _probability("a", a)
    moves = np.full((3, 3), x) + (1 - 3 * x) * np.eye(3)
    emits = np.full((3, 3), (1 - a) / 2) + (a - (1 - a) / 2) * np.eye(3)
    matrices = moves[None] * emits[:, None, :]
    return from_matrices(matrices, f"mess3:{x:g},{a:g}", states=("A", "B", "C"))


def rrxor() -> Process:
    """Two random bits and their exclusive or, over and over (Shai et al. 2024, section 3).

    States: S before the first bit, "0" and "1" after it, F and T where the third bit is known.
    """
    matrices = _matrices(
        ("S", "0", "1", "T", "F"),
        2,
        [
            ("S", 0, "0", 0.5),
            ("S", 1, "1", 0.5),
            ("0", 0, "F", 0.5),
            ("0", 1, "T", 0.5),
            ("1", 0, "T", 0.5),
            ("1", 1, "F", 0.5),
            ("F", 0, "S", 1.0),
            ("T", 1, "S", 1.0),
        ],
    )
    return from_matrices(matrices, "rrxor", states=("S", "0", "1", "T", "F"))


def z1r() -> Process:
    """Zero, one, random bit, over and over (Shai et al. 2024, section 2)."""
    edges = [("0", 0, "1", 1.0), ("1", 1, "R", 1.0), ("R", 0, "0", 0.5), ("R", 1, "0", 0.5)]
    states = ("0", "1", "R")
    return from_matrices(_matrices(states, 2, edges), "z1r", states=states)


def golden_mean(p: float = 0.5) -> Process:
    """Bits without two zeros in a row (Crutchfield & Feldman 2003).

    State A emits 0 with p and goes to B, else 1; B emits 1 and goes to A.

    Raises:
        MechnumError: unless 0 ≤ p ≤ 1.
    """
    _probability("p", p)
    edges = [("A", 1, "A", 1 - p), ("A", 0, "B", p), ("B", 1, "A", 1.0)]
    return from_matrices(_matrices(("A", "B"), 2, edges), f"golden_mean:{p:g}", states=("A", "B"))


def even(p: float = 0.5) -> Process:
    """Bits whose runs of ones between zeros have even length (Crutchfield & Feldman 2003).

    State A emits 1 with p and goes to B, else 0; B emits 1 and goes to A. Only a 0 tells
    where in a run of ones the process is.

    Raises:
        MechnumError: unless 0 ≤ p ≤ 1.
    """
    _probability("p", p)
    edges = [("A", 0, "A", 1 - p), ("A", 1, "B", p), ("B", 1, "A", 1.0)]
    return from_matrices(_matrices(("A", "B"), 2, edges), f"even:{p:g}", states=("A", "B"))


def iid(probabilities: Sequence[float] = (0.5, 0.5)) -> Process:
    """Tokens that know nothing of each other: one hidden state, so that beliefs never change.

    Raises:
        MechnumError: where the numbers are no distribution.
    """
    if not len(probabilities):
        raise MechnumError("iid has no probabilities: give one for each token")
    law = distribution(probabilities, len(probabilities), "the distribution of iid")
    return from_matrices(law[:, None, None], f"iid:{','.join(f'{p:g}' for p in law)}")


def visible(transition: Any, name: str = "visible") -> Process:
    """A Markov chain that emits the state that it goes to: after one token nothing is hidden.

    Args:
        transition: P(next state | state), [state, state].

    Raises:
        MechnumError: as `from_matrices`.
    """
    moves = as_array(transition)
    if moves.ndim != 2 or moves.shape[0] != moves.shape[1] or not moves.size:
        raise MechnumError("the transition is no square matrix: give P(next state | state)")
    return from_matrices(moves[None] * np.eye(len(moves))[:, None, :], name)


def _matrices(
    states: Sequence[str], n_tokens: int, edges: Sequence[tuple[str, int, str, float]]
) -> np.ndarray:
    """Matrices from edges (state, token, next state, probability)."""
    matrices = np.zeros((n_tokens, len(states), len(states)))
    for before, token, after, probability in edges:
        matrices[token, states.index(before), states.index(after)] = probability
    return matrices


def _probability(name: str, value: float, most: float = 1.0) -> None:
    if not 0 <= value <= most:
        raise MechnumError(f"{name} is {value}: give a number from 0 to {most:g}")
