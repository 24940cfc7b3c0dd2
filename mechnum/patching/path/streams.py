"""What senders change in the residual stream on its way up, with other components frozen or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.models.memory import block_bytes, working_rows
from mechnum.patching.joint import Freezable, joint_differences
from mechnum.patching.local import Place, local_difference
from mechnum.patching.nodes import Node, Target, grouped, members, written_at
from mechnum.patching.propagate import state_at


def differences_at(
    place: Place,
    senders: Sequence[Target],
    points: Collection[int],
    frozen: Collection[Freezable],
) -> Iterator[tuple[int, Float[Tensor, "sender pair pos d_model"]]]:
    """At each of the points, upwards, how the senders have changed the residual stream.

    With attention and MLPs frozen it holds the senders' writes and nothing else; what is not frozen
    is recomputed from the changed stream, but for the senders, which hold their values.

    Args:
        points: as in `Node.read_at`.
    """
    single = [row for row, sender in enumerate(senders) if isinstance(sender, Node)]
    joint = [row for row, sender in enumerate(senders) if not isinstance(sender, Node)]
    streams = []
    if single:
        nodes = [node for sender in senders for node in [sender] if isinstance(node, Node)]
        streams.append((single, _single_differences(place, nodes, points, frozen)))
    if joint:
        sets = [members(senders[row]) for row in joint]
        streams.append((joint, joint_differences(place, sets, points, frozen)))
    for parts in zip(*(stream for _, stream in streams), strict=True):
        if len(parts) == 1:
            yield parts[0]
            continue
        point, like = parts[0]
        changed = like.new_empty(len(senders), *like.shape[1:])
        for (rows, _), (_, own) in zip(streams, parts, strict=True):
            changed[rows] = own
        yield point, changed


def _single_differences(
    place: Place,
    senders: Sequence[Node],
    points: Collection[int],
    frozen: Collection[Freezable],
) -> Iterator[tuple[int, Float[Tensor, "sender pair pos d_model"]]]:
    """Of single senders, none of which reads what it has changed itself."""
    writes = _writes(place, senders)
    decoder, base = place.decoder, place.base
    changed = base.last.new_zeros(len(senders), *base.last.shape, dtype=place.wide)
    for point in range(max(points) + 1):
        for rows, difference in writes.get(point, ()):
            changed = changed.index_add(
                0, torch.tensor(rows, device=changed.device), difference.to(changed.dtype)
            )
        if point in points:
            yield point, changed
        layer, half = divmod(point, 2)
        if layer == decoder.spec.n_layers:
            continue
        steps: list[Callable[[Tensor], Tensor]] = []
        if half == 0 and "attn" not in frozen:
            steps.append(partial(decoder.attention_write, layer, past=base.past(layer)))
        reads_mlp = half == (0 if decoder.spec.parallel else 1)
        if reads_mlp and "mlps" not in frozen and decoder.spec.d_mlp:
            steps.append(partial(decoder.mlp_write, layer))
        if steps and bool(changed.any()):
            # Parallel halves both read the stream as it is here, and write after it.
            changed = changed + sum(_change(place, point, changed, step) for step in steps)


def _writes(
    place: Place, senders: Sequence[Node]
) -> dict[int, list[tuple[list[int], Float[Tensor, "_ pair pos d_model"]]]]:
    """Where the senders' writes enter → rows and how they differ."""
    by_point: dict[int, list[tuple[list[int], Tensor]]] = {}
    for own in grouped(enumerate(senders)):
        parts = None if own.parts is None else torch.tensor(own.parts)
        differences = local_difference(place, own.kind, own.layer, parts).write(slice(None))
        if parts is None:
            differences = differences.expand(len(own.rows), *differences.shape[1:])
        point = written_at(own.kind, own.layer, place.decoder.spec)
        by_point.setdefault(point, []).append((own.rows, differences))
    return by_point


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
