"""Exact values beside the largest estimates, and how far the two agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from scipy.stats import spearmanr

from mechnum.models.model import Model
from mechnum.models.spec import ModelSpec
from mechnum.patching.edges import Edge
from mechnum.patching.effects import effects
from mechnum.patching.intervention import Intervention
from mechnum.patching.nodes import Node, layer_nodes
from mechnum.patching.path.paths import edge_effects
from mechnum.patching.selection import Selection
from mechnum.tasks.pairs import Pairs

# Exact values of some cells of a table, of all pairs and positions.
Exact = Callable[[Bool[np.ndarray, "..."]], np.ndarray]


def confirmed(found: xr.Dataset, k: int, exact: Exact) -> xr.Dataset:
    """`found` with exact values of the `k` cells whose mean estimates are largest.

    Args:
        found: with `estimate` over (pair, [position,] ...).
        exact: from which cells are wanted, [[position,] ...], to their values, [pair, ...].

    Returns:
        With `exact`, NaN elsewhere, and the attributes `n_confirmed`, `rank_correlation` (Spearman,
        between mean estimates and mean exact values) and `largest_disagreement` of these means, in
        units of the metric.
    """
    mean = found["estimate"].mean("pair").values
    # Largest first; what is NaN comes last.
    order = np.argsort(-np.abs(mean), axis=None, kind="stable")
    top = order[: min(k, int(np.isfinite(mean).sum()))]
    wanted = np.zeros(mean.shape, dtype=bool)
    wanted.flat[top] = True
    values = np.where(wanted, exact(wanted), np.nan)
    found = found.assign(exact=(found["estimate"].dims, values))
    means = found["exact"].mean("pair").values
    return found.assign_attrs(n_confirmed=len(top), **agreement(mean.flat[top], means.flat[top]))


def agreement(
    estimates: Float[np.ndarray, " node"], exact: Float[np.ndarray, " node"]
) -> dict[str, float | str]:
    """How far estimates and exact values of the same nodes agree, as attributes."""
    said: dict[str, float | str] = {
        "largest_disagreement": float(np.abs(estimates - exact).max()),
        "rank_correlation": "undefined: fewer than two different values",
    }
    if min(len(np.unique(estimates)), len(np.unique(exact))) > 1:
        said["rank_correlation"] = float(spearmanr(estimates, exact).statistic)
    return said


def exact_nodes(
    model: Model, pairs: Pairs, selection: Selection, intervention: Intervention
) -> Exact:
    """Total effects of the nodes of a table."""
    nodes = _nodes_by_column(selection, model.spec)

    def exact(wanted: Bool[np.ndarray, "..."]) -> np.ndarray:
        cells = wanted.reshape(-1, len(nodes))
        columns = np.flatnonzero(cells.any(0))
        chosen = [nodes[column] for column in columns]
        total = effects(model, pairs, chosen, estimands=("total",), **asdict(intervention))
        total = total["total"].values
        values = np.full((*total.shape[:-1], len(nodes)), np.nan)
        values[..., columns] = total
        return values.reshape(len(pairs), *wanted.shape)

    return exact


def exact_edges(
    model: Model,
    pairs: Pairs,
    senders: list[Node],
    receivers: list[Node],
    intervention: Intervention,
) -> Exact:
    """Path effects of the variant "edge"; no others are computed than those that are wanted."""

    def exact(wanted: Bool[np.ndarray, "..."]) -> np.ndarray:
        matrix = np.any(wanted.reshape(-1, len(senders), len(receivers)), axis=0)
        rows, columns = np.nonzero(matrix)
        edges = [Edge(senders[row], receivers[at]) for row, at in zip(rows, columns, strict=True)]
        found = edge_effects(model, pairs, edges, intervention)["effect"].values
        values = np.full((*found.shape[:-1], *matrix.shape), np.nan)
        values[..., rows, columns] = found
        return values

    return exact


def _nodes_by_column(selection: Selection, spec: ModelSpec) -> list[Node]:
    """The node of each column of a flat table."""
    nodes: dict[int, Node] = {}
    for cell in selection.cells:
        own = layer_nodes(cell.kind, cell.layer, spec)
        parts = range(len(own)) if cell.parts is None else cell.parts.tolist()
        nodes.update(zip(cell.columns.tolist(), [own[part] for part in parts], strict=True))
    return [nodes[column] for column in sorted(nodes)]
