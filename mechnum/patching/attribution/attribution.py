"""Estimates of effects from gradients: every node or edge for the price of a few runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import torch
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.patching.attribution.confirm import confirmed, exact_edges, exact_nodes
from mechnum.patching.attribution.edges import EdgeAttribution
from mechnum.patching.attribution.gradient_runs import gradient_bytes
from mechnum.patching.attribution.nodes import NodeAttribution
from mechnum.patching.attribution.sender_products import written_bytes
from mechnum.patching.batches import Direction
from mechnum.patching.cost import announce
from mechnum.patching.edges import named, possible
from mechnum.patching.intervention import Intervention
from mechnum.patching.local import states_to_keep
from mechnum.patching.measure import measure
from mechnum.patching.metrics import MetricName
from mechnum.patching.node_names import NodeNames
from mechnum.patching.nodes import Node, Target, label
from mechnum.patching.path.paths import path_source
from mechnum.patching.path.targets import receivers_named, senders_named
from mechnum.patching.selection import Selection, select
from mechnum.patching.sources import Source, source
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import Pairs

Method = Literal["gradient", "eap", "eap-ig"]
_POINTS = "other + k/{steps} × (base − other), k = 0 to {last}"


def attribute(
    model: Model,
    pairs: Pairs,
    method: Method = "eap-ig",
    nodes: NodeNames | None = None,
    senders: NodeNames = "components",
    receivers: NodeNames = "components",
    position: str | int | None = None,
    metric: MetricName = "logit_diff",
    direction: Direction = "denoise",
    values: ValueName = "other",
    mean_over: MeanOver = "position",
    ig_steps: int = 5,
    confirm: int = 0,
    seed: int = 0,
) -> xr.Dataset:
    """First-order estimates of what `mechnum.effects` and `mechnum.path_effects` measure.

    - `method="gradient"`: nodes. (value − base value) · ∂metric/∂state at the base run, summed over
      the patched positions, estimates the total effect (attribution patching: Nanda 2023; Syed et
      al. 2023, section 3).
    - `method="eap"`: edges. (what the sender writes − what it writes in the base run) ·
      ∂metric/∂(the receiver's own input, before its norm), summed over positions, estimates the
      path effect of the variant "edge" (edge attribution patching: Syed et al. 2023).
    - `method="eap-ig"`: the same for edges, or for nodes where `nodes` is given, with the mean of
      the gradients at `ig_steps` runs between the pair's two prompts (Hanna et al. 2024, section
      3). Run k of m has the embeddings other + (k/m)·(base − other), k = 0 … m − 1: the published
      code's points for edges, where base is the run that is patched. The other prompt is one of
      them, the base prompt is not. (That code's own scores of nodes take k = 1 … m.)

    Args:
        nodes: as in `mechnum.effects`, by default "heads"; no sets.
        senders, receivers: as in `mechnum.path_effects`; no sets.
        position: of the patch; None is "end" for nodes and "all" for edges, the defaults there.
        metric, direction, values, mean_over, seed: as in `mechnum.effects`. "eap-ig" needs the
            values of the other prompt.
        ig_steps: runs whose gradients "eap-ig" averages.
        confirm: for how many nodes or edges, those of the largest absolute mean estimate over
            pairs, the exact effects are measured too.

    Returns:
        `estimate` over (pair, ["position",] ...) with the further dimensions of the exact effects,
        (sender, receiver) for edges, NaN where an edge is impossible; `clean_metric` and
        `corrupt_metric` over pair. In units of the metric. The attributes `estimate` (the method)
        and `of` say what it is. With `confirm`, `exact` at the confirmed cells, NaN elsewhere, and
        the attributes `n_confirmed`, `rank_correlation` and `largest_disagreement`.

    Raises:
        MechnumError: on names that are not known, on nodes, edges and positions that do not exist,
            on sets, and on arguments that do not belong to the method.
    """
    of_nodes = method == "gradient" or (method == "eap-ig" and nodes is not None)
    _check(method, nodes, senders, receivers, of_nodes)
    steps = ig_steps if method == "eap-ig" else None
    if steps is not None:
        _check_ig(steps, values)
    if isinstance(confirm, bool) or not isinstance(confirm, int) or confirm < 0:
        raise MechnumError(f"cannot confirm {confirm!r} estimates: give a number from 0 up")
    if position is None:
        position = "end" if of_nodes else "all"
    intervention = Intervention(position, metric, direction, values, mean_over, seed)
    said = intervention.said(model, pairs)
    pairs.check_fits(model)
    if of_nodes:
        nodes = "heads" if nodes is None else nodes
        found = _of_nodes(model, pairs, nodes, intervention, steps, confirm)
    else:
        found = _of_edges(model, pairs, senders, receivers, intervention, steps, confirm)
    points = {} if steps is None else {"ig_steps": steps, "ig_points": _points(steps)}
    return found.assign_attrs(said, estimate=method, **points)


def _of_nodes(
    model: Model,
    pairs: Pairs,
    nodes: NodeNames,
    intervention: Intervention,
    ig_steps: int | None,
    confirm: int,
) -> xr.Dataset:
    selection = select(nodes, model.spec)
    _refuse_sets([*selection.sets.values()])
    found = node_estimates(model, pairs, selection, intervention, ig_steps)
    if not confirm:
        return found
    return confirmed(found, confirm, exact_nodes(model, pairs, selection, intervention))


def node_estimates(
    model: Model,
    pairs: Pairs,
    selection: Selection,
    intervention: Intervention,
    ig_steps: int | None = None,
) -> xr.Dataset:
    """Estimates of the total effects of the selection's nodes, as `attribute` gives them.

    Args:
        ig_steps: None for the gradient at the base run alone.
    """
    held = _gradient_bytes(model, pairs)
    given = source(model, pairs, intervention, *states_to_keep(selection.kinds), held)
    dims = {dim: selection.coords[dim] for dim in selection.dims}
    found = _measured(model, pairs, given, NodeAttribution(selection, ig_steps), dims)
    return found.assign_attrs(of="total effect", nodes=selection.said)


def _of_edges(
    model: Model,
    pairs: Pairs,
    senders: NodeNames,
    receivers: NodeNames,
    intervention: Intervention,
    ig_steps: int | None,
    confirm: int,
) -> xr.Dataset:
    rows = _refuse_sets(senders_named(senders, model.spec))
    columns = _refuse_sets(receivers_named(receivers, model.spec))
    wanted = possible(rows, columns, model.spec)
    if not wanted.any():
        raise MechnumError(
            f"{columns[-1]} reads before any of the senders writes: choose later receivers"
        )
    estimates = EdgeAttribution(rows, columns, wanted, ig_steps, model.spec)
    held = written_bytes(estimates.senders, model.spec, _length(pairs))
    held += _gradient_bytes(model, pairs)
    given = path_source(model, pairs, rows, columns, intervention, held)
    dims = {"sender": named(rows), "receiver": named(columns)}
    found = _measured(model, pairs, given, estimates, dims)
    found = found.assign_attrs(of="edge effect", variant="edge", norm="exact")
    if not confirm:
        return found
    return confirmed(found, confirm, exact_edges(model, pairs, rows, columns, intervention))


def _measured(
    model: Model,
    pairs: Pairs,
    given: Source,
    estimates: NodeAttribution | EdgeAttribution,
    dims: Mapping[str, Sequence[int] | Sequence[str]],
) -> xr.Dataset:
    if model.decoder.weights.W_E.is_inference():
        raise MechnumError(
            "the model was made under torch.inference_mode, so that it has no gradients: "
            "load it outside of that"
        )
    n_values = math.prod(map(len, dims.values()))
    announce(model, pairs, given.intervention, "estimates", n_values)
    # Within the caller's inference mode no gradient could be taken.
    with torch.inference_mode(False):
        return measure(model, pairs, given, estimates.at, dims, "attribution", estimates.each)


def _gradient_bytes(model: Model, pairs: Pairs) -> int:
    """About what gradients take for one pair."""
    length = _length(pairs)
    return gradient_bytes(model.spec, length, length)


def _length(pairs: Pairs) -> int:
    return max(group.clean.tokens.shape[1] for group in pairs.groups)


def _points(ig_steps: int) -> str:
    return _POINTS.format(steps=ig_steps, last=ig_steps - 1)


def _refuse_sets(targets: Sequence[Target]) -> list[Node]:
    nodes = []
    for target in targets:
        if not isinstance(target, Node):
            raise MechnumError(
                f"{label(target)} is a set, whose effect is not the sum of its nodes' estimates: "
                "name single nodes, or measure the set with mechnum.effects"
            )
        nodes.append(target)
    return nodes


def _check(
    method: str, nodes: NodeNames | None, senders: NodeNames, receivers: NodeNames, of_nodes: bool
) -> None:
    """Do the arguments belong to the method?"""
    if method not in get_args(Method):
        raise MechnumError(f"unknown method {method!r}: use one of {', '.join(get_args(Method))}")
    if method == "eap" and nodes is not None:
        raise MechnumError(
            "'eap' estimates edges, not nodes: use method='gradient' or 'eap-ig' for nodes, or "
            "name senders and receivers"
        )
    given = [isinstance(one, str) and one == "components" for one in (senders, receivers)]
    if of_nodes and not all(given):
        raise MechnumError(
            "nodes have no senders and receivers: leave these out, or use method='eap' or "
            "'eap-ig' without nodes for edges"
        )


def _check_ig(ig_steps: int, values: str) -> None:
    if isinstance(ig_steps, bool) or not isinstance(ig_steps, int) or ig_steps < 1:
        raise MechnumError(f"ig_steps={ig_steps!r} is no number of runs: give 1 or more")
    if values != "other":
        raise MechnumError(
            f"'eap-ig' takes gradients between a pair's two prompts, so not for values={values!r}: "
            "use values='other', or method='gradient' or 'eap'"
        )
