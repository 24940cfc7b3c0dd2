"""Runs in which neurons are overwritten at the last position, other ones for each prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.stats import binomtest
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.intervals import CONFIDENCE
from mechnum.models.decoder import StateName
from mechnum.models.exact import exact
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.models.run import Edit
from mechnum.progress import track
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import runs_at

# Layer and index of each neuron [neuron, 2]; sets of other sizes stand beside each other.
Sites: TypeAlias = Int[np.ndarray, "_ 2"]


class Share(NamedTuple):
    """A share of prompts and its 95 % interval (Wilson 1927), which holds at 0 and 1 as well."""

    mean: float
    low: float
    high: float


def share(correct: Bool[np.ndarray, " prompt"]) -> Share:
    """The share of the prompts that are answered correctly; NaN of none."""
    if not len(correct):
        return Share(np.nan, np.nan, np.nan)
    tested = binomtest(int(correct.sum()), len(correct))
    interval = tested.proportion_ci(CONFIDENCE, method="wilson")
    return Share(float(correct.mean()), interval.low, interval.high)


def answered_right(
    model: Model,
    prompts: Sequence[Prompts],
    rows: Int[np.ndarray, " row"],
    ablated: Sequence[Sites],
    values: Sequence[Float[Tensor, " d_mlp"]] | None = None,
) -> Bool[np.ndarray, " row"]:
    """Whether the model still answers each prompt correctly with its neurons overwritten.

    Args:
        rows: which prompts, counted group after group; the same one may be there again.
        ablated: for each row the neurons whose post-activation (in gated MLPs after the gate) is
            overwritten at the last position.
        values: what with, for each layer; zeros by default.

    Raises:
        MechnumError: on logits that are not numbers.
    """
    spec = model.spec
    correct = np.zeros(len(rows), dtype=bool)
    todo = []
    before = 0
    for group in prompts:
        (own,) = np.nonzero((before <= rows) & (rows < before + len(group)))
        length = group.tokens.shape[1]
        row_bytes = block_bytes(spec, length, length) + 4 * spec.d_vocab_out
        todo += [(group, before, own[part]) for part in batches(len(own), row_bytes)]
        before += len(group)
    for group, offset, own in track(todo, "knocking neurons out"):
        part = group.select(torch.from_numpy(rows[own] - offset))
        end = part.tokens.shape[1] - 1
        edit = _overwriting([ablated[place] for place in own], values, end)
        last = model.run(part.tokens, start=end, edit=edit).last[:, -1]
        with exact(model.device):
            logits = model.decoder.logits(last)
        if bool(logits.isnan().any()):
            raise MechnumError(
                f"{model.name} gives logits that are not numbers: check its weights, or load it "
                "with dtype='float32'"
            )
        correct[own] = (logits.argmax(dim=-1).cpu() == part.answers).numpy()
    return correct


def _overwriting(
    ablated: Sequence[Sites], values: Sequence[Float[Tensor, " d_mlp"]] | None, end: int
) -> Edit:
    """The edit that overwrites each prompt's neurons at position `end`."""
    prompt = np.repeat(np.arange(len(ablated)), [len(sites) for sites in ablated])
    layers, neurons = np.concatenate(ablated).T
    places: Mapping[int, tuple[Tensor, Tensor]] = {
        int(layer): (
            torch.from_numpy(prompt[layers == layer]),
            torch.from_numpy(neurons[layers == layer]),
        )
        for layer in np.unique(layers)
    }

    def edit(name: StateName, layer: int, value: Tensor, first: int) -> Tensor:
        at = end - first
        # Leading tokens that prompts share are run once, for all of them; `end` is never in them.
        if name != "mlp_hidden" or layer not in places or not 0 <= at < value.shape[2]:
            return value
        rows, own = (index.to(value.device) for index in places[layer])
        changed = value.clone()
        new = 0.0 if values is None else values[layer].to(value)[own]
        changed[:, rows, at, own] = new
        return changed

    return edit


def mean_activations(model: Model, prompts: Sequence[Prompts]) -> list[Float[Tensor, " d_mlp"]]:
    """Mean post-activation at the last position over all prompts, for each layer."""
    totals: list[Tensor] = []
    for _, run in runs_at(model, prompts, "end", ("mlp_hidden",)):
        sums = [state[:, 0].double().sum(dim=0) for state in run.states["mlp_hidden"]]
        totals = [old + new for old, new in zip(totals, sums, strict=True)] if totals else sums
    return [total / sum(map(len, prompts)) for total in totals]


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
