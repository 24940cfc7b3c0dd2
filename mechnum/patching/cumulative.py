"""How many nodes make up an effect: the best k patched together, for growing k."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.patching.batches import Direction
from mechnum.patching.circuit.faithfulness import ratio
from mechnum.patching.effects import effects
from mechnum.patching.intervention import Intervention
from mechnum.patching.joint import joint_scores
from mechnum.patching.local import states_to_keep
from mechnum.patching.measure import measure
from mechnum.patching.metrics import MetricName
from mechnum.patching.node_names import NodeNames, parse_target
from mechnum.patching.nodes import Node, label, members
from mechnum.patching.path.targets import senders_named
from mechnum.patching.sources import source
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import Pairs

# Shares of the whole effect whose k is looked up.
LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)


def cumulative(
    model: Model,
    pairs: Pairs,
    nodes: NodeNames = "heads",
    by: xr.DataArray | str = "total",
    ks: Sequence[int] | None = None,
    position: str | int = "end",
    metric: MetricName = "logit_diff",
    direction: Direction = "denoise",
    values: ValueName = "other",
    mean_over: MeanOver = "position",
    seed: int = 0,
) -> xr.Dataset:
    """The joint effect of the best k nodes as a share of that of all of them.

    The nodes are ranked on one half of the pairs and patched together on the other, so that a node
    that is best by chance gains nothing (the curves of Kantamneni & Tegmark 2025, section 5).

    Args:
        nodes: as in `mechnum.effects`; single nodes.
        by: "total" or "direct" effect to rank by, those first that have the sign of the effect of
            all nodes together (negative where the metric falls, as with direction "noise"); or
            scores of one's own over the nodes with their names as the coordinate "node", the
            largest first (then all pairs are patched).
        ks: by default every k up to 64, then as many again in equal ratios up to all nodes.

    Returns:
        `effect` over (pair, k), `share` with `low` and `high` (95 % bootstrap over pairs) and the
        node that comes last, `added`, over k; `whole` over pair, the joint effect of all nodes;
        `status`. The attribute `k_for` says at which k the share first reaches 50, 70, 80, 90, 95
        and 99 %. Where the whole effect vanishes the shares are NaN and `status` says so.

    Raises:
        MechnumError: on nodes that do not exist, on a sweep over positions, and where there are too
            few pairs for two halves.
    """
    if position == "each":
        raise MechnumError("positions have curves of their own: call cumulative for each position")
    intervention = Intervention(position, metric, direction, values, mean_over, seed)
    targets = senders_named(nodes, model.spec)
    singles = [node for target in targets for node in members(target)]
    if any(not isinstance(target, Node) for target in targets):
        raise MechnumError("sets have no rank of their own: name single nodes")
    if isinstance(by, str):
        if by not in ("total", "direct"):
            raise MechnumError(f"cannot rank by {by!r}: use 'total', 'direct' or scores of nodes")
        ranking, pairs = pairs.split(seed=seed)
        found = effects(model, ranking, singles, estimands=(by,), **asdict(intervention))
        scores = found[by].mean("pair").values
        together = effects(
            model, ranking, [frozenset(singles)], estimands=("total",), **asdict(intervention)
        )
        scores = scores * np.sign(together["total"].mean().item())
    else:
        scores = _given_scores(by, singles)
    order = [singles[row] for row in np.argsort(-scores, kind="stable")]
    sizes = _sizes(len(order), ks)
    said = intervention.said(model, pairs)
    pairs.check_fits(model)
    given = source(model, pairs, intervention, *states_to_keep({node.kind for node in order}))
    sets = [order[:size] for size in [*sizes, len(order)]]
    measured = measure(
        model,
        pairs,
        given,
        lambda place, scorer: {
            "effect": joint_scores(place, sets, scorer.score) - scorer.base_score
        },
        {"k": [*sizes, -1]},
        "cumulative effects",
    )
    effect, whole = measured["effect"].values[:, :-1], measured["effect"].values[:, -1]
    other, base = measured["clean_metric"].values, measured["corrupt_metric"].values
    share, low, high, status = ratio(effect, whole, other, base, seed)
    reached = {
        str(level): next((k for k, s in zip(sizes, share, strict=True) if s >= level), None)
        for level in LEVELS
    }
    return xr.Dataset(
        {
            "effect": (("pair", "k"), effect),
            "whole": ("pair", whole),
            "share": ("k", share),
            "low": ("k", low),
            "high": ("k", high),
            "added": ("k", [label(order[size - 1]) for size in sizes]),
            "status": status,
        },
        {"pair": np.arange(len(effect)), "k": sizes},
        {
            **said,
            "ranked_by": by if isinstance(by, str) else "given scores",
            "k_for": json.dumps(reached),
        },
    )


def _given_scores(by: xr.DataArray, nodes: Sequence[Node]) -> np.ndarray:
    if "node" not in by.coords:
        raise MechnumError("scores to rank by need the coordinate 'node' with the nodes' names")
    rest = [dim for dim in by.dims if dim != "node"]
    worth = dict(
        zip(
            (parse_target(str(name)) for name in by["node"].values),
            by.mean(rest).values.tolist(),
            strict=True,
        )
    )
    missing = [node for node in nodes if node not in worth]
    if missing:
        raise MechnumError(f"{missing[0]} has no score: give one for each node")
    return np.array([worth[node] for node in nodes])


def _sizes(n_nodes: int, ks: Sequence[int] | None) -> list[int]:
    if ks is None:
        tail = np.geomspace(64, n_nodes, 64).round().astype(int) if n_nodes > 64 else []
        return sorted({*range(1, min(64, n_nodes) + 1), *(int(k) for k in tail)})
    sizes = sorted(set(ks))
    if not sizes or sizes[0] < 1 or sizes[-1] > n_nodes:
        raise MechnumError(f"ks {list(ks)} are outside 1 to {n_nodes}, the number of nodes")
    return sizes
