"""Rows of numbers inside a model: its embedding and its states."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, SupportsIndex, get_args

import numpy as np
import torch
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.fourier.model_tables import NUMBERS, matrix_rows, said_of
from mechnum.fourier.output_rows import unembedding_rows
from mechnum.fourier.tables import DIMENSION, NUMBER
from mechnum.models.decoder import NEURON_STATES
from mechnum.models.model import Model
from mechnum.tasks.examples import bos_policy
from mechnum.tasks.prompts import TokenSequences
from mechnum.tasks.single_numbers import BARE_NUMBER, DigitsMode, number_prompts, number_tokens
from mechnum.tasks.states import activations_of, states_of

StateRowsOf = Literal[
    "resid",
    "resid_pre",
    "q",
    "k",
    "v",
    "z",
    "attn_out",
    "resid_mid",
    "mlp_pre",
    "mlp_hidden",
    "mlp_out",
    "resid_post",
]
RowsOf = Literal["embedding", "unembedding", StateRowsOf]


def number_rows(
    model: Model,
    numbers: Iterable[SupportsIndex] = NUMBERS,
    of: RowsOf = "resid",
    template: str = BARE_NUMBER,
    digits: DigitsMode = "single",
) -> xr.DataArray:
    """`embedding_rows`, `unembedding_rows` or `state_rows` at the number, by name.

    Raises:
        MechnumError: on another name, else as they do.
    """
    if of not in get_args(RowsOf):
        raise MechnumError(f"there are no rows of {of!r}: use one of {', '.join(get_args(RowsOf))}")
    if of == "embedding":
        return embedding_rows(model, numbers, template)
    if of == "unembedding":
        return unembedding_rows(model, numbers, template)
    return state_rows(model, numbers, of, template, digits)


def embedding_rows(
    model: Model, numbers: Iterable[SupportsIndex] = NUMBERS, template: str = BARE_NUMBER
) -> xr.DataArray:
    """The embedding of each number's token: (number, dimension).

    Args:
        template: where the number stands, which decides which token it is: GPT-2 and GPT-J have
            one for "7" and one for " 7".

    Raises:
        MechnumError: on numbers that are not one token there, as `mechnum.tasks.number_tokens`.
    """
    tokens = number_tokens(model, numbers, template)
    rows = model.decoder.weights.W_E[list(tokens.values())]
    return matrix_rows(rows, tokens, said_of(model, "embedding", template))


def state_rows(
    model: Model,
    numbers: Iterable[SupportsIndex] = NUMBERS,
    of: StateRowsOf = "resid",
    template: str = BARE_NUMBER,
    digits: DigitsMode = "single",
    position: str | int = "n",
) -> xr.DataArray:
    """What every layer holds of each number: (layer, number, dimension).

    Args:
        of: "resid", the residual stream, layer −1 being the embedding and l the state after
            layer l; or a state of `mechnum.models.run.Run` such as "attn_out" or "mlp_out". Those
            of heads (q, k, v, z) have the dimension `head` before `number`.
        template: the text around each number; bare, as Kantamneni & Tegmark 2025 have it (4.1).
        digits: "single" refuses numbers of several tokens, "last" takes the states at their last.
        position: "n", the number's (last) token, "end", or an index.

    Raises:
        MechnumError: as `mechnum.tasks.number_prompts`, on states that the model does not have and
            on positions that the texts do not have.

    Warns:
        UserWarning: where some numbers are read at the very first position and others are not.
    """
    prompts = number_prompts(model, numbers, template, digits)
    if of in ("mlp_out", *NEURON_STATES) and not model.spec.d_mlp:
        raise MechnumError(f"{model.name} has no MLPs: use 'resid' or 'attn_out'")
    if of == "resid":
        states = states_of(model, prompts, position)
        first = -1
    else:
        states = activations_of(model, prompts, of, position)
        first = 0
    order = torch.cat([group.index for group in prompts]).argsort().numpy()
    for layer in states:  # one at a time: a second copy of all would be the largest array there is
        layer[:] = layer[order]
    dims = ("layer", NUMBER, DIMENSION)
    if states.ndim == 4:
        states, dims = np.swapaxes(states, 1, 2), ("layer", "head", NUMBER, DIMENSION)
    columns = {name: _column(prompts, name)[order] for name in ("n", "pieces")}
    return xr.DataArray(
        states,
        dims=dims,
        coords={
            "layer": np.arange(first, first + len(states)),
            NUMBER: columns["n"],
            "pieces": (NUMBER, columns["pieces"]),
        },
        attrs=said_of(model, of, template)
        | {
            "digits": digits,
            "position": str(position),
            "bos": bos_policy(model, prompts[0]),
            "numbers_at": json.dumps(_positions(prompts, position)),
        },
    )


def _positions(prompts: Sequence[TokenSequences], position: str | int) -> dict[str, int]:
    """Position → how many numbers are read there."""
    if position != "n":
        return {str(position): sum(map(len, prompts))}
    found = Counter(place for group in prompts for place in group.positions["n"].tolist())
    if len(found) > 1 and 0 in found:
        warnings.warn(
            f"{found[0]} of the {sum(found.values())} numbers stand at the first position, where "
            "states of many models are of extreme size, and the others do not: give a template "
            "with text before {n}",
            stacklevel=3,
        )
    return {str(place): count for place, count in sorted(found.items())}


def _column(prompts: Sequence[TokenSequences], name: str) -> np.ndarray:
    return torch.cat([group.variables[name] for group in prompts]).numpy()
