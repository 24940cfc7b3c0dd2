"""How well the tokens of a process can be predicted at all, in nats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float64
from scipy.special import entr

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer
from mechnum.tasks.processes.chains import closed_classes
from mechnum.tasks.processes.process import Process, from_matrices
from mechnum.tasks.processes.tree import Level, levels

NODES = 300_000
"""Nodes of one depth up to which the bounds of an entropy rate are tightened."""


@dataclass(frozen=True)
class EntropyRate:
    """Nats for each token, in the long run.

    Attributes:
        value: halfway between the bounds.
        low, high: proven bounds; equal to `value` where it is exact.
    """

    value: float
    low: float
    high: float


def myopic_entropy(process: Process, length: int) -> xr.Dataset:
    """Entropy of the next token after 0 to `length` − 1 tokens, which no predictor beats.

    The mean of the first n is the least mean cross-entropy on strings of n tokens that start with
    the process. From a stationary start it falls to the entropy rate (Cover & Thomas 2006, theorem
    4.2.1); from another it may go up and down for ever, as that of column addition does.

    Returns:
        `entropy` over `seen`, the number of tokens that were seen, in nats.

    Raises:
        MechnumError: where there are too many different beliefs.
    """
    positive_integer("length", length)
    found = [next_entropy(process, level) for level in levels(process, length - 1)]
    return xr.Dataset(
        {"entropy": ("seen", found, {"units": "nats"})},
        coords={"seen": np.arange(length)},
        attrs={"process": process.name},
    )


def entropy_rate(process: Process, tolerance: float = 1e-3) -> EntropyRate:
    """The limit of the myopic entropy, or of its running mean where the start is not stationary.

    Exact where token and state tell the next state (unifilar processes): the mean entropy of the
    states' own tokens. Elsewhere there is no closed form, and it lies between the entropy of the
    next token given all tokens before it, with and without the state that they began in (Cover &
    Thomas 2006, theorem 4.5.1); more tokens are taken until the two are close enough. A process of
    several closed classes has the mean of their rates.

    Args:
        tolerance: largest distance of the bounds, in nats.

    Raises:
        MechnumError: where that takes too many tokens; the message has the bounds.
    """
    if not tolerance > 0:
        raise MechnumError(f"a tolerance of {tolerance} nats is none: give a positive number")
    transition = process.transition
    classes = closed_classes(transition)
    inside = np.concatenate(classes)
    transient = np.setdiff1d(np.arange(process.n_states), inside)
    arriving = process.start.copy()
    # Expected visits to transient states, and so how much leaves from each for a class.
    stays = np.eye(len(transient)) - transition[np.ix_(transient, transient)]
    visits = np.linalg.solve(stays.T, process.start[transient])
    arriving[inside] += visits @ transition[np.ix_(transient, inside)]
    rates = []
    for own in classes:
        matrices = process.matrices[:, own][:, :, own]
        part = from_matrices(matrices, process.name, process.tokens)
        weight = float(arriving[own].sum())
        if weight > 0:
            rates.append(weight * np.array(_bounds(part, tolerance)))
    low, high = np.sum(rates, axis=0)
    return EntropyRate(float(low + high) / 2, float(low), float(high))


def next_entropy(process: Process, level: Level) -> float:
    """Mean entropy of the next token at the nodes of a level."""
    return float(level.probability @ entr(process.next_token(level.beliefs)).sum(axis=1))


def _bounds(process: Process, tolerance: float) -> tuple[float, float]:
    """Bounds of the entropy rate of a process whose states all reach each other."""
    if ((process.matrices > 0).sum(axis=2) <= 1).all():
        exact = float(process.start @ entr(process.emission).sum(axis=1))
        return exact, exact
    depth = 64
    without = levels(process, depth)
    known: Float64[np.ndarray, "state state"] = np.eye(process.n_states)
    given = levels(process, depth, starts=known, weights=process.start)
    low, high = 0.0, float(np.log(process.n_tokens))
    for blind, seeing in zip(without, given, strict=True):
        high = next_entropy(process, blind)
        low = min(next_entropy(process, seeing), high)
        if high - low <= tolerance:
            return low, high
        if len(seeing.beliefs) * process.n_tokens > NODES:
            break
    raise MechnumError(
        f"the entropy rate of {process.name} is between {low:.6g} and {high:.6g} nats, and closer "
        f"bounds take too many tokens: give a tolerance above {high - low:.2g}"
    )
