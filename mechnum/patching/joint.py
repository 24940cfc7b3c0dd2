"""Sets of nodes that are patched together, in one run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.models.decoder import StateName
from mechnum.models.memory import block_bytes, working_rows
from mechnum.patching.local import Place
from mechnum.patching.masks import Masks
from mechnum.patching.nodes import Node
from mechnum.patching.propagate import state_at

# Kinds of components that keep their base values while a difference travels.
Freezable = Literal["attn", "mlps"]
ALL_FROZEN: tuple[Freezable, ...] = ("attn", "mlps")


@torch.no_grad()
def joint_scores(
    place: Place,
    sets: Sequence[Collection[Node]],
    score: Callable[[Float[Tensor, "row pair d_model"]], Float[Tensor, "row pair"]],
) -> Float[Tensor, "row pair"]:
    """The score of the last residual with all nodes of a set replaced, one set a row.

    Each node takes the values' state whatever the nodes below it have changed: values come from
    their own run, never from the one that is being patched.
    """
    decoder, base = place.decoder, place.base
    scores = []
    for rows in _rows(place, len(sets)):
        masks = Masks(place, sets[rows])
        resid = state_at(base, 2 * masks.first_layer).expand(len(sets[rows]), *base.last.shape)
        for layer in range(masks.first_layer, decoder.spec.n_layers):
            resid = decoder.block(layer, resid, base.past(layer), partial(masks.visit, layer))
        scores.append(score(resid[:, :, -1]))
    return torch.cat(scores)


def joint_direct_differences(
    place: Place, sets: Sequence[Collection[Node]]
) -> Float[Tensor, "row pair d_model"]:
    """What the nodes of each set write to the last position, each reading only base values."""
    end = 2 * place.decoder.spec.n_layers
    found = []
    for rows in _rows(place, len(sets)):
        ((_, changed),) = joint_differences(place, sets[rows], {end}, ALL_FROZEN)
        found.append(changed[:, :, -1])
    return torch.cat(found)


@torch.no_grad()
def joint_differences(
    place: Place,
    sets: Sequence[Collection[Node]],
    points: Collection[int],
    frozen: Collection[Freezable],
) -> Iterator[tuple[int, Float[Tensor, "set pair pos d_model"]]]:
    """At each of the points, upwards, how the nodes of each set have changed the residual stream.

    Every node of a set holds its value. Components that are frozen, but for the set's own nodes,
    write what they write in the base run; the others are recomputed from the changed stream. A
    residual state stands for all that was written below it, so that it replaces what other nodes
    of its set have changed there.

    Args:
        points: as in `Node.read_at`.
    """
    decoder, base = place.decoder, place.base
    # The last row patches nothing: the difference to it is exactly zero where nothing changes.
    masks = Masks(place, [*sets, ()])
    changed = base.last.new_zeros(len(sets), *base.last.shape, dtype=place.wide)
    for point in range(max(points) + 1):
        changed = _with_residual_states(place, masks, point, changed)
        if point in points:
            yield point, changed
        layer, half = divmod(point, 2)
        if layer == decoder.spec.n_layers:
            continue
        # Parallel halves both read the stream as it is here, and write after it.
        read, writes = changed, []
        if half == 0:
            attend = partial(decoder.attention_write, layer, past=base.past(layer))
            writes.append(("attn", _IN_ATTENTION, attend))
        if decoder.spec.d_mlp and half == (0 if decoder.spec.parallel else 1):
            writes.append(("mlps", _IN_MLP, partial(decoder.mlp_write, layer)))
        for kind, states, write in writes:
            live = kind not in frozen and bool(read.any())
            if live or any((name, layer) in masks.by_state for name in states):
                stream = read if live else torch.zeros_like(read)
                visiting = partial(write, visit=partial(masks.visit, layer))
                changed = changed + _written(place, point, stream, visiting)


_IN_ATTENTION: tuple[StateName, ...] = ("q", "k", "v", "pattern", "z", "attn_out")
_IN_MLP: tuple[StateName, ...] = ("mlp_hidden", "mlp_out")


def _with_residual_states(
    place: Place, masks: Masks, point: int, changed: Float[Tensor, "set pair pos d_model"]
) -> Float[Tensor, "set pair pos d_model"]:
    """The changed stream with the residual states of this point in the place of what it was."""
    layer, half = divmod(point, 2)
    same: list[tuple[StateName, int]] = (
        [("resid_mid", layer)] if half else [("resid_post", layer - 1), ("resid_pre", layer)]
    )
    for name, of in same:
        if (name, of) in masks.by_state:
            rows = masks.by_state[name, of][:-1, 0].to(changed.device).view(-1, 1, 1, 1)
            difference = place.difference(name, of)
            kept = changed.shape[2] if place.everywhere else 1
            here = torch.arange(changed.shape[2], device=changed.device).view(-1, 1) < kept
            changed = torch.where(rows & here, difference, changed)
    return changed


def _written(
    place: Place,
    point: int,
    changed: Float[Tensor, "set pair pos d_model"],
    write: Callable[[Tensor], Tensor],
) -> Float[Tensor, "set pair pos d_model"]:
    """How a component's write differs from the one in the row that patches nothing."""
    state = state_at(place.base, point).unsqueeze(0).to(changed.dtype)
    rows = torch.cat([state + changed, state]).to(place.decoder.dtype)
    wide = write(rows).to(changed.dtype)
    return wide[:-1] - wide[-1:]


def _rows(place: Place, n_rows: int) -> list[slice]:
    n_pairs, n_positions, _ = place.base.last.shape
    row_bytes = n_pairs * block_bytes(
        place.decoder.spec, n_positions, place.base.start + n_positions
    )
    size = working_rows(row_bytes, place.decoder.device)
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]
