"""Sets of nodes that are patched together, in one run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mechnum.models.decoder import StateName
from mechnum.models.memory import block_bytes, working_rows
from mechnum.patching.local import Place, replaced_states
from mechnum.patching.nodes import Node, n_parts
from mechnum.patching.propagate import state_at


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
        masks = _Masks(place, sets[rows])
        resid = state_at(base, 2 * masks.first_layer).expand(len(sets[rows]), *base.last.shape)
        for layer in range(masks.first_layer, decoder.spec.n_layers):
            resid = decoder.block(layer, resid, base.past(layer), partial(masks.visit, layer))
        scores.append(score(resid[:, :, -1]))
    return torch.cat(scores)


@torch.no_grad()
def joint_direct_differences(
    place: Place, sets: Sequence[Collection[Node]]
) -> Float[Tensor, "row pair d_model"]:
    """What the nodes of each set write to the last position, each reading only base values."""
    decoder, base = place.decoder, place.base
    differences = []
    for rows in _rows(place, len(sets)):
        # The last row patches nothing: the difference to it is exactly zero where nothing changes.
        masks = _Masks(place, [*sets[rows], ()])
        total = base.last.new_zeros(len(sets[rows]), *base.last[:, -1].shape, dtype=place.wide)

        def collect(layer: int, name: StateName, value: Tensor, masks=masks, total=total) -> Tensor:
            value = masks.visit(layer, name, value)
            if name not in ("attn_out", "mlp_out", "resid_pre", "resid_mid", "resid_post"):
                return value
            wide = value[:, :, -1].to(place.wide)
            total.add_(wide[:-1] - wide[-1:])
            return value[-1:].expand_as(value)

        for layer in sorted({layer for _, layer in masks.by_state}):
            resid = base["resid_pre", layer].expand(len(sets[rows]) + 1, *base.last.shape)
            decoder.block(layer, resid, base.past(layer), partial(collect, layer))
        differences.append(total)
    return torch.cat(differences)


def _rows(place: Place, n_rows: int) -> list[slice]:
    n_pairs, n_positions, _ = place.base.last.shape
    row_bytes = n_pairs * block_bytes(
        place.decoder.spec, n_positions, place.base.start + n_positions
    )
    size = working_rows(row_bytes, place.decoder.device)
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


class _Masks:
    """Which part of which state is replaced in which row."""

    def __init__(self, place: Place, sets: Sequence[Collection[Node]]) -> None:
        self.place = place
        self.n_rows = len(sets)
        self.by_state: dict[tuple[StateName, int], Bool[Tensor, "row part"]] = {}
        for row, nodes in enumerate(sets):
            for node in nodes:
                for name in replaced_states(node.kind):
                    self._mark(row, node, name)
        self.first_layer = min((layer for _, layer in self.by_state), default=0)

    def _mark(self, row: int, node: Node, name: StateName) -> None:
        key = (name, node.layer or 0)
        if key not in self.by_state:
            count = n_parts(node.kind, self.place.decoder.spec)
            self.by_state[key] = torch.zeros(self.n_rows, count, dtype=torch.bool)
        self.by_state[key][row, node.index or 0] = True

    def visit(
        self, layer: int, name: StateName, value: Float[Tensor, "row pair ..."]
    ) -> Float[Tensor, "row pair ..."]:
        """The state with the values in place of what is replaced."""
        mask = self.by_state.get((name, layer))
        if mask is None:
            return value
        if name == "pattern":
            return self._replaced(name, layer, value.transpose(2, 3), mask).transpose(2, 3)
        return self._replaced(name, layer, value, mask)

    def _replaced(
        self,
        name: StateName,
        layer: int,
        value: Float[Tensor, "row pair pos ..."],
        mask: Bool[Tensor, "row part"],
    ) -> Float[Tensor, "row pair pos ..."]:
        values = self.place.values.at(name, layer).to(value.dtype)
        # [row, pair, pos, part] for neurons, [row, pair, pos, part, width] for states of heads;
        # whole writes have one part, which stands for their width.
        mask = mask.to(value.device)[:, None, None, :]
        if value.ndim == 5:
            mask = mask.unsqueeze(-1)
        if not self.place.everywhere:
            here = torch.arange(value.shape[2], device=value.device) == 0
            mask = mask & here.view(1, 1, -1, *[1] * (mask.ndim - 3))
        return torch.where(mask, values, value)
