"""Is the canonical decoder the wrapped model? Measured at load, and in full by `mechnum verify`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.device_check import check_device
from mechnum.models.exact import exact
from mechnum.models.norms import at_least_float32
from mechnum.models.run import run
from mechnum.models.undisturbed import undisturbed

# Largest logit difference that may pass, in units of the logits' standard deviation (at least 1):
# rounding alone stays far below, another rotary pairing or a forgotten bias far above.
# Norms of transformers compute in float32 whatever the model is in.
_TOLERANCE = {torch.float64: 1e-5, torch.float32: 1e-3, torch.bfloat16: 0.25, torch.float16: 0.03}
_PROBE_PROMPTS, _PROBE_TOKENS = 2, 32


@dataclass(frozen=True)
class Verification:
    """How far the decoder is from the wrapped model on seeded random tokens.

    Attributes:
        logit_difference: largest |decoder − wrapped| over prompts, positions and vocabulary.
        tolerance: what it was allowed to be.
        additivity: largest |embed + Σ attention + Σ MLP − last residual|, relative to the largest
            entry of the last residual; attention as the sum of its heads and its bias.
    """

    logit_difference: float
    tolerance: float
    additivity: float


def verify(
    decoder: Decoder, wrapped: nn.Module, forward: Callable[[Tensor], Tensor], name: str
) -> Verification:
    """Compare the decoder with `forward` of the wrapped model.

    Raises:
        MechnumError: past the tolerance, where the writes do not add up, where logits are not
            finite, and on a device that computes other numbers than the CPU.
    """
    tokens = probe_tokens(decoder)
    check_device(decoder, tokens, _TOLERANCE[decoder.dtype], name)
    with undisturbed(wrapped), exact(decoder.device):
        expected = at_least_float32(forward(tokens))
        got = decoder(tokens)
    if not bool(expected.isfinite().all()):
        raise MechnumError(f"{name} gives logits that are not finite: its weights are damaged")
    difference = float((got - expected).abs().max())
    tolerance = _TOLERANCE[decoder.dtype] * max(1.0, float(expected.std()))
    if not difference <= tolerance:
        raise MechnumError(
            f"the decoder's logits differ from {name}'s by {difference:.3g} (allowed "
            f"{tolerance:.3g}): the model has a part that mechnum does not know, or one that was "
            "rounded to another precision: load it anew in one precision, or use another model"
        )
    rest = additivity(decoder, tokens)
    if not rest <= _TOLERANCE[decoder.dtype]:
        raise MechnumError(
            f"what the heads and MLPs of {name} write does not add up to the last residual "
            f"({rest:.2g} of it is left): the model has a part that mechnum does not know"
        )
    return Verification(difference, tolerance, rest)


def probe_tokens(decoder: Decoder) -> Int[Tensor, "prompt pos"]:
    """Seeded random tokens, as many as the context takes and at most 32 a prompt."""
    length = min(decoder.spec.n_ctx, _PROBE_TOKENS)
    generator = np.random.default_rng(np.random.SeedSequence(0))
    drawn = generator.integers(0, decoder.spec.d_vocab, size=(_PROBE_PROMPTS, length))
    # A prompt that happens to begin with the pad token would be taken for a padded one.
    pad = decoder.spec.pad_token_id
    drawn[drawn == pad] = 0 if pad else 1
    return torch.from_numpy(drawn).to(decoder.device)


def additivity(decoder: Decoder, tokens: Int[Tensor, "prompt pos"]) -> float:
    """What is left of the last residual when every write is taken away, each counted once."""
    states = run(decoder, tokens, keep=("z", "mlp_out"))
    with exact(decoder.device):
        rest = states.last.float() - decoder.embed(tokens).squeeze(0).float()
        for layer in range(decoder.spec.n_layers):
            attn = decoder.weights.blocks[layer].attn
            for head in range(decoder.spec.n_heads):
                rest -= states["z", layer][:, :, head].float() @ attn.W_O[head].float()
            if attn.b_O is not None:
                rest -= attn.b_O.float()
            rest -= states["mlp_out", layer].float()
        return float(rest.abs().max() / states.last.abs().max().clamp_min(1e-30))
