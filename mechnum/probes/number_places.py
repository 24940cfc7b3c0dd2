"""Rows of numbers at every place of a model, and the numbers that several models can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float64

from mechnum.errors import MechnumError
from mechnum.fourier import embedding_rows, state_rows, unembedding_rows
from mechnum.fourier.model_tables import as_numpy, matrix_rows
from mechnum.models import Model, TokenTable
from mechnum.models.token_table import token_embeddings
from mechnum.tasks.numbers import NumberTokens, check_numbers
from mechnum.tasks.prompts import TokenSequences, sequences_by_length
from mechnum.tasks.single_numbers import (
    BARE_NUMBER,
    DigitsMode,
    around,
    number_prompts,
    own_numbers,
)
from mechnum.tasks.states import states_of

NEUTRAL = "The number is {n}"
"""The text in which a model reads numbers that it splits into pieces."""
EMBEDDING, UNEMBEDDING = "embedding", "unembedding"
_FEWEST = 4


@dataclass(frozen=True)
class Reading:
    """How a model reads numbers.

    Attributes:
        numbers: those that it can read.
        template: the text around each number.
        digits: "single" where each number is one token, "last" where states at the last token of
            a number stand for it.
    """

    numbers: tuple[int, ...]
    template: str
    digits: DigitsMode


def reading_of(
    model: Model | TokenTable, numbers: Iterable[SupportsIndex], template: str | None = None
) -> Reading:
    """Which of the numbers a model can read, and how.

    Those that are one token are read where they are half of them or more, or all that the model can
    spell; else all that it can spell, at their last token.

    Args:
        template: with {n} for the number; by default the bare number where numbers are one token,
            and `NEUTRAL` where they are not, since a number alone would be read at the first
            position where it has one digit, and at a later one where it has more.

    Raises:
        MechnumError: on numbers that are no integers or there twice, and on a template without {n}.
    """
    integers = check_numbers(numbers)
    if model.tokenizer is None:
        known = set(_numbers_without_tokenizer(model))
        return Reading(tuple(n for n in integers if n in known), template or BARE_NUMBER, "single")
    single = _tokens(model, integers, template or BARE_NUMBER).single()
    if 2 * len(single) >= len(integers) or isinstance(model, TokenTable):
        return Reading(single, template or BARE_NUMBER, "single")
    found = _tokens(model, integers, template or NEUTRAL)
    spelled = tuple(
        number
        for number, ids in zip(integers, found.context, strict=True)
        if ids and found.unk_id not in ids
    )
    if len(spelled) <= len(single):
        return Reading(single, template or BARE_NUMBER, "single")
    return Reading(spelled, template or NEUTRAL, "last")


def shared_numbers(readings: Mapping[str, Reading]) -> range:
    """The longest run of consecutive numbers that all can read, as spectra need it.

    Args:
        readings: model → how it reads numbers.

    Raises:
        MechnumError: the longest run has fewer than 4 numbers.
    """
    shared = set.intersection(*(set(reading.numbers) for reading in readings.values()))
    longest = range(0)
    for first in sorted(n for n in shared if n - 1 not in shared):
        last = first
        while last + 1 in shared:
            last += 1
        longest = max(longest, range(first, last + 1), key=len)
    if len(longest) < _FEWEST:
        counts = ", ".join(f"{name} reads {len(own.numbers)}" for name, own in readings.items())
        raise MechnumError(
            f"no {_FEWEST} numbers in a row are read by all of these models ({counts}): choose "
            "another range, or other models"
        )
    return longest


def place_rows(
    model: Model | TokenTable, numbers: Sequence[int], reading: Reading
) -> dict[str, xr.DataArray]:
    """The rows of numbers at each place of a model: place → (number, dimension).

    The places: "embedding", "layer 0" (the state after it), ..., and "unembedding" where each
    number is one token. Of numbers of several tokens the embedding is that of the last one.

    Raises:
        MechnumError: as `mechnum.fourier.state_rows`.
    """
    if isinstance(model, TokenTable):
        tokens = _tokens(model, numbers, reading.template).ids()
        rows = model.W_E[list(tokens.values())]
        return {EMBEDDING: matrix_rows(rows, tokens, {"model": model.name, "of": EMBEDDING})}
    states = state_rows(model, numbers, "resid", reading.template, reading.digits)
    layers = {layer_place(layer): states.sel(layer=layer) for layer in range(model.spec.n_layers)}
    if reading.digits == "last":
        return {EMBEDDING: states.sel(layer=-1), **layers}
    found = {EMBEDDING: embedding_rows(model, numbers, reading.template), **layers}
    try:
        return {**found, UNEMBEDDING: unembedding_rows(model, numbers, reading.template)}
    except MechnumError:  # It reads these numbers and cannot answer them.
        return found


def word_rows(
    model: Model | TokenTable, ids: Sequence[int], reading: Reading, places: Sequence[str]
) -> dict[str, Float64[np.ndarray, "token d"]]:
    """The rows of other tokens at these places, each token in the text where numbers stand.

    Args:
        ids: of the tokens, see `shared_words`.

    Raises:
        MechnumError: on a place that the model does not have.
    """
    chosen = torch.tensor(list(ids))
    embedded = as_numpy(token_embeddings(model)[chosen]).astype(np.float64)
    found = {EMBEDDING: embedded}
    if not isinstance(model, TokenTable):
        if UNEMBEDDING in places:
            found[UNEMBEDDING] = as_numpy(model.decoder.weights.W_U.T[chosen]).astype(np.float64)
        if any(place not in found for place in places):
            states = states_of(model, [_with_words(model, ids, reading)], "n").astype(np.float64)
            found |= {layer_place(layer): states[1 + layer] for layer in range(len(states) - 1)}
    if unknown := [place for place in places if place not in found]:
        raise MechnumError(f"{model.name} has no {unknown[0]}: use one of {', '.join(found)}")
    return {place: found[place] for place in places}


def layer_place(layer: int) -> str:
    """What the place after a layer is called."""
    return f"layer {layer}"


def _with_words(model: Model, ids: Sequence[int], reading: Reading) -> TokenSequences:
    """The text with a token in place of the number, one for each token."""
    prompts = number_prompts(model, reading.numbers, reading.template, reading.digits)
    group = prompts[0]  # Its numbers have the fewest tokens.
    if int(group.variables["pieces"][0]) > 1:
        raise MechnumError(
            f"no number is one token in {reading.template!r} for {model.name}, so no other token "
            "can stand in its place: compare without tokens"
        )
    text, at = group.tokens[0].tolist(), int(group.positions["n"][0])
    (found,) = sequences_by_length(
        token_ids=[[*text[:at], token, *text[at + 1 :]] for token in ids],
        positions={"n": [at] * len(ids)},
        variables={},
        texts=[str(token) for token in ids],
    )
    return found


def _tokens(model: Model | TokenTable, numbers: Sequence[int], template: str) -> NumberTokens:
    prefix, suffix = around(template)
    return NumberTokens.of(model.tokenizer, numbers, prefix, suffix, model.name)


def _numbers_without_tokenizer(model: Model | TokenTable) -> range:
    if isinstance(model, Model) and model.default_task is not None:
        return own_numbers(model)
    return range(len(token_embeddings(model)))
