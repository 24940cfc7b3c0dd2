"""Forwards in which what attention and MLPs write is filtered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.fourier.filters import Removal
from mechnum.models.decoder import StateName
from mechnum.models.exact import exact
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.models.run import Edit
from mechnum.models.spec import ModelSpec
from mechnum.patching.node_names import parse_target
from mechnum.patching.nodes import members
from mechnum.progress import track
from mechnum.tasks.accuracy import check_logits
from mechnum.tasks.positions import resolve_position
from mechnum.tasks.prompts import Prompts

# Whose writes are filtered: one of these in all layers or some, or modules by name.
_WRITES: dict[str, tuple[StateName, ...]] = {
    "both": ("attn_out", "mlp_out"),
    "attn": ("attn_out",),
    "mlp": ("mlp_out",),
}


class Filtering(NamedTuple):
    """Where a removal is applied: h_l = h_{l−1} + R(attention) + R(MLP) (Zhou et al. 2024).

    Attributes:
        removal: what is taken out of the writes, biases included.
        modules: whose writes: "attn", "mlp" or "both", or any set by name, as "attn 3 + mlp 5".
        layers: of which layers; None for all, and for modules by name, which say theirs.
        position: where: "all", the name of a position, or an index.
    """

    removal: Removal
    modules: str = "both"
    layers: tuple[int, ...] | None = None
    position: str | int = "all"


class Answers(NamedTuple):
    """What a model says after each prompt, group after group.

    Attributes:
        loss: −log probability of the right answer, in nats.
        predicted: token id of the largest logit.
    """

    loss: Float64[Tensor, " prompt"]
    predicted: Int[Tensor, " prompt"]


def answers(
    model: Model, prompts: Sequence[Prompts], filtering: Filtering | None = None
) -> Answers:
    """Loss and most likely token after each prompt, filtered or not.

    Raises:
        MechnumError: on no prompts, on modules, layers and positions that do not exist, a removal
            of another width, and logits that are not numbers.
    """
    n_prompts = sum(map(len, prompts))
    if n_prompts == 0:
        raise MechnumError("there are no prompts to run: give at least one")
    check_filtering(model, prompts, filtering)
    found = Answers(torch.empty(n_prompts, dtype=torch.float64), torch.empty(n_prompts).long())
    spec = model.spec
    before = 0
    todo = []
    for group in prompts:
        length = group.tokens.shape[1]
        # Logits, and their logarithms of probabilities.
        row_bytes = block_bytes(spec, length, length) + 8 * spec.d_vocab_out
        for place, rows in _places(group, filtering):
            todo += [(group, place, before, rows[part]) for part in batches(len(rows), row_bytes)]
        before += len(group)
    for group, place, offset, rows in track(todo, "running prompts"):
        edit = None if filtering is None else _edit(model, filtering, place)
        run = model.run(group.tokens[rows], start=group.tokens.shape[1] - 1, edit=edit)
        loss, predicted = _scored(model, run.last[:, -1], group.answers[rows])
        found.loss[offset + rows] = loss
        found.predicted[offset + rows] = predicted
    return found


def _scored(
    model: Model, last: Float[Tensor, "row d_model"], right: Int[Tensor, " row"]
) -> tuple[Float64[Tensor, " row"], Int[Tensor, " row"]]:
    with exact(model.device):
        logits = model.decoder.logits(last)
        loss = torch.nn.functional.cross_entropy(logits, right.to(logits.device), reduction="none")
        predicted = logits.argmax(dim=-1)
    check_logits(model, loss)
    return loss.double().cpu(), predicted.cpu()


def _places(
    group: Prompts, filtering: Filtering | None
) -> list[tuple[int | None, Int[Tensor, " row"]]]:
    """The prompts of a group by the position that is filtered; None for all positions."""
    if filtering is None or filtering.position == "all":
        return [(None, torch.arange(len(group)))]
    places = resolve_position(filtering.position, group.positions, group.tokens.shape[1])
    return [(p, (places == p).nonzero().flatten()) for p in places.unique().tolist()]


def _edit(model: Model, filtering: Filtering, place: int | None) -> Edit:
    sites = _sites(filtering, model.spec)
    directions = filtering.removal.tensor(model.decoder.weights.W_E)

    def edit(name: StateName, layer: int, value: Tensor, first: int) -> Tensor:
        if (name, layer) not in sites:
            return value
        if place is None:
            return _without(value, directions)
        at = place - first
        if not 0 <= at < value.shape[2]:
            return value
        changed = value.clone()
        changed[:, :, at] = _without(value[:, :, at], directions)
        return changed

    return edit


def _sites(filtering: Filtering, spec: ModelSpec) -> frozenset[tuple[StateName, int]]:
    """The writes that are filtered.

    Raises:
        MechnumError: on modules that are none or do not exist.
    """
    if filtering.modules in _WRITES:
        layers = range(spec.n_layers) if filtering.layers is None else filtering.layers
        return frozenset((name, layer) for name in _WRITES[filtering.modules] for layer in layers)
    if filtering.layers is not None:
        raise MechnumError(
            f"{filtering.modules!r} names modules with their layers: leave the other layers out"
        )
    sites = set()
    for node in members(parse_target(filtering.modules)):
        node.check(spec)
        if node.kind not in ("attn", "mlp"):
            raise MechnumError(
                f"{node} is no module to filter: use 'both', 'attn', 'mlp', or a set such as "
                "'attn 3 + mlp 5'"
            )
        sites.add((f"{node.kind}_out", node.layer))
    return frozenset(sites)


def _without(value: Tensor, directions: Tensor) -> Tensor:
    wide = value.to(directions.dtype)
    return (wide - (wide @ directions) @ directions.T).to(value.dtype)


def check_filtering(model: Model, prompts: Sequence[Prompts], filtering: Filtering | None) -> None:
    """Refuse what `answers` cannot do.

    Raises:
        MechnumError: on modules, layers and positions that do not exist, and a removal of another
            width.
    """
    if filtering is None:
        return
    spec = model.spec
    if filtering.modules == "mlp" and not spec.d_mlp:
        raise MechnumError(f"{model.name} has no MLPs to filter: filter 'attn'")
    _sites(filtering, spec)
    width = len(filtering.removal.directions)
    if width != spec.d_model:
        raise MechnumError(
            f"a removal of width {width} does not fit {model.name}, whose residual has "
            f"{spec.d_model} dimensions: make it from this very model"
        )
    if filtering.layers is not None:
        outside = [layer for layer in filtering.layers if not 0 <= layer < spec.n_layers]
        if outside or not filtering.layers:
            what = f"layer {outside[0]} does not exist" if outside else "no layer is filtered"
            raise MechnumError(f"{what}: choose from 0 to {spec.n_layers - 1}, or leave it out")
    for group in prompts:
        _places(group, filtering)
