"""What a model answers when its state at the last position is mixed with another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.exact import exact
from mechnum.models.memory import batches
from mechnum.models.model import Model
from mechnum.models.norms import at_least_float32
from mechnum.models.run import Run, run
from mechnum.patching.batches import run_bytes
from mechnum.patching.propagate import Patches, propagate, state_at, states_for
from mechnum.progress import track
from mechnum.tasks.accuracy import check_logits
from mechnum.tasks.prompts import Prompts


@dataclass(frozen=True, eq=False)
class Mixture:
    """h ← (1 − α)·h + α·vector after one layer, at the last position.

    Attributes:
        vectors: some vectors, and `which` of them each prompt gets, group after group.
        alphas: one run for each.
    """

    layer: int
    vectors: Float64[np.ndarray, "vector d"]
    which: Int[np.ndarray, " prompt"]
    alphas: tuple[float, ...]


def mixed_answers(
    model: Model, prompts: Sequence[Prompts], mixtures: Sequence[Mixture]
) -> tuple[Int[np.ndarray, " prompt"], list[Int[np.ndarray, "alpha prompt"]]]:
    """The most likely token after each prompt: of the model itself, and of each mixture.

    The prompts are run once; from the mixed state on, everything is recomputed.

    Returns:
        Token ids, group after group.

    Raises:
        MechnumError: on no prompts, prompts that the model cannot read, and logits that are not
            numbers.
    """
    if (n_prompts := sum(map(len, prompts))) == 0:
        raise MechnumError("there are no prompts to run: give at least one")
    model.check_current()
    plain = np.empty(n_prompts, dtype=np.int64)
    found = [np.empty((len(own.alphas), n_prompts), dtype=np.int64) for own in mixtures]
    states = states_for(model.decoder)
    for tokens, rows in track(list(_batches(model, prompts)), "steering states"):
        base = run(model.decoder, tokens, states, start=tokens.shape[1] - 1)
        patches = [
            Patches(2 * (own.layer + 1), len(own.alphas), partial(_delta, base, own, rows))
            for own in mixtures
        ]
        with exact(model.device):
            plain[rows] = _likeliest(model, base.last[None, :, -1])[0].numpy()
            answers = propagate(model.decoder, base, patches, partial(_likeliest, model))
        for table, own in zip(found, answers, strict=True):
            table[:, rows] = own.numpy()
    return plain, found


def _batches(
    model: Model, prompts: Sequence[Prompts]
) -> Iterator[tuple[Int[Tensor, "row pos"], slice]]:
    """Tokens of equal length, and their rows among all prompts."""
    before = 0
    for group in prompts:
        length = group.tokens.shape[1]
        row_bytes = run_bytes(model.spec, states_for(model.decoder), length, 1)
        for part in batches(len(group), row_bytes):
            yield group.tokens[part], slice(before + part.start, before + part.stop)
        before += len(group)


def _delta(
    base: Run, own: Mixture, rows: slice, alphas: slice
) -> Float[Tensor, "alpha prompt 1 d_model"]:
    """What mixing adds to the states of a batch."""
    state = at_least_float32(state_at(base, 2 * (own.layer + 1))[:, -1:])
    vectors = torch.from_numpy(own.vectors[own.which[rows]]).to(state)[:, None]
    shares = torch.tensor(own.alphas[alphas]).to(state)
    return shares[:, None, None, None] * (vectors - state)


def _likeliest(
    model: Model, last: Float[Tensor, "row prompt d_model"]
) -> Int[Tensor, "row prompt"]:
    """The token with the largest logit, on the CPU."""
    decoder, states = model.decoder, last.flatten(0, 1)
    found = torch.empty(len(states), dtype=torch.long)
    for part in batches(len(states), 8 * decoder.spec.d_vocab_out):
        logits = decoder.logits(states[part])
        check_logits(model, logits)
        found[part] = logits.argmax(dim=-1).cpu()
    return found.view(last.shape[:2])
