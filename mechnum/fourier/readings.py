"""Logits of number tokens, from the states inside a model: what lenses look at.

Three ways of reading a state, never to be mixed up:

- "own": through the final norm with the state's own statistics. This is the logit lens: what the
  model would answer, were this state the last one.
- "frozen": through the final norm with the scale of the prompt's last residual. This is linear, so
  the parts of a residual add up to its logits, together with a constant.
- "none": the unembedding alone (Zhou et al. 2024, section 2). Linear too; it depends on whether the
  final norm's scale was folded into the unembedding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Int64
from torch import Tensor

from mechnum.errors import InvalidInput, MechnumError
from mechnum.models.decoder import Decoder, StateName
from mechnum.models.exact import exact
from mechnum.models.model import Model
from mechnum.models.norms import at_least_float32
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import runs_at

Stage = Literal["resid", "attn", "mlp"]
Reading = Literal["own", "frozen", "none"]

_KEPT: dict[Stage, StateName] = {"resid": "resid_pre", "attn": "attn_out", "mlp": "mlp_out"}


class State(NamedTuple):
    """A place in the model: the residual after `layer` (−1: the embedding), or a write of it."""

    stage: Stage
    layer: int


def all_states(model: Model) -> list[State]:
    """The residual after each layer and the embedding, and what attention and MLPs write."""
    layers = range(model.spec.n_layers)
    states = [State("resid", layer) for layer in (-1, *layers)]
    states += [State("attn", layer) for layer in layers]
    if model.spec.d_mlp:
        states += [State("mlp", layer) for layer in layers]
    return states


def check_numbers_of(model: Model, numbers: Int[Tensor, " number"]) -> None:
    """Refuse token ids that the model has no logits for.

    Raises:
        MechnumError: on fewer than 3 ids, on one that is there twice, and outside the vocabulary.
    """
    if len(numbers) < 3:
        raise InvalidInput(f"{len(numbers)} numbers have no waves: give the tokens of 3 or more")
    if len(numbers.unique()) < len(numbers):
        raise MechnumError("two numbers have the same token: give one token for each number")
    if int(numbers.min()) < 0 or int(numbers.max()) >= model.spec.d_vocab_out:
        raise MechnumError(
            f"a number's token is none of the {model.spec.d_vocab_out} that {model.name} has "
            "logits for: use mechnum.tasks.answer_tokens"
        )


def logits_by_state(
    model: Model,
    prompts: Sequence[Prompts],
    numbers: Int[Tensor, " number"],
    states: Sequence[State],
    reading: Reading,
    position: str | int = "end",
) -> Iterator[tuple[Int64[np.ndarray, " row"], int, Float64[np.ndarray, "row number"]]]:
    """Logits of the number tokens, batch by batch and in it state by state.

    Yields:
        The rows of the prompts, counted group after group; which of the states; its logits.

    Raises:
        MechnumError: on tokens, states and positions that do not exist, and on another reading.
    """
    check_numbers_of(model, numbers)
    _check_states(model, states)
    if reading not in ("own", "frozen", "none"):
        raise MechnumError(f"unknown reading {reading!r}: use 'own', 'frozen' or 'none'")
    decoder = model.decoder
    ids = numbers.to(decoder.device)
    final = State("resid", model.spec.n_layers - 1)
    names: list[StateName] = list(
        dict.fromkeys(_KEPT[state.stage] for state in states if state != final)
    )
    # The logits, and about as much again for coefficients and products of them.
    row_bytes = 8 * 4 * len(numbers)
    for rows, run in runs_at(model, prompts, position, names, row_bytes):
        last = run.last[:, 0]
        with exact(decoder.device):
            for index, (stage, layer) in enumerate(states):
                if (stage, layer) == final:
                    value = last
                else:
                    value = run[_KEPT[stage], layer + (stage == "resid")][:, 0]
                logits = _read(decoder, value, last, ids, reading)
                yield rows, index, logits.double().cpu().numpy()


def constant_logits(
    model: Model, numbers: Int[Tensor, " number"], reading: Reading
) -> Float64[np.ndarray, " number"]:
    """What the linear readings leave out: the biases of the final norm and the unembedding.

    Zero with "own", which has it in every state.
    """
    decoder = model.decoder
    zero = torch.zeros(model.spec.d_model, dtype=model.dtype, device=decoder.device)
    ids = numbers.to(decoder.device)
    with exact(decoder.device):
        if reading == "own":
            return np.zeros(len(numbers))
        frozen = reading == "frozen"
        normed = decoder.final_norm(zero, zero[:1]) if frozen else at_least_float32(zero)
        return decoder.unembed(normed, ids).double().cpu().numpy()


def number_logits(
    model: Model, prompts: Sequence[Prompts], numbers: Int[Tensor, " number"]
) -> Float64[np.ndarray, "prompt number"]:
    """The model's own logits of the number tokens after each prompt, group after group."""
    check_numbers_of(model, numbers)
    found = np.empty((sum(map(len, prompts)), len(numbers)))
    last = [State("resid", model.spec.n_layers - 1)]
    for rows, _, logits in logits_by_state(model, prompts, numbers, last, "own"):
        found[rows] = logits
    return found


def _read(
    decoder: Decoder,
    value: Float[Tensor, "row d_model"],
    last: Float[Tensor, "row d_model"],
    ids: Int[Tensor, " number"],
    reading: Reading,
) -> Float[Tensor, "row number"]:
    if reading == "own":
        return decoder.logits(value, ids)
    if reading == "frozen":
        scale = decoder.final_scale(last)
        shift = decoder.final_norm(torch.zeros_like(value), scale)
        normed = decoder.final_norm(value, scale) - shift
    else:
        normed = at_least_float32(value)
    # Shift and bias belong to no part: see `constant_logits`.
    return decoder.unembed(normed, ids) - decoder.unembed(torch.zeros_like(normed[:1]), ids)


def _check_states(model: Model, states: Sequence[State]) -> None:
    known = set(all_states(model))
    unknown = [state for state in states if state not in known]
    if unknown or not states:
        what = f"state {tuple(unknown[0])}" if unknown else "no state"
        raise MechnumError(
            f"{what} cannot be read: {model.name} has 'resid' of layers −1 (the embedding) to "
            f"{model.spec.n_layers - 1}, 'attn' of layers 0 to {model.spec.n_layers - 1}"
            + (", and 'mlp' of the same" if model.spec.d_mlp else ", and no MLPs")
        )
