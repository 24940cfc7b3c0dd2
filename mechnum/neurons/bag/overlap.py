"""How much the top of a neuron's map overlaps with a set of prompts, and by chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Int
from scipy.special import gammaln
from scipy.stats import rankdata

# Sums of float32 shares of tied prompts are this near to the numbers that they stand for.
_ROUNDING = 1e-3


class Ranks(NamedTuple):
    """Where each prompt stands in a neuron's map, the largest value first.

    Attributes:
        before: how many prompts have a larger value.
        tied: how many have the very same value, with the prompt itself.
    """

    before: Float[np.ndarray, "prompt node"]
    tied: Float[np.ndarray, "prompt node"]

    @property
    def opposite(self) -> Ranks:
        """The ranks of the same maps with their smallest value first."""
        return Ranks(len(self.before) - self.before - self.tied, self.tied)


def ranks(values: Float[np.ndarray, "node prompt"]) -> Ranks:
    """Ranks of each neuron's prompts."""
    upto = rankdata(-values, "max", axis=1).astype(np.int64)
    # Tied prompts share this rank, and no others have it.
    n_nodes, n_prompts = upto.shape
    own = upto + (n_prompts + 1) * np.arange(n_nodes)[:, None]
    tied = np.bincount(own.ravel(), minlength=(n_prompts + 1) * n_nodes)[own]
    # Prompts first: a set of prompts is then a copy of whole rows.
    return Ranks(
        np.ascontiguousarray((upto - tied).T, dtype=np.float32),
        np.ascontiguousarray(tied.T, dtype=np.float32),
    )


def expected_overlap(order: Ranks, held: Int[np.ndarray, " row"]) -> Float[np.ndarray, " node"]:
    """How many of the prompts `held` are among as many top ones of each neuron, k of them.

    A prompt is surely in the top k where `before + tied` is no more than k. Of prompts that are
    tied across the end of the top, all are as likely: they count by their share, as random
    tie-breaking would on average, and never by their order.
    """
    inside = len(held) - order.before[held]
    inside /= order.tied[held]
    np.clip(inside, 0, 1, out=inside)
    return inside.sum(axis=0)


def chance(n_prompts: int, k: int) -> Float64[np.ndarray, " overlap"]:
    """P(overlap ≥ x) for x = 0 … k, where k top prompts are drawn by chance (hypergeometric)."""
    drawn = np.arange(max(0, 2 * k - n_prompts), k + 1)
    # scipy.stats.hypergeom has the same numbers, at a hundred times the cost.
    mass = np.zeros(k + 1)
    mass[drawn] = np.exp(
        _log_choose(k, drawn)
        + _log_choose(n_prompts - k, k - drawn)
        - _log_choose(n_prompts, np.array([k]))
    )
    # From the small end, so that small tails are sums of small numbers.
    return np.minimum(np.cumsum(mass[::-1])[::-1], 1.0)


def _log_choose(n: int, k: Int[np.ndarray, "*drawn"]) -> Float64[np.ndarray, "*drawn"]:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def p_values(
    overlap: Float[np.ndarray, " node"], chances: Float64[np.ndarray, " overlap"]
) -> Float64[np.ndarray, " node"]:
    """How likely chance gives an overlap as large; an expected one counts as the whole below."""
    return chances[np.floor(overlap + _ROUNDING).astype(np.int64)]


def p_of_either_end(
    order: Ranks, held: Int[np.ndarray, " row"], chances: Float64[np.ndarray, " overlap"]
) -> Float64[np.ndarray, " node"]:
    """How likely chance gives as large an overlap with the top or with the bottom of a map."""
    own = Ranks(order.before[held], order.tied[held])
    n_prompts, k = len(order.before), np.arange(len(held))
    low = Ranks(n_prompts - own.before - own.tied, own.tied)
    ends = [p_values(expected_overlap(end, k), chances) for end in (own, low)]
    return np.minimum(2 * np.minimum(*ends), 1.0)
