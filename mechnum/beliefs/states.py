"""Residuals of a model at prefixes of a process' strings, as they are and as norms pass them on."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float32, Int64

from mechnum.beliefs.prefixes import Prefixes
from mechnum.errors import MechnumError
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.progress import track
from mechnum.tasks.processes.process import Process


def check_reads(model: Model, process: Process, length: int) -> None:
    """Refuse a model that cannot read and predict strings of a process.

    Raises:
        MechnumError: on a vocabulary that is too small, and on strings longer than the context.
    """
    spec = model.spec
    if min(spec.d_vocab, spec.d_vocab_out) < process.n_tokens:
        raise MechnumError(
            f"{model.name} has {min(spec.d_vocab, spec.d_vocab_out)} tokens and {process.name} "
            f"{process.n_tokens}: give a net whose tokens 0 to {process.n_tokens - 1} are the "
            "process' own"
        )
    if length > spec.n_ctx:
        raise MechnumError(
            f"strings of {length} tokens do not fit {model.name}, which reads {spec.n_ctx}: give "
            "a smaller length"
        )


def norms_of(model: Model) -> tuple[str, ...]:
    """The readings of a residual: "before" the norm that reads it and, where there is one, "after".

    The norm is that of the next block's attention, or the final one.
    """
    with_norms = model.spec.norm is not None and model.spec.final_norm is not None
    return ("before", "after") if with_norms else ("before",)


def prefix_states(
    model: Model, found: Prefixes
) -> Float32[np.ndarray, "norm stage prefix d_model"]:
    """The embedding and the state after each layer at the last token of each prefix.

    Runs in batches of strings; held at a time is the result, 4 bytes a number, and one batch.
    """
    spec, decoder, norms = model.spec, model.decoder, norms_of(model)
    shape = (len(norms), spec.n_layers + 1, len(found), spec.d_model)
    states = np.empty(shape, dtype=np.float32)
    order = np.argsort(found.string, kind="stable")
    of_string = found.string[order]
    length = int(found.position.max()) + 1
    row_bytes = block_bytes(spec, length, length) + 4 * spec.n_layers * length * spec.d_model
    todo = list(batches(len(found.strings), row_bytes))
    for part in track(todo, f"states of {model.name}"):
        own = order[slice(*np.searchsorted(of_string, (part.start, part.stop)))]
        tokens = torch.from_numpy(found.strings[part, :length])
        run = model.run(tokens, keep=("resid_pre",))
        row = torch.from_numpy(found.string[own] - part.start)
        place = torch.from_numpy(found.position[own])
        for layer in range(spec.n_layers + 1):
            last = layer == spec.n_layers
            resid = (run.last if last else run["resid_pre", layer])[row, place]
            states[0, layer, own] = resid.float().cpu().numpy()
            if "after" in norms:
                with torch.no_grad():
                    normed = decoder.final_norm(resid) if last else decoder.attn_norm(layer, resid)
                states[1, layer, own] = normed.float().cpu().numpy()
    return states


def one_hot(token: Int64[np.ndarray, " row"], n_tokens: int) -> np.ndarray:
    """Tokens as features [row, token]."""
    return np.eye(n_tokens)[token]
