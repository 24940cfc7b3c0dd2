"""The mixed-state tree: all beliefs that an observer of a process can come to hold.

Source: Shai et al. 2024, section 2 (mixed-state presentation).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int64
from scipy.spatial import KDTree

from mechnum.errors import MechnumError
from mechnum.tasks.processes.process import Process
from mechnum.tasks.processes.updates import continued, normalised

MOST = 2_000_000
"""Nodes that one depth of a tree may have."""


@dataclass(frozen=True)
class Level:
    """The nodes of one depth: the different beliefs after so many tokens.

    Attributes:
        beliefs: of each node.
        probability: that the process comes to it.
        strings: how many strings lead to it.
        steps: (node of the depth before, token, node here), one row for each edge.
    """

    beliefs: Float64[np.ndarray, "node state"]
    probability: Float64[np.ndarray, " node"]
    strings: np.ndarray
    steps: Int64[np.ndarray, "edge 3"]


def levels(
    process: Process,
    depth: int,
    tolerance: float = 1e-9,
    min_probability: float = 0.0,
    starts: Float64[np.ndarray, "node state"] | None = None,
    weights: Float64[np.ndarray, " node"] | None = None,
) -> Iterator[Level]:
    """The nodes of depth 0 to `depth`, breadth first.

    Strings to the same belief are one node, so that a process of few beliefs has few nodes at any
    depth. Merged beliefs are averaged by probability: that is the belief of an observer who knows
    only that one of those strings came.

    Args:
        starts, weights: several beliefs to begin with, instead of the process' start.

    Raises:
        MechnumError: on a depth, tolerance or probability below 0, and where there are too many
            nodes.
    """
    if depth < 0 or depth % 1 or not tolerance >= 0 or not 0 <= min_probability < 1:
        raise MechnumError(
            f"no tree has depth {depth}, tolerance {tolerance} and smallest probability "
            f"{min_probability}: give numbers from 0, the first one whole, the last one below 1"
        )
    beliefs = process.start[None] if starts is None else starts
    probability = np.ones(len(beliefs)) / len(beliefs) if weights is None else weights
    # Counts stay exact as long as they fit.
    kind = np.int64 if process.n_tokens**depth < 2**62 else np.float64
    level = Level(beliefs, probability, np.ones(len(beliefs), kind), np.zeros((0, 3), np.int64))
    yield level
    for below in range(1, depth + 1):
        level = _next_level(process, level, tolerance, min_probability)
        if len(level.beliefs) > MOST:
            raise MechnumError(
                f"{process.name} has {len(level.beliefs)} beliefs at depth {below}: ask for less "
                "depth, or prune with a larger min_probability"
            )
        yield level


def mixed_state_tree(
    process: Process, depth: int, tolerance: float = 1e-9, min_probability: float = 0.0
) -> xr.Dataset:
    """All beliefs after 0 to `depth` tokens, and how they lead to each other.

    Args:
        tolerance: beliefs that are no further apart (Euclidean) are one.
        min_probability: nodes that are less likely are cut off, with all that would follow.

    Returns:
        Over `node`, the distinct beliefs of each depth, breadth first: `depth`, `node_state` (its
        mixed state), `probability` (1 in all at each depth where nothing was cut) and `strings`,
        how many strings lead there, so that its sum is the size of the unmerged tree. Over
        `mixed_state`, the distinct beliefs of all depths in the order of first appearance:
        `belief` (…, state), `first_depth`, `next_token` (…, token), its distribution, and `to`
        (…, token), the mixed state after that token, −1 where it cannot come or the tree ends.

    Raises:
        MechnumError: as `levels`.
    """
    found = list(levels(process, depth, tolerance, min_probability))
    beliefs = np.concatenate([level.beliefs for level in found])
    depths = np.repeat(np.arange(len(found)), [len(level.beliefs) for level in found])
    label = merged(beliefs, tolerance)
    _, first = np.unique(label, return_index=True)
    to = np.full((len(first), process.n_tokens), -1)
    offset = 0
    for above, level in pairwise(found):
        before, token, after = level.steps.T
        to[label[offset + before], token] = label[offset + len(above.beliefs) + after]
        offset += len(above.beliefs)
    return xr.Dataset(
        {
            "depth": ("node", depths),
            "node_state": ("node", label),
            "probability": ("node", np.concatenate([level.probability for level in found])),
            "strings": ("node", np.concatenate([level.strings for level in found])),
            "belief": (("mixed_state", "state"), beliefs[first]),
            "first_depth": ("mixed_state", depths[first]),
            "next_token": (("mixed_state", "token"), process.next_token(beliefs[first])),
            "to": (("mixed_state", "token"), to),
        },
        coords={"state": list(process.states), "token": list(process.tokens)},
        attrs={
            "process": process.name,
            "max_depth": depth,
            "tolerance": tolerance,
            "min_probability": min_probability,
        },
    )


def merged(
    beliefs: Float64[np.ndarray, "row state"], tolerance: float
) -> Int64[np.ndarray, " row"]:
    """Which distinct belief each row is, numbered in the order of first appearance.

    The first of some beliefs stands for all that are within `tolerance` of it.
    """
    if tolerance < np.finfo(np.float64).eps:
        _, first, label = np.unique(beliefs, axis=0, return_index=True, return_inverse=True)
        return _by_appearance(first[label.reshape(-1)])
    # Equal ones first, on a grid; then those that a border of the grid keeps apart.
    cell = np.round(beliefs / tolerance).astype(np.int64)
    _, first, label = np.unique(cell, axis=0, return_index=True, return_inverse=True)
    label = label.reshape(-1)
    order = np.argsort(first)
    leader = np.arange(len(first))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    pairs = KDTree(beliefs[first[order]]).query_pairs(tolerance, output_type="ndarray")
    for early, late in pairs[np.lexsort(pairs.T[::-1])]:
        if leader[early] == early and leader[late] == late:
            leader[late] = early
    return _by_appearance(leader[rank[label]])


def _by_appearance(label: np.ndarray) -> Int64[np.ndarray, " row"]:
    _, first, dense = np.unique(label, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[dense.reshape(-1)]


def _next_level(process: Process, level: Level, tolerance: float, min_probability: float) -> Level:
    after, conditional = normalised(continued(process.matrices, level.beliefs))
    probability = level.probability[:, None] * conditional
    before, token = np.nonzero((probability > 0) & (probability >= min_probability))
    reached, weight = after[before, token], probability[before, token]
    if not len(before):
        raise MechnumError(
            f"all of {process.name} is less likely than {min_probability}: lower min_probability"
        )
    label = merged(reached, tolerance)
    n_nodes = int(label.max()) + 1
    total = np.bincount(label, weight, n_nodes)
    beliefs = np.stack(
        [np.bincount(label, weight * column, n_nodes) / total for column in reached.T], axis=1
    )
    strings = np.zeros(n_nodes, dtype=level.strings.dtype)
    np.add.at(strings, label, level.strings[before])
    return Level(beliefs, total, strings, np.column_stack([before, token, label]))
