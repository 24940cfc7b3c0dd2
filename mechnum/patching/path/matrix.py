"""The effects of all senders through all receivers, in one batch of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mechnum.models.memory import block_bytes, rows_at_a_time
from mechnum.models.spec import ModelSpec
from mechnum.patching.direct import NormHandling, direct_effect
from mechnum.patching.joint import Freezable
from mechnum.patching.local import Place
from mechnum.patching.measure import Scorer
from mechnum.patching.nodes import Node, NodeGroup, Target, grouped, members, read_at
from mechnum.patching.path.receiver_sets import ReceiverSet
from mechnum.patching.path.receivers import received_difference
from mechnum.patching.path.streams import differences_at
from mechnum.patching.propagate import propagate


class PathMatrix:
    """Path effects for given senders and receivers.

    Args:
        wanted: which edges are measured; the others stay NaN.
        frozen: the components that keep their base values on the way from sender to receiver.
        live: the receivers of a set read the stream as those below them have left it.
    """

    def __init__(
        self,
        senders: Sequence[Target],
        receivers: Sequence[Target],
        wanted: Bool[np.ndarray, "sender receiver"],
        frozen: tuple[Freezable, ...],
        live: bool,
        norm: NormHandling,
        spec: ModelSpec,
    ) -> None:
        self.senders = list(senders)
        self.wanted = torch.from_numpy(wanted)
        self.frozen = frozen
        self.live = live
        self.norm: NormHandling = norm
        self.spec = spec
        self.groups = receiver_groups(receivers, spec)
        self.sets = [
            (column, members(receiver))
            for column, receiver in enumerate(receivers)
            if not isinstance(receiver, Node)
        ]

    def at(self, place: Place, scorer: Scorer) -> dict[str, Float[Tensor, "edge pair"]]:
        """The whole matrix, senders first; NaN where an edge is not wanted."""
        shape = (*self.wanted.shape, len(scorer.last))
        effect = torch.full(shape, torch.nan, dtype=torch.float64)
        for rows in self._chunks(place):
            self._put_chunk(place, scorer, rows, effect)
        return {"effect": effect.flatten(0, 1)}

    def _chunks(self, place: Place) -> Iterator[list[int]]:
        """Senders whose streams fit the memory budget, those that write early first."""
        order = sorted(
            (row for row in range(len(self.senders)) if self.wanted[row].any()),
            key=lambda row: min(node.written_at(self.spec) for node in members(self.senders[row])),
        )
        n_pairs, n_positions, _ = place.base.last.shape
        row_bytes = block_bytes(self.spec, n_positions, place.base.start + n_positions)
        size = rows_at_a_time(n_pairs * row_bytes)
        for first in range(0, len(order), size):
            yield order[first : first + size]

    def _put_chunk(
        self,
        place: Place,
        scorer: Scorer,
        rows: list[int],
        effect: Float[Tensor, "sender receiver pair"],
    ) -> None:
        set_points = {node.read_at(self.spec) for _, nodes in self.sets for node in nodes}
        points = {point for point, _ in self.groups} | set_points
        differences: dict[int, Tensor] = {}
        for point, changed in differences_at(
            place, [self.senders[row] for row in rows], points, self.frozen
        ):
            if point in set_points:
                differences[point] = changed
            for read, group in self.groups:
                if read == point:
                    self._put_group(place, scorer, rows, group, changed, effect)
        for column, nodes in self.sets:
            chosen = self.wanted[rows, column].nonzero().flatten()
            if len(chosen):
                own = {point: changed[chosen] for point, changed in differences.items()}
                found = ReceiverSet(place, nodes, own, self.norm, self.live).scores(scorer.metric)
                _put(effect, [rows[i] for i in chosen.tolist()], column, found - scorer.base_score)

    def _put_group(
        self,
        place: Place,
        scorer: Scorer,
        rows: list[int],
        group: NodeGroup,
        changed: Float[Tensor, "row pair pos d_model"],
        effect: Float[Tensor, "sender receiver pair"],
    ) -> None:
        wanted = self.wanted[rows][:, group.rows]
        chosen = wanted.any(1).nonzero().flatten()
        if not len(chosen):
            return
        difference = changed[chosen.to(changed.device)]
        if group.kind == "logits":
            found = direct_effect(
                place.decoder, scorer.last, difference[:, :, -1], scorer.metric, self.norm
            )
            _put(effect, [rows[i] for i in chosen.tolist()], group.rows[0], found)
            return
        written = received_difference(
            place.decoder,
            place.base,
            group.kind,  # type: ignore[arg-type]  # receivers that are not the logits
            group.layer,
            group.parts,
            difference,
            self.norm,
        )
        # Row: sender × receiver. What changes nothing has an effect of exactly zero.
        table = torch.zeros(wanted[chosen].numel(), len(scorer.last), dtype=torch.float64)
        changing = written.changing()
        measured = changing[wanted[chosen].flatten().to(changing.device)[changing]]
        patches = written.patches(measured)
        scores = propagate(place.decoder, place.base, [patches], scorer.score)[0]
        table[measured.cpu()] = (scores - scorer.base_score).double().cpu()
        table[~wanted[chosen].flatten()] = torch.nan
        cells = table.view(len(chosen), len(group.rows), -1)
        for column, values in zip(group.rows, cells.unbind(1), strict=True):
            _put(effect, [rows[i] for i in chosen.tolist()], column, values)


def _put(
    effect: Float[Tensor, "sender receiver pair"], rows: list[int], column: int, found: Tensor
) -> None:
    effect[rows, column] = found.double().cpu()


def receiver_groups(receivers: Sequence[Target], spec: ModelSpec) -> list[tuple[int, NodeGroup]]:
    """Single receivers by kind and layer, with the point that they read, upwards."""
    singles = [(at, node) for at, node in enumerate(receivers) if isinstance(node, Node)]
    with_point = [(read_at(own.kind, own.layer, spec), own) for own in grouped(singles)]
    return sorted(with_point, key=lambda item: item[0])
