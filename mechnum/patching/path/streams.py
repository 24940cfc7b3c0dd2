"""What senders change in the residual stream on its way up, with other components frozen or not."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.models.memory import block_bytes, working_rows
from mechnum.patching.local import Place, local_difference
from mechnum.patching.nodes import Target, grouped, members, written_at
from mechnum.patching.propagate import state_at

# Kinds of components that keep their base values while a sender's difference travels.
Freezable = Literal["attn", "mlps"]


@dataclass(frozen=True)
class Writes:
    """What senders write, one a row; the nodes of a set write each at its own point.

    Attributes:
        by_point: where the writes enter → rows and differences.
    """

    n_rows: int
    by_point: dict[int, list[tuple[list[int], Float[Tensor, "_ pair pos d_model"]]]]


def sender_writes(place: Place, senders: Sequence[Target]) -> Writes:
    """How the senders' writes differ, each sender alone."""
    spec = place.decoder.spec
    by_point: dict[int, list[tuple[list[int], Tensor]]] = {}
    numbered = [(row, node) for row, sender in enumerate(senders) for node in members(sender)]
    for own in grouped(numbered):
        parts = None if own.parts is None else torch.tensor(own.parts)
        differences = local_difference(place, own.kind, own.layer, parts).write(slice(None))
        if parts is None:
            differences = differences.expand(len(own.rows), *differences.shape[1:])
        point = written_at(own.kind, own.layer, spec)
        by_point.setdefault(point, []).append((own.rows, differences))
    return Writes(len(senders), by_point)


def differences_at(
    place: Place,
    senders: Sequence[Target],
    points: Collection[int],
    frozen: Collection[Freezable],
) -> Iterator[tuple[int, Float[Tensor, "sender pair pos d_model"]]]:
    """At each of the points, upwards, how the senders have changed the residual stream.

    With attention and MLPs frozen it holds the senders' writes and nothing else; what is not frozen
    is recomputed from the changed stream.

    Args:
        points: as in `Node.read_at`.
    """
    writes = sender_writes(place, senders)
    decoder, base = place.decoder, place.base
    changed = base.last.new_zeros(writes.n_rows, *base.last.shape, dtype=place.wide)
    for point in range(max(points) + 1):
        for rows, difference in writes.by_point.get(point, ()):
            # A set may write several times at one point.
            index = torch.tensor(rows, device=changed.device)
            changed = changed.index_add(0, index, difference.to(changed.dtype))
        if point in points:
            yield point, changed
        layer, half = divmod(point, 2)
        if layer == decoder.spec.n_layers:
            continue
        steps = []
        attention = partial(_attention, place, layer)
        mlp = partial(decoder.mlp_write, layer)
        if half == 0 and "attn" not in frozen:
            steps.append(attention)
        reads_mlp = half == (0 if decoder.spec.parallel else 1)
        if reads_mlp and "mlps" not in frozen and decoder.spec.d_mlp:
            steps.append(mlp)
        if steps and bool(changed.any()):
            # Parallel halves both read the stream as it is here, and write after it.
            changed = changed + sum(_change(place, point, changed, step) for step in steps)


def _attention(place: Place, layer: int, stream: Tensor) -> Tensor:
    return place.decoder.attention(layer, stream, place.base.past(layer)).out


def _change(
    place: Place, point: int, changed: Float[Tensor, "sender pair pos d_model"], step
) -> Float[Tensor, "sender pair pos d_model"]:
    """How a component's write changes; exactly not where its input does not."""
    decoder, base = place.decoder, place.base
    state = state_at(base, point).unsqueeze(0).to(changed.dtype)
    n_pairs, n_positions, _ = base.last.shape
    row_bytes = n_pairs * block_bytes(decoder.spec, n_positions, base.start + n_positions)
    parts = []
    for part in changed.split(working_rows(row_bytes, decoder.device)):
        wide = step(torch.cat([state + part, state]).to(decoder.dtype)).to(changed.dtype)
        parts.append(wide[:-1] - wide[-1:])
    return torch.cat(parts)
