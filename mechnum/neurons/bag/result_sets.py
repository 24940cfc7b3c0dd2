"""The few results that a neuron writes to most: its own set of them ("multi-result")."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mechnum.neurons.bag.kinds import MOST, MultiResult
from mechnum.neurons.bag.overlap import Ranks, chance, expected_overlap, p_of_either_end, p_values

SIZES = (2, 3, 4)
# The share of a neuron's top prompts that the set has to cover (Nikankin et al. 2025).
COVERED = 0.95
# How far below the set the next result has to be, of the way from the set to the median result: the
# crest of any wave has a few highest results, and others beside them that are nearly as high.
STANDS_OUT = 0.5


class ResultSet(NamedTuple):
    """One neuron's set of results.

    Attributes:
        p: of the overlap by chance, times the number of sets of `SIZES` that there are: the set
            was chosen from the very values that it is tested on.
    """

    heuristic: MultiResult
    score: float
    p: float


def best_sets(
    values: Float[np.ndarray, "node prompt"],
    order: Ranks,
    read: Ranks,
    result: Int[np.ndarray, " prompt"],
) -> list[ResultSet | None]:
    """For each neuron the set with the highest score, and the lowest p where they are equal.

    Of each size only the results with the largest mean value are looked at, and only where they
    stand out from the next one.

    Args:
        order: `ranks(values)`.
        read: ranks of the activations, which have to overlap with the set as well.

    Returns:
        None for a neuron whose sets all hold for too many prompts or do not stand out.
    """
    results, which = np.unique(result, return_inverse=True)
    counts = np.bincount(which)
    sizes = [size for size in SIZES if size < len(results)]
    n_sets = sum(comb(len(results), size) for size in sizes)
    belongs = np.zeros((len(result), len(results)))
    belongs[np.arange(len(result)), which] = 1
    means = values.astype(np.float64) @ belongs / counts
    falling = np.argsort(-means, axis=1, kind="stable")
    top = falling[:, : max(SIZES)]
    highest = np.take_along_axis(means, falling[:, : max(SIZES) + 1], axis=1)
    middle = np.median(means, axis=1)
    rows_of = [np.flatnonzero(which == one) for one in range(len(results))]
    found: list[ResultSet | None] = []
    for node, chosen in enumerate(top):
        written, own_read = (
            Ranks(of.before[:, node : node + 1], of.tied[:, node : node + 1])
            for of in (order, read)
        )
        best = None
        for size in sizes:
            held = np.concatenate([rows_of[place] for place in chosen[:size]])
            least, following = highest[node, size - 1 : size + 1]
            stands_out = least - following >= STANDS_OUT * (least - middle[node]) > 0
            if len(held) > MOST * len(result) or not stands_out:
                continue
            chances = chance(len(result), len(held))
            overlap = expected_overlap(written, held)
            p = max(p_values(overlap, chances)[0], p_of_either_end(own_read, held, chances)[0])
            own = MultiResult("result", tuple(sorted(results[chosen[:size]].tolist())))
            tried = ResultSet(own, float(overlap[0]) / len(held), float(min(1.0, n_sets * p)))
            if best is None or (-tried.score, tried.p) < (-best.score, best.p):
                best = tried
        found.append(best)
    return found
