"""Answers with neurons overwritten at the last position, other neurons for each prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import StateName
from mechnum.models.model import Model
from mechnum.neurons.edited_runs import answers_with
from mechnum.tasks.prompts import Prompts

# Layer and index of each neuron [neuron, 2]; sets of other sizes stand beside each other.
Sites: TypeAlias = Int[np.ndarray, "_ 2"]


def answered_right(
    model: Model,
    prompts: Sequence[Prompts],
    rows: Int[np.ndarray, " row"],
    ablated: Sequence[Sites],
    values: Float[Tensor, "layer neuron"] | None = None,
) -> Bool[np.ndarray, " row"]:
    """Whether the model still answers each prompt correctly with its neurons overwritten.

    Args:
        rows: which prompts, counted group after group; the same one may be there again.
        ablated: for each row the neurons whose post-activation (in gated MLPs after the gate) is
            overwritten at the last position.
        values: what with; zeros by default.

    Raises:
        MechnumError: on logits that are not numbers.
    """
    asked, order, before = [], [], 0
    for group in prompts:
        (own,) = np.nonzero((before <= rows) & (rows < before + len(group)))
        if len(own):
            asked.append(group.select(torch.from_numpy(rows[own] - before)))
            order.append(own)
        before += len(group)
    if not asked:
        return np.zeros(len(rows), dtype=bool)
    places = np.concatenate(order)
    edit = _Overwriting([ablated[place] for place in places], values)
    predicted = answers_with(model, asked, [edit])[0]
    correct = np.empty(len(rows), dtype=bool)
    correct[places] = (predicted == torch.cat([group.answers for group in asked])).numpy()
    return correct


class _Overwriting:
    """The edit that overwrites each prompt's own neurons."""

    def __init__(
        self, ablated: Sequence[Sites], values: Float[Tensor, "layer neuron"] | None
    ) -> None:
        self.ablated = ablated
        self.values = values

    def __call__(
        self,
        name: StateName,
        layer: int,
        value: Float[Tensor, "row neuron"],
        rows: Int[Tensor, " row"],
    ) -> Float[Tensor, "row neuron"]:
        """The layer's neurons for these prompts."""
        if name != "mlp_hidden":
            return value
        sets = [self.ablated[row] for row in rows.tolist()]
        own = [torch.from_numpy(sites[sites[:, 0] == layer, 1]) for sites in sets]
        prompt = torch.arange(len(own)).repeat_interleave(torch.tensor([len(n) for n in own]))
        neurons = torch.cat(own)
        changed = value.clone()
        new = 0.0 if self.values is None else self.values[layer].to(value)[neurons]
        changed[prompt, neurons] = new
        return changed


def random_like(sites: Sites, d_mlp: int, generator: np.random.Generator) -> Sites:
    """As many neurons of the same layers, drawn among those that are not in `sites`.

    Raises:
        MechnumError: where a layer does not have as many others.
    """
    drawn = []
    for layer in np.unique(sites[:, 0]):
        own = sites[sites[:, 0] == layer, 1]
        others = np.setdiff1d(np.arange(d_mlp), own)
        if len(others) < len(own):
            raise MechnumError(
                f"{len(own)} of the {d_mlp} neurons of layer {layer} are knocked out, so that "
                "there are not as many others to compare them with: knock out fewer"
            )
        picked = generator.choice(others, size=len(own), replace=False)
        drawn.append(np.column_stack([np.full(len(own), layer), picked]))
    return np.concatenate(drawn) if drawn else sites
