"""Path patching: what a sender's difference does through the receivers that read it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, get_args

import numpy as np
import torch
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.decoder import StateName
from mechnum.models.model import Model
from mechnum.patching.batches import Direction
from mechnum.patching.cost import announce
from mechnum.patching.direct import NormHandling, check_norm
from mechnum.patching.edges import Edge, named, possible
from mechnum.patching.intervention import Intervention
from mechnum.patching.joint import ALL_FROZEN, Freezable
from mechnum.patching.local import states_to_keep
from mechnum.patching.measure import measure
from mechnum.patching.metrics import MetricName
from mechnum.patching.node_names import NodeNames
from mechnum.patching.nodes import NodeKind, Target, layers_above, members
from mechnum.patching.path.matrix import PathMatrix
from mechnum.patching.path.targets import receivers_named, senders_named
from mechnum.patching.sources import Source, source
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import Pairs

Variant = Literal["edge", "path"]
# States of the base run that a receiver's value meets, besides keys and values.
_READ: dict[NodeKind, tuple[StateName, ...]] = {"q": ("q",), "k": ("q",), "v": ("pattern",)}


def path_effects(
    model: Model,
    pairs: Pairs,
    senders: NodeNames = "heads",
    receivers: NodeNames = "q",
    variant: Variant = "edge",
    frozen: Collection[Freezable] = ALL_FROZEN,
    norm: NormHandling = "exact",
    position: str | int = "all",
    metric: MetricName = "logit_diff",
    direction: Direction = "denoise",
    values: ValueName = "other",
    mean_over: MeanOver = "position",
    seed: int = 0,
) -> xr.Dataset:
    """The effect of every sender through every receiver.

    - `variant="edge"`: the receivers' inputs, and nothing else, change by the difference of the
      sender's write; everything after the receivers is recomputed. The receivers of a set read the
      stream as those below them have left it (edges as in Conmy et al. 2023).
    - `variant="path"`: first the base run is run with the sender patched and the components that
      `frozen` names at their base values, and the receivers' values are read; then those alone are
      patched into the base run (Wang et al. 2022, section 3; Kantamneni & Tegmark 2025, section 5).

    For one receiver the two agree where everything is frozen. The receiver `logits` then gives the
    direct effect.

    Args:
        senders: "heads", "mlps" or another table of `mechnum.effects`, "embed", "components"
            (embedding, heads and MLPs), a list in words, or nodes and sets of them.
        receivers: "q", "k", "v" (keys and values by key-value group), "mlp_in", "neuron_in",
            "logits", "components" (all of these but neurons), a list in words, or nodes and sets.
        frozen: for paths, which components keep their base values: "attn" and "mlps".
        norm: whether the norm that a receiver reads through is recomputed, or keeps the base run's
            scale.
        position: where senders differ: "all" positions, one of them by name or index, or "each".
        values: what the senders' values are replaced with, as in `mechnum.effects`, as are
            `direction`, `metric` and `mean_over`.

    Returns:
        `effect` over (pair, sender, receiver), with "each" over position too, counted from the end:
        metric of the patched run minus metric of the base run. Edges that are impossible, since the
        receiver reads before the sender writes, are NaN. `clean_metric` and `corrupt_metric` over
        pair.

    Raises:
        MechnumError: on names that are not known, and on nodes that do not exist, write nothing or
            have no input.

    Warns:
        UserWarning: before a measurement that takes very long or very much memory.
    """
    rows = senders_named(senders, model.spec)
    columns = receivers_named(receivers, model.spec)
    wanted = possible(rows, columns, model.spec)
    if not wanted.any():
        raise MechnumError(
            f"{named(columns)[-1]} reads before any of the senders writes: choose later receivers"
        )
    intervention = Intervention(position, metric, direction, values, mean_over, seed)
    held = _check(variant, frozen, norm)
    said = intervention.said(model, pairs)
    pairs.check_fits(model)
    matrix = PathMatrix(rows, columns, wanted, held, variant == "edge", norm, model.spec)
    found = measured_paths(model, pairs, matrix, rows, columns, intervention)
    return found.assign_attrs(said, variant=variant, frozen=",".join(held), norm=norm)


def edge_effects(
    model: Model, pairs: Pairs, edges: Sequence[Edge], intervention: Intervention
) -> xr.Dataset:
    """The effect of some edges, each by itself, in one measurement.

    Returns:
        `effect` over (pair, edge), for a sweep over position too, as `path_effects` of the variant
        "edge" has it.

    Raises:
        MechnumError: on edges that the model does not have.
    """
    rows = sorted({edge.sender for edge in edges})
    columns = sorted({edge.receiver for edge in edges})
    wanted = np.zeros((len(rows), len(columns)), dtype=bool)
    for edge in edges:
        edge.check(model.spec)
        wanted[rows.index(edge.sender), columns.index(edge.receiver)] = True
    said = intervention.said(model, pairs)
    pairs.check_fits(model)
    matrix = PathMatrix(rows, columns, wanted, ALL_FROZEN, True, "exact", model.spec)
    found = measured_paths(model, pairs, matrix, rows, columns, intervention)
    names = {
        "sender": xr.DataArray([str(edge.sender) for edge in edges], dims="edge"),
        "receiver": xr.DataArray([str(edge.receiver) for edge in edges], dims="edge"),
    }
    found = found.sel(names).drop_vars(["sender", "receiver"])
    return found.assign_coords(edge=list(map(str, edges))).assign_attrs(
        said, variant="edge", frozen=",".join(ALL_FROZEN), norm="exact"
    )


def measured_paths(
    model: Model,
    pairs: Pairs,
    matrix: PathMatrix,
    senders: Sequence[Target],
    receivers: Sequence[Target],
    intervention: Intervention,
) -> xr.Dataset:
    """The effects of the wanted edges of a matrix, without attributes."""
    spec = model.spec
    above = [
        layers_above(min(node.written_at(spec) for node in members(one)), spec) for one in receivers
    ]
    n_layers_run = matrix.wanted.sum(0).double() @ torch.tensor(above, dtype=torch.float64)
    announce(model, pairs, intervention, "path effects", matrix.wanted.numel(), float(n_layers_run))
    given = path_source(model, pairs, senders, receivers, intervention)
    dims = {"sender": named(senders), "receiver": named(receivers)}
    return measure(model, pairs, given, matrix.at, dims, "path effects")


def path_source(
    model: Model,
    pairs: Pairs,
    senders: Sequence[Target],
    receivers: Sequence[Target],
    intervention: Intervention,
    pair_bytes: int = 0,
) -> Source:
    """The runs that paths between these nodes need."""
    sending: list[NodeKind] = [node.kind for sender in senders for node in members(sender)]
    states, replaced = states_to_keep(sending)
    for receiver in receivers:
        for node in members(receiver):
            states.update(_READ.get(node.kind, ()))
    return source(model, pairs, intervention, states, replaced, pair_bytes)


def _check(variant: str, frozen: Collection[Freezable], norm: str) -> tuple[Freezable, ...]:
    """The components that are frozen, once everything is known to exist."""
    if variant not in get_args(Variant):
        raise MechnumError(f"unknown variant {variant!r}: use 'edge' or 'path'")
    if isinstance(frozen, str) or frozen is None or set(frozen) - set(ALL_FROZEN):
        raise MechnumError(f"cannot freeze {frozen!r}: name 'attn', 'mlps' or both in a list")
    check_norm(norm)
    if variant == "edge":
        return ALL_FROZEN
    return tuple(kind for kind in ALL_FROZEN if kind in frozen)
