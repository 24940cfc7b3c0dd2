"""What a model answers when neurons are edited at one position."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import NEURON_STATES, StateName
from mechnum.models.exact import exact
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.models.run import Edit, run
from mechnum.progress import track
from mechnum.tasks.accuracy import check_logits
from mechnum.tasks.positions import resolve_position
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import runs_at

# What a layer's neurons [prompt, neuron] become, from the name of the state ("mlp_pre" or
# "mlp_hidden"), the layer, their values, and the rows of the prompts, counted group after group.
NeuronEdit = Callable[[StateName, int, Tensor, Tensor], Tensor]


def answers_with(
    model: Model,
    prompts: Sequence[Prompts],
    edits: Sequence[NeuronEdit],
    position: str | int = "end",
) -> Int[Tensor, "edit prompt"]:
    """The most likely token after each prompt, in a run for each edit.

    What comes before the edited position is run once for all edits.

    Args:
        position: where the neurons of all layers are edited: the name of a position, or an index.

    Returns:
        Token ids, group after group.

    Raises:
        MechnumError: on no prompts, on positions that do not exist, and where logits are not
            numbers.
    """
    if (n_prompts := sum(map(len, prompts))) == 0:
        raise MechnumError("there are no prompts to run: give at least one")
    model.check_current()
    predicted = torch.empty(len(edits), n_prompts, dtype=torch.long)
    todo = _batches(model, prompts, position)
    for tokens, place, rows in track(todo, "running prompts with edited neurons"):
        before = run(model.decoder, tokens, ("k", "v"))
        for row, edit in enumerate(edits):
            at_place = _at(place, edit, rows)
            after = run(model.decoder, tokens, start=place, like=before, edit=at_place)
            predicted[row, rows] = _most_likely(model, after.last[:, -1])
    return predicted


def _batches(
    model: Model, prompts: Sequence[Prompts], position: str | int
) -> list[tuple[Int[Tensor, "row pos"], int, Int[Tensor, " row"]]]:
    """Tokens of equal length with the same position, and the rows of the prompts."""
    spec = model.spec
    found, offset = [], 0
    for group in prompts:
        length = group.tokens.shape[1]
        places = resolve_position(position, group.positions, length)
        keys_values = 8 * spec.n_layers * length * spec.n_kv_heads * spec.d_head
        row_bytes = block_bytes(spec, length, length) + keys_values + 4 * spec.d_vocab_out
        for place in places.unique().tolist():
            rows = (places == place).nonzero().flatten()
            found += [
                (group.tokens[rows[part]], place, offset + rows[part])
                for part in batches(len(rows), row_bytes)
            ]
        offset += len(group)
    return found


def _at(place: int, edit: NeuronEdit, rows: Int[Tensor, " row"]) -> Edit:
    """The edit at one position of a run."""

    def edited(name: StateName, layer: int, value: Tensor, first: int) -> Tensor:
        at = place - first
        if name not in NEURON_STATES or not 0 <= at < value.shape[2]:
            return value
        changed = value.clone()
        changed[0, :, at] = edit(name, layer, value[0, :, at], rows)
        return changed

    return edited


def _most_likely(model: Model, last: Float[Tensor, "row d_model"]) -> Int[Tensor, " row"]:
    with exact(model.device):
        logits = model.decoder.logits(last)
    check_logits(model, logits)
    return logits.argmax(dim=-1).cpu()


def mean_activations(
    model: Model, prompts: Sequence[Prompts], position: str | int = "end"
) -> Float[Tensor, "layer neuron"]:
    """Mean activation of every neuron over prompts, after any gate; in float64, on the CPU."""
    spec = model.spec
    total = torch.zeros(spec.n_layers, spec.d_mlp, dtype=torch.float64)
    for _, found in runs_at(model, prompts, position, ("mlp_hidden",)):
        for layer in range(spec.n_layers):
            total[layer] += found["mlp_hidden", layer][:, 0].double().sum(0).cpu()
    return total / sum(map(len, prompts))
