"""Rows of numbers at a model's output: its unembedding, what neurons write to it, its logits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import SupportsIndex

import torch
import xarray as xr
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.fourier.model_tables import NUMBERS, as_numpy, matrix_rows, said_of
from mechnum.fourier.tables import NUMBER
from mechnum.models.model import Model
from mechnum.models.norms import at_least_float32
from mechnum.tasks.numbers import some
from mechnum.tasks.prompts import TokenSequences
from mechnum.tasks.single_numbers import BARE_NUMBER, number_tokens


def unembedding_rows(
    model: Model, numbers: Iterable[SupportsIndex] = NUMBERS, template: str = BARE_NUMBER
) -> xr.DataArray:
    """The unembedding (column of W_U) of each number's token: (number, dimension).

    W_U as the model has it, which attribute `processing` states: folding the final norm into it
    rescales its dimensions and changes the spectrum, centring it changes the constant alone.

    Raises:
        MechnumError: as `embedding_rows`.
    """
    tokens = _output_tokens(model, numbers, template)
    rows = model.decoder.weights.W_U[:, list(tokens.values())].T
    return matrix_rows(rows, tokens, said_of(model, "unembedding", template))


def neuron_rows(
    model: Model,
    layer: int,
    numbers: Iterable[SupportsIndex] = NUMBERS,
    template: str = BARE_NUMBER,
) -> xr.DataArray:
    """What each neuron of a layer writes to the logits of the numbers: (neuron, number).

    W_out · W_U over number tokens, without the final norm, for an activation of 1 (Kantamneni &
    Tegmark 2025, section 5.3; the period of a neuron's output is N / argmax of its spectrum).

    Raises:
        MechnumError: on a layer that does not exist or has no MLP, else as `embedding_rows`.
    """
    _W_out(model, layer)  # A layer without neurons is refused before its numbers are.
    tokens = _output_tokens(model, numbers, template)
    return xr.DataArray(
        as_numpy(neuron_logits(model, layer, torch.tensor(list(tokens.values())))),
        dims=("neuron", NUMBER),
        coords={NUMBER: list(tokens)},
        attrs=said_of(model, f"neurons of layer {layer}", template),
    )


def neuron_logits(
    model: Model, layer: int, token_ids: Int[Tensor, " token"]
) -> Float[Tensor, "neuron token"]:
    """What each neuron of a layer writes to the logits of tokens, as in `neuron_rows`.

    Raises:
        MechnumError: on a layer that does not exist or has no MLP.
    """
    W_U = at_least_float32(model.decoder.weights.W_U[:, token_ids])
    return at_least_float32(_W_out(model, layer)) @ W_U


def logit_rows(
    model: Model,
    prompts: Sequence[TokenSequences],
    numbers: Iterable[SupportsIndex] = NUMBERS,
    template: str = BARE_NUMBER,
) -> xr.DataArray:
    """The model's logit of each number after each prompt: (number, dimension), one for a prompt.

    Raises:
        MechnumError: as `embedding_rows`, and on prompts that the model cannot read.
    """
    tokens = _output_tokens(model, numbers, template)
    ids = torch.tensor(list(tokens.values()))
    logits = torch.cat([model.logits(group.tokens, ids) for group in prompts])
    return matrix_rows(logits.T, tokens, said_of(model, "logits", template))


def _output_tokens(model: Model, numbers: Iterable[SupportsIndex], template: str) -> dict[int, int]:
    tokens = number_tokens(model, numbers, template)
    limit = model.spec.d_vocab_out
    if missing := [number for number, token in tokens.items() if token >= limit]:
        raise MechnumError(
            f"{model.name} has no logits of {some(missing)}: choose numbers that it can answer"
        )
    return tokens


def _W_out(model: Model, layer: int) -> Float[Tensor, "neuron d_model"]:
    blocks = model.decoder.weights.blocks
    if not 0 <= layer < len(blocks):
        raise MechnumError(f"{model.name} has no layer {layer}: give 0 to {len(blocks) - 1}")
    mlp = blocks[layer].mlp
    if mlp is None:
        raise MechnumError(f"layer {layer} of {model.name} has no MLP: it has no neurons")
    return mlp.W_out
