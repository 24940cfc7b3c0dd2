"""Does an accelerator compute what the CPU computes?

A backend that is broken for some shape or version gives plausible numbers without an error (a
release of torch for Apple's GPUs turned the sign of a logit difference).
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.exact import exact

# One tile of the vocabulary: its product is the last of a forward, and copying all of it is slow.
_N_TOKENS = 1024


def check_device(decoder: Decoder, tokens: Tensor, tolerance: float, name: str) -> None:
    """Compare the embedding, first block, last norm and unembedding with the CPU's.

    Real weights in their real sizes, but for one block: the copy is small where the model is large.

    Args:
        tolerance: largest difference of logits that may pass, in units of their standard deviation
            (at least 1).

    Raises:
        MechnumError: past the tolerance.
    """
    if decoder.device.type == "cpu":
        return
    expected = _logits(_first_block(decoder, "cpu"), tokens.cpu())
    got = _logits(decoder, tokens).cpu()
    difference = float((got - expected).abs().max())
    if not difference <= tolerance * max(1.0, float(expected.std())):
        raise MechnumError(
            f"device {decoder.device} computes other numbers than the CPU (logits of one block of "
            f"{name} differ by {difference:.2g}): use device='cpu' or another version of torch"
        )


def _first_block(decoder: Decoder, device: str) -> Decoder:
    weights = replace(
        decoder.weights,
        blocks=decoder.weights.blocks[:1],
        W_U=decoder.weights.W_U[:, :_N_TOKENS],
        b_U=None if decoder.weights.b_U is None else decoder.weights.b_U[:_N_TOKENS],
    )
    return Decoder(decoder.spec, _moved(weights, device), _moved(decoder.rotary, device))


def _moved(value: Any, device: str) -> Any:
    """A copy of nested dataclasses and tuples with every tensor on `device`."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, tuple):
        return tuple(_moved(one, device) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: _moved(getattr(value, each.name), device) for each in fields(value)}
        return replace(value, **changed)
    return value


def _logits(decoder: Decoder, tokens: Tensor) -> Tensor:
    """Logits of the first tokens at every position, after one block."""
    with exact(decoder.device):
        resid = decoder.block(0, decoder.embed(tokens)).squeeze(0)
        ids = torch.arange(min(_N_TOKENS, decoder.weights.W_U.shape[1]), device=decoder.device)
        return decoder.logits(resid, ids).float()
