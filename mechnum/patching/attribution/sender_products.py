"""Products of what senders write with gradients of what receivers read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.models.memory import batches, rows_at_a_time
from mechnum.models.spec import ModelSpec
from mechnum.patching.local import LocalDifference, Place, local_difference
from mechnum.patching.nodes import GROUPED, PER_NEURON, Node, NodeGroup, grouped, written_at


def sender_groups(senders: Sequence[Node], spec: ModelSpec) -> list[tuple[int, NodeGroup]]:
    """Senders by kind and layer, with the point where they write, upwards."""
    with_point = [
        (written_at(own.kind, own.layer, spec), own) for own in grouped(enumerate(senders))
    ]
    return sorted(with_point, key=lambda item: item[0])


def _differences(place: Place, group: NodeGroup) -> LocalDifference:
    """What the senders write differently, from the patched position on, where they can."""
    parts = None if group.parts is None else torch.tensor(group.parts)
    local = local_difference(place, group.kind, group.layer, parts)
    if place.everywhere or group.kind in GROUPED:
        return local
    # Keys and values of one position are read at later ones; all else is written where it is.
    return replace(local, weights=local.weights[:, :1].clone())


def written_bytes(
    groups: Sequence[tuple[int, NodeGroup]], spec: ModelSpec, n_positions: int
) -> int:
    """What all writes that are no neurons' take for one pair, in bytes of float32."""
    n_rows = sum(len(group.rows) for _, group in groups if group.kind not in PER_NEURON)
    return 4 * n_rows * n_positions * spec.d_model


@dataclass(frozen=True)
class _Written:
    """Rows of a table and what they write, those of low points first."""

    rows: list[int]
    points: list[int]
    local: LocalDifference

    def before(self, point: int) -> _Written:
        """Those that have written at a point."""
        n_rows = bisect_right(self.points, point)
        weights = self.local.weights[:, :, :n_rows]
        directions = None if self.local.directions is None else self.local.directions[:n_rows]
        local = replace(self.local, weights=weights, directions=directions)
        return _Written(self.rows[:n_rows], self.points[:n_rows], local)


class SenderProducts:
    """Senders at some places, ready to meet the gradients of any receiver's input.

    Args:
        places: of the same batch, the earliest position first.
        groups: in the order in which they write.
    """

    def __init__(self, places: Sequence[Place], groups: Sequence[tuple[int, NodeGroup]]) -> None:
        self.offsets = [place.base.start - places[0].base.start for place in places]
        self.written = [
            [
                _Written(group.rows, [point] * len(group.rows), _differences(place, group))
                for point, group in groups
            ]
            for place in places
        ]
        held = sum(
            one.local.n_rows * one.local.weights.shape[1]
            for own in self.written
            for one in own
            if not one.local.of_neurons
        )
        if held <= rows_at_a_time(4 * places[0].base.last[:, 0].numel()):
            self.written = [_written_out(own) for own in self.written]

    def with_inputs(
        self, point: int, gradient: Float[Tensor, "pair pos part d_model"]
    ) -> Iterator[tuple[int, list[int], Float[Tensor, "row part pair"]]]:
        """For each place, rows of senders that write before `point`, and their products."""
        for index, offset in enumerate(self.offsets):
            for every in self.written[index]:
                own = every.before(point)
                if own.rows:
                    here = gradient[:, offset : offset + own.local.weights.shape[1]]
                    yield index, own.rows, products(own.local, here)


def _written_out(written: Sequence[_Written]) -> list[_Written]:
    """One table of all writes of the same length, so that a receiver meets them in one product.

    Neurons stay as they are: theirs are a weight and a direction each.
    """
    found = [one for one in written if one.local.of_neurons]
    others = [one for one in written if not one.local.of_neurons]
    for length in sorted({one.local.weights.shape[1] for one in others}):
        own = [one for one in others if one.local.weights.shape[1] == length]
        # Rows outermost in memory: those before a point are then one piece.
        writes = torch.cat([one.local.write(slice(None)) for one in own]).permute(1, 2, 0, 3)
        rows = [row for one in own for row in one.rows]
        points = [point for one in own for point in one.points]
        found.append(_Written(rows, points, LocalDifference(points[0], writes, None)))
    return found


def products(
    local: LocalDifference, gradient: Float[Tensor, "pair pos part d_model"]
) -> Float[Tensor, "row part pair"]:
    """The dot product of each row's write with each gradient, summed over positions."""
    n_pairs, n_positions, n_parts, d_model = gradient.shape
    by_part = gradient.transpose(1, 2)
    if local.of_neurons:
        assert local.directions is not None, "neurons write along directions"
        found = []
        for rows in batches(local.n_rows, 4 * n_pairs * n_positions * n_parts):
            along = by_part @ local.directions[rows].T.to(by_part.dtype)
            found.append(torch.einsum("prtn,ptn->nrp", along, local.weights[..., rows]))
        return torch.cat(found)
    found = [
        torch.einsum("sptm,prtm->srp", local.write(rows), by_part)
        for rows in batches(local.n_rows, 2 * 4 * n_pairs * n_positions * d_model)
    ]
    return torch.cat(found)
