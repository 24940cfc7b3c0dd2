"""Which part of which state is replaced in which row of a stack."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from mechnum.models.decoder import StateName
from mechnum.patching.local import Place, replaced_states
from mechnum.patching.nodes import Node, n_parts


class Masks:
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
