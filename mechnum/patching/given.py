"""Effects of values of one's own: fits of what a node computes, say, in place of what it does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.patching.batches import Direction, is_everywhere
from mechnum.patching.direct import NormHandling, check_norm
from mechnum.patching.effects import (
    Estimand,
    announce_effects,
    check_estimands,
    measured_effects,
)
from mechnum.patching.given_values import GivenValues, Table, checked_table, given_source
from mechnum.patching.intervention import Intervention
from mechnum.patching.joint import joint_scores
from mechnum.patching.local import Place, local_difference
from mechnum.patching.measure import Scorer, measure
from mechnum.patching.metrics import MetricName
from mechnum.patching.nodes import PER_HEAD, Node, NodeKind, Target, grouped, members
from mechnum.patching.path.targets import senders_named
from mechnum.patching.selection import select
from mechnum.tasks.pairs import Pairs

Route = Literal["all", "indirect", "direct"]
# Nodes that write to the residual stream by themselves, so that it is a path of their own.
_WRITERS: frozenset[NodeKind] = frozenset({"embed", "head", "attn", "mlp", "neuron"})


@dataclass(frozen=True)
class Given:
    """A value of one's own for a node, and who reads it.

    Attributes:
        values: [pair, width], in the order of the pairs' `index`; see `given_effects`.
        route: "all" readers, the "direct" path into the logits alone, or all but that path
            ("indirect"). Readers off the route get the node's value in the base run.

    Raises:
        MechnumError: on another route.
    """

    values: Any
    route: Route = "all"

    def __post_init__(self) -> None:
        if self.route not in get_args(Route):
            raise MechnumError(
                f"unknown route {self.route!r}: use one of {', '.join(get_args(Route))}"
            )


def given_effects(
    model: Model,
    pairs: Pairs,
    values: Mapping[Any, Any],
    nodes: str | Sequence[Target | str] | None = None,
    position: str | int = "end",
    metric: MetricName = "logit_diff",
    norm: NormHandling = "exact",
    direction: Direction = "denoise",
    estimands: Collection[Estimand] = ("total", "direct"),
) -> xr.Dataset:
    """Total, direct and indirect effect of nodes that take values of one's own.

    As `mechnum.effects`, whose definitions hold, but what is put in is given: one value for each
    pair, at one position (Kantamneni & Tegmark 2025, section 5, put fits of helices in).

    Args:
        values: node → [pair, width], NumPy or torch, in the order of the pairs' `index`. The width
            is d_head for heads (z) and q, k, v; 1 for neurons; d_model for attn, mlp, embed and
            residual states.
        nodes: which nodes or sets of them to patch; by default each node by itself. A set is
            patched together, in one run.
        position: name of a position of the pairs, or an index; not "all" or "each".

    Returns:
        `total`, `direct`, `direct_frozen` and `indirect` over (pair, node), `clean_metric` and
        `corrupt_metric` over pair, as `mechnum.effects`.

    Raises:
        MechnumError: on values that are not finite or of another shape, on nodes that have none or
            do not exist, and on pairs that the model cannot read.

    Warns:
        UserWarning: before a measurement that takes very long or very much memory.
    """
    intervention = _intervention(position, metric, direction)
    said = intervention.said(model, pairs)
    wanted = check_estimands(estimands)
    check_norm(norm)
    table = checked_table(model, pairs, values)
    targets = senders_named(list(table) if nodes is None else nodes, model.spec)
    for node in (node for target in targets for node in members(target)):
        if node not in table:
            raise MechnumError(f"{node} has no value: give one, or leave the node out")
    selection = select(targets, model.spec)
    pairs.check_fits(model)
    announce_effects(model, pairs, intervention, selection, wanted)
    source = given_source(model, intervention, table)
    found = measured_effects(model, pairs, source, selection, wanted, norm)
    return found.assign_attrs(said, values="given")


def joint_given_effects(
    model: Model,
    pairs: Pairs,
    sets: Mapping[str, Mapping[Any, Given]],
    position: str | int = "end",
    metric: MetricName = "logit_diff",
    direction: Direction = "denoise",
) -> xr.Dataset:
    """Joint effect of sets of nodes, of each of which only some readers get the given value.

    No node of a set passes on what it computes itself: readers on its route get the given value,
    all others its value in the base run. Nodes outside the set are recomputed from what they read.
    So with Δ = what the given value writes − what the base run's writes, for a single node

    - "all" is the total effect: Δ enters the residual stream where the node writes;
    - "direct" is the direct effect: Δ is added to the last residual, before the final norm, and
      nothing else reads it;
    - "indirect" is the total effect less the direct path: Δ enters where the node writes, and is
      taken out of the last residual again, before the final norm. It differs from total − direct
      by what the final norm bends.

    A set may mix routes in one run (the joint validation of Kantamneni & Tegmark 2025, section 5).

    Args:
        sets: name → node → its value and its route. The same node may take other values in other
            sets.
        position: as in `given_effects`.

    Returns:
        `effect` over (pair, set): metric of the patched run − metric of the base run;
        `clean_metric` and `corrupt_metric` over pair.

    Raises:
        MechnumError: as `given_effects`; on no sets or empty ones; on a node together with a part
            of it; and on routes of nodes that do not write by themselves.
    """
    intervention = _intervention(position, metric, direction)
    said = intervention.said(model, pairs)
    if not sets:
        raise MechnumError("no sets were given: give at least one set of nodes with values")
    chosen = [_JointSet.of(model, pairs, own) for own in sets.values()]
    pairs.check_fits(model)
    # One entry a node: what the base run must keep.
    every = {node: rows for own in chosen for node, rows in own.table.items()}
    source = given_source(model, intervention, every)
    found = measure(
        model,
        pairs,
        source,
        lambda place, scorer: {"effect": torch.stack([own.at(place, scorer) for own in chosen])},
        {"set": [str(name) for name in sets]},
        "joint effects of given values",
    )
    return found.assign_attrs(said, values="given")


@dataclass(frozen=True)
class _JointSet:
    """Values and routes of the nodes of one set."""

    table: Table
    routes: Mapping[Node, Route]

    @classmethod
    def of(cls, model: Model, pairs: Pairs, given: Mapping[Any, Given]) -> _JointSet:
        table = checked_table(model, pairs, {name: one.values for name, one in given.items()})
        chosen: list[Route] = [one.route for one in given.values()]
        routes = dict(zip(table, chosen, strict=True))
        for node, route in routes.items():
            if route != "all" and node.kind not in _WRITERS:
                raise MechnumError(
                    f"{node} has no direct path of its own: use route 'all', or one of "
                    f"{', '.join(sorted(_WRITERS))}"
                )
        _check_apart(routes)
        return cls(table, routes)

    def at(self, place: Place, scorer: Scorer) -> Float[Tensor, " pair"]:
        """The set's effect on the pairs of a place."""
        given = place.values
        assert isinstance(given, GivenValues), "sets are measured by a GivenSource"
        passed_on = {n: rows for n, rows in self.table.items() if self.routes[n] != "direct"}
        offset = self._direct(place, given)

        def score(last: Float[Tensor, "row pair d_model"]) -> Float[Tensor, "row pair"]:
            return scorer.score(last.to(offset.dtype) + offset)

        if not passed_on:
            return score(scorer.last.unsqueeze(0))[0] - scorer.base_score
        # What is in the set and not in the table keeps its value of the base run.
        patched = Place(place.decoder, place.base, given.of(passed_on), everywhere=False)
        return joint_scores(patched, [self.routes], score)[0] - scorer.base_score

    def _direct(self, place: Place, given: GivenValues) -> Float[Tensor, "pair d_model"]:
        """What the routes add to the last residual at the last position, or take from it."""
        here = Place(place.decoder, place.base, given.of(self.table), everywhere=False)
        offset = place.base.last.new_zeros(place.base.last[:, -1].shape, dtype=place.wide)
        for route, sign in (("direct", 1), ("indirect", -1)):
            nodes = [node for node, own in self.routes.items() if own == route]
            for group in grouped(enumerate(nodes)):
                parts = None if group.parts is None else torch.tensor(group.parts)
                local = local_difference(here, group.kind, group.layer, parts)
                written = local.write(slice(None), slice(-1, None))[:, :, 0]
                offset = offset + sign * written.sum(0)
        return offset


def _check_apart(nodes: Collection[Node]) -> None:
    """Refuses a node together with a part of it, whose value the whole would cover."""
    for node in nodes:
        whole = "attn" if node.kind in PER_HEAD else "mlp" if node.kind == "neuron" else None
        if whole is not None and Node(whole, node.layer) in nodes:
            raise MechnumError(f"{node} is a part of {whole} {node.layer}: name one of them")


def _intervention(position: str | int, metric: MetricName, direction: Direction) -> Intervention:
    if is_everywhere(position):
        raise MechnumError(
            f"given values lie at one position, not at {position!r}: name it, such as 'end'"
        )
    return Intervention(position, metric, direction, "other", "position", seed=0)
