"""Completeness and minimality: does a circuit leave something out, and could it be smaller?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.patching.circuit.circuit import Circuit
from mechnum.patching.circuit.faithfulness import CircuitRuns
from mechnum.patching.metrics import MetricName
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import Pairs


def completeness(
    model: Model,
    pairs: Pairs,
    circuit: Circuit,
    metric: MetricName = "logit_diff",
    values: ValueName = "other",
    mean_over: MeanOver = "position",
    n_subsets: int = 10,
    seed: int = 0,
) -> xr.Dataset:
    """What the model still does without the circuit.

    With F the faithfulness: `complement` is F(M∖C), near 0 where the circuit is all that matters
    (Marks et al. 2025, section 4), and `completeness` is 1 − F(M∖C). For random halves K of the
    circuit, `incompleteness` is |F(C∖K) − F(M∖K)|: what the model does where the circuit lacks K is
    then what the circuit does (Wang et al. 2022, section 4.2).

    Returns:
        `completeness` and `complement`, single numbers; `incompleteness` over subset; `status`.

    Raises:
        MechnumError: on edges that the model does not have, and an empty circuit.
    """
    edges = _edges(circuit)
    runs = CircuitRuns(model, pairs, [edges], metric, values, mean_over, seed)
    possible = torch.from_numpy(runs.graph.possible)
    own = runs.graph.mask(edges)
    generator = np.random.default_rng(np.random.SeedSequence(seed))
    dropped = [
        runs.graph.mask(
            [edges[row] for row in generator.permutation(len(edges))[: max(1, len(edges) // 2)]]
        )
        for _ in range(n_subsets)
    ]
    masks = [possible & ~own]
    for half in dropped:
        masks += [own & ~half, possible & ~half]
    found = runs.scores(masks)
    share = found["faithfulness"].values
    return xr.Dataset(
        {
            "completeness": 1 - share[0],
            "complement": share[0],
            "incompleteness": ("subset", np.abs(share[1::2] - share[2::2])),
            "status": str(found["status"].values[0]),
        },
        {"subset": np.arange(n_subsets)},
        runs.said,
    )


def minimality(
    model: Model,
    pairs: Pairs,
    circuit: Circuit,
    metric: MetricName = "logit_diff",
    values: ValueName = "other",
    mean_over: MeanOver = "position",
    smallest: float = 0.01,
    seed: int = 0,
) -> xr.Dataset:
    """What each edge of a circuit is worth: how its faithfulness changes without the edge.

    Args:
        smallest: an edge is needed where |change| is at least this.

    Returns:
        `change` over edge: F(C) − F(C∖{e}) (Wang et al. 2022, section 4.3, with K = ∅); `needed`
        over edge; `minimality`, the share of edges that are needed; `status`.

    Raises:
        MechnumError: on edges that the model does not have, and an empty circuit.
    """
    edges = _edges(circuit)
    runs = CircuitRuns(model, pairs, [edges], metric, values, mean_over, seed)
    own = runs.graph.mask(edges)
    found = runs.scores([own, *(own & ~runs.graph.mask([edge]) for edge in edges)])
    share = found["faithfulness"].values
    change = share[0] - share[1:]
    needed = np.abs(change) >= smallest
    measured = bool(np.isfinite(change).all())
    return xr.Dataset(
        {
            "change": ("edge", change),
            "needed": ("edge", needed),
            "minimality": needed.mean() if measured else np.nan,
            "status": str(found["status"].values[0]),
        },
        {"edge": [str(edge) for edge in edges]},
        {**runs.said, "smallest": smallest},
    )


def _edges(circuit: Circuit) -> Sequence:
    if not circuit.edges:
        raise MechnumError("the circuit has no edges: give one that has some")
    return sorted(circuit.edges)
