"""Is a circuit the model? Faithfulness, completeness, minimality, and curves over sizes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float
from scipy.stats import bootstrap
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.intervals import CHUNK_VALUES, RESAMPLES
from mechnum.models.model import Model
from mechnum.patching.circuit.circuit import Circuit
from mechnum.patching.circuit.graph import graph_of
from mechnum.patching.circuit.run import circuit_scores, needs, pair_bytes
from mechnum.patching.edges import Edge
from mechnum.patching.intervention import Intervention
from mechnum.patching.measure import measure
from mechnum.patching.metrics import MetricName
from mechnum.patching.sources import source
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import Pairs

# Below this share of the metrics' own size, the difference that is to be explained is none.
SMALLEST_GAP = 1e-3
# And below this it is rounding, whatever their size.
_ROUNDING = 1e-6


def faithfulness(
    model: Model,
    pairs: Pairs,
    circuits: Circuit | Mapping[str, Circuit],
    metric: MetricName = "logit_diff",
    values: ValueName = "other",
    mean_over: MeanOver = "position",
    seed: int = 0,
) -> xr.Dataset:
    """How much of the model's metric a circuit keeps when every other edge is cut.

    The clean prompt is run; edges outside the circuit carry the other values. With m(C) the mean
    metric over pairs, faithfulness is (m(C) − m(∅)) / (m(M) − m(∅)), where M has all edges and ∅
    none (Mueller et al. 2025, section 3.1; Hanna et al. 2024).

    Args:
        circuits: one, or several by name. Where they name neurons, these are nodes apart and their
            MLP's node is the rest of it.
        values: what cut edges carry: the corrupt prompt's writes ("other"), "zero", the "mean" over
            clean prompts, or those of another clean prompt ("resample").

    Returns:
        `faithfulness` with `low` and `high` (95 % percentile bootstrap over pairs) and `status`
        over circuit; `metric` over (pair, circuit), `model_metric` and `empty_metric` over pair.
        Where the gap m(M) − m(∅) vanishes (below a thousandth of the metrics' size), faithfulness
        is NaN and `status` says so; it is "measured" otherwise.

    Raises:
        MechnumError: on edges that the model does not have.
    """
    if not isinstance(circuits, Circuit | Mapping):
        raise MechnumError("circuits are one Circuit or several by name: give {'name': circuit}")
    named = {"circuit": circuits} if isinstance(circuits, Circuit) else dict(circuits)
    if not named:
        raise MechnumError("no circuits were given: give at least one")
    runs = CircuitRuns(
        model, pairs, [c.edges for c in named.values()], metric, values, mean_over, seed
    )
    found = runs.scores([runs.graph.mask(circuit.edges) for circuit in named.values()])
    return found.assign_coords(circuit=list(named)).assign_attrs(runs.said)


class CircuitRuns:
    """Circuits of one graph on one set of pairs.

    Args:
        edges: sets of edges whose neurons are nodes of the graph.
    """

    def __init__(
        self,
        model: Model,
        pairs: Pairs,
        edges: Sequence[Collection[Edge]],
        metric: MetricName,
        values: ValueName,
        mean_over: MeanOver,
        seed: int,
    ) -> None:
        self.model = model
        self.pairs = pairs
        self.seed = seed
        intervention = Intervention("all", metric, "noise", values, mean_over, seed)
        self.said = {**intervention.said(model, pairs), "smallest_gap": SMALLEST_GAP}
        pairs.check_fits(model)
        self.graph = graph_of(model.spec, [edge for own in edges for edge in own])
        longest = max(group.clean.tokens.shape[1] for group in pairs.groups)
        states = set(needs(model.spec))
        held = pair_bytes(self.graph, longest)
        self.given = source(model, pairs, intervention, states, states, held)

    def metrics(
        self, masks: Sequence[Bool[Tensor, "sender receiver"]]
    ) -> Float[np.ndarray, "pair circuit"]:
        """The metric of each pair in each circuit."""
        stacked = torch.stack(list(masks))
        found = measure(
            self.model,
            self.pairs,
            self.given,
            lambda place, scorer: {
                "metric": circuit_scores(place, self.graph, stacked, scorer.score)
            },
            {"circuit": list(range(len(masks)))},
            "circuits",
        )
        return found["metric"].values

    def scores(self, masks: Sequence[Bool[Tensor, "sender receiver"]]) -> xr.Dataset:
        """Faithfulness of each circuit, between that of all edges and that of none."""
        possible = torch.from_numpy(self.graph.possible)
        metrics = self.metrics([possible, torch.zeros_like(possible), *masks])
        full, empty, own = metrics[:, 0], metrics[:, 1], metrics[:, 2:]
        share, low, high, status = ratio(own - empty[:, None], full - empty, full, empty, self.seed)
        n_circuits = len(masks)
        return xr.Dataset(
            {
                "faithfulness": ("circuit", share),
                "low": ("circuit", low),
                "high": ("circuit", high),
                "status": ("circuit", [status] * n_circuits),
                "n_edges": ("circuit", [int((mask & possible).sum()) for mask in masks]),
                "metric": (("pair", "circuit"), own),
                "model_metric": ("pair", full),
                "empty_metric": ("pair", empty),
            },
            {"circuit": np.arange(n_circuits), "pair": np.arange(len(own))},
        )


def ratio(
    kept: Float[np.ndarray, "pair circuit"],
    gap: Float[np.ndarray, " pair"],
    full: Float[np.ndarray, " pair"],
    empty: Float[np.ndarray, " pair"],
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Mean of `kept` over mean of `gap`, its interval, and whether the gap is one at all."""
    nothing = np.full(kept.shape[1], np.nan)
    size = 0.5 * float(np.mean(np.abs(full) + np.abs(empty)))
    if not abs(float(gap.mean())) > max(SMALLEST_GAP * size, _ROUNDING):
        return (
            nothing,
            nothing,
            nothing,
            f"no gap: a difference of {gap.mean():.3g} between metrics of {full.mean():.3g} and "
            f"{empty.mean():.3g} is too small to be shared out",
        )
    share = kept.mean(0) / gap.mean()
    if len(gap) < 2:
        return share, nothing, nothing, "measured"

    def of_means(rows: Any, gaps: Any, axis: int = -1) -> Any:
        return rows.mean(axis) / gaps.mean(axis)

    interval = bootstrap(
        (kept, np.broadcast_to(gap[:, None], kept.shape)),
        of_means,
        axis=0,
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, CHUNK_VALUES // max(kept.size, 1)),
        method="percentile",
        rng=np.random.default_rng(np.random.SeedSequence(seed)),
    ).confidence_interval
    return share, interval.low, interval.high, "measured"
