"""A circuit whose scores are the exact effects of its edges."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechnum.models.model import Model
from mechnum.patching.batches import Direction
from mechnum.patching.circuit.circuit import Circuit
from mechnum.patching.edges import Edge
from mechnum.patching.intervention import Intervention
from mechnum.patching.metrics import MetricName
from mechnum.patching.path.paths import edge_effects
from mechnum.patching.statistics import summarise
from mechnum.tasks.pairs import Pairs


def with_exact_effects(
    model: Model,
    pairs: Pairs,
    circuit: Circuit,
    metric: MetricName = "logit_diff",
    direction: Direction = "denoise",
    seed: int = 0,
    **said: str | int | float,
) -> tuple[Circuit, xr.Dataset]:
    """The circuit with each edge's effect, measured by itself, and its 95 % interval over pairs.

    Args:
        pairs: others than those that its edges were chosen on: an edge that was large by chance
            gains nothing.
        said: attributes of the circuit, beside model, task and metric.

    Returns:
        The circuit, and `effect` over (pair, edge), as `mechnum.path_effects` of the variant "edge"
        at all positions.

    Raises:
        MechnumError: on edges that the model does not have.
    """
    intervention = Intervention("all", metric, direction, "other", "position", seed)
    effects = edge_effects(model, pairs, sorted(circuit.edges, key=str), intervention)
    statistics = summarise(effects["effect"], seed=seed)
    names = [Edge.parse(str(name)) for name in effects["edge"].values]
    ends = np.stack([statistics["low"].values, statistics["high"].values], axis=1).tolist()
    measured = Circuit(
        circuit.edges,
        dict(zip(names, statistics["mean"].values.tolist(), strict=True)),
        {edge: (low, high) for edge, (low, high) in zip(names, ends, strict=True)},
        {"model": model.name, "task": pairs.task, "metric": metric, **said},
    )
    return measured, effects
