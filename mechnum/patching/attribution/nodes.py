"""Gradient estimates of the total effects of nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.patching.attribution.gradient_runs import gradient_runs
from mechnum.patching.attribution.gradients import LayerGradients, last_gradient, layer_gradients
from mechnum.patching.local import Place, replaced_states
from mechnum.patching.measure import Scorer
from mechnum.patching.selection import Cell, Selection


class NodeAttribution:
    """The first-order estimate of what replacing each node's value does to the metric.

    Args:
        ig_steps: points whose gradients are averaged; None for that of the base run.
    """

    def __init__(self, selection: Selection, ig_steps: int | None) -> None:
        self.cells = selection.cells
        self.n_columns = int(np.prod(selection.shape))
        self.ig_steps = ig_steps

    def at(self, place: Place, scorer: Scorer) -> dict[str, Float[Tensor, "column pair"]]:
        """The estimate of every column of the table."""
        return {"estimate": self._table(place, scorer, sweep=False)[0]}

    def each(
        self, place: Place, scorer: Scorer
    ) -> Iterator[dict[str, Float[Tensor, "column pair"]]]:
        """The same for every kept position, all from one gradient."""
        for cells in self._table(place, scorer, sweep=True):
            yield {"estimate": cells}

    def _table(
        self, place: Place, scorer: Scorer, sweep: bool
    ) -> Float[Tensor, "#pos column pair"]:
        n_pairs, n_positions, _ = place.base.last.shape
        shape = (n_positions if sweep else 1, self.n_columns, n_pairs)
        table = torch.zeros(shape, dtype=torch.float64)
        for runs in gradient_runs(place, self.ig_steps):
            for found in layer_gradients(runs, last_gradient(runs, scorer.metric)):
                for cell in self.cells:
                    if cell.layer != found.layer:
                        continue
                    estimate = _estimate(place, found, cell)
                    if not sweep:
                        estimate = estimate.sum(0, keepdim=True)
                    table[:, torch.from_numpy(cell.columns)] += estimate.double().cpu()
        return table


def _estimate(place: Place, found: LayerGradients, cell: Cell) -> Float[Tensor, "pos part pair"]:
    """(value − base value) · ∂metric/∂state of the nodes of one kind in one layer."""
    total = None
    for name in replaced_states(cell.kind):
        # The runs may begin at an earlier position than the patch.
        gradient = found.mean(name)[:, place.base.start - found.runs.start :]
        products = place.difference(name, cell.layer) * gradient
        if name != "mlp_hidden":
            # Heads and groups are parts; a whole write is one.
            products = products.sum(-1, keepdim=products.ndim == 3)
        total = products if total is None else total + products
    assert total is not None, "every node that can be patched has a state"
    if cell.parts is not None:
        total = total[..., cell.parts.to(total.device)]
    return total.permute(1, 2, 0)
