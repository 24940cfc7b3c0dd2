"""Markov chains: closed classes and stationary laws."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int
from scipy.sparse.csgraph import connected_components

from mechnum.errors import MechnumError


def closed_classes(
    transition: Float64[np.ndarray, "state state"],
) -> list[Int[np.ndarray, " _"]]:
    """Sets of states that reach each other and that the chain never leaves."""
    reached = transition > 0
    n_classes, label = connected_components(reached, connection="strong")
    classes = [np.flatnonzero(label == index) for index in range(n_classes)]
    return [own for own in classes if not np.delete(reached[own], own, axis=1).any()]


def stationary_law(
    transition: Float64[np.ndarray, "state state"], states: tuple[str, ...], name: str
) -> Float64[np.ndarray, " state"]:
    """The only distribution that the transition leaves as it is; 0 on transient states.

    Raises:
        MechnumError: where there are several closed classes, with their states.
    """
    classes = closed_classes(transition)
    if len(classes) > 1:
        named = "; ".join("{" + ", ".join(states[i] for i in own) + "}" for own in classes)
        raise MechnumError(
            f"{name} has {len(classes)} closed classes, {named}, and so no single stationary law: "
            "give `start`"
        )
    law = np.zeros(len(transition))
    law[classes[0]] = _irreducible_law(transition[np.ix_(classes[0], classes[0])])
    return law


def _irreducible_law(transition: Float64[np.ndarray, "state state"]) -> np.ndarray:
    """By elimination without subtractions (Grassmann, Taksar & Heyman 1985).

    Each entry is right to rounding, however small it is; a null space gives small ones wrong and
    even negative.
    """
    left = transition.copy()
    for last in range(len(left) - 1, 0, -1):
        left[:last, last] /= left[last, :last].sum()
        left[:last, :last] += np.outer(left[:last, last], left[last, :last])
    law = np.ones(len(left))
    for state in range(1, len(left)):
        law[state] = law[:state] @ left[:state, state]
    return law / law.sum()
