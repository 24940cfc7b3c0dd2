"""The model that the rest of the package works on."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mechnum.models.decoder import Decoder
from mechnum.models.memory import batches, block_bytes
from mechnum.models.run import Run, StateName, check_tokens, run
from mechnum.models.spec import ModelSpec
from mechnum.models.verify import Verification


@dataclass(frozen=True)
class Model:
    """A wrapped model with its canonical decoder.

    Made by `mechnum.load` and `mechnum.wrap`. Neither the wrapped model nor global state is
    changed; recipes run the decoder, so hooks that sit on the wrapped model have no part in them.

    Attributes:
        name: what was asked for.
        spec: what the model is made of.
        decoder: its forward in plain torch, on the wrapped model's weights.
        tokenizer: a transformers tokenizer, None for nets that read number ids.
        verification: how far the decoder is from the wrapped model.
        template: the prompt that the model was trained on, None where a task's own is used.
        default_task: the task that the model was trained on, as `mechnum.tasks.parse` reads it.
    """

    name: str
    spec: ModelSpec
    decoder: Decoder
    tokenizer: Any
    verification: Verification
    make_tl: Callable[[], Any]
    template: str | None = None
    default_task: str | None = None

    @cached_property
    def tl(self) -> Any:
        """The model in TransformerLens: the wrapped one, or a bridge that shares its weights."""
        return self.make_tl()

    @property
    def device(self) -> torch.device:
        """Where the weights lie; recipes move their inputs there."""
        return self.decoder.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        return self.decoder.dtype

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell models apart: the spec and a sample of each matrix."""
        digest = hashlib.sha256(repr(self.spec).encode())
        weights = self.decoder.weights
        for tensor in (
            weights.W_E,
            weights.W_U,
            *(block.attn.W_O for block in weights.blocks),
            *(block.mlp.W_out for block in weights.blocks if block.mlp is not None),
        ):
            # 61 is prime to the usual widths, so that the sample meets every row and column.
            sample = tensor.flatten()[:: max(1, tensor.numel() // 4096) * 61 % tensor.numel() or 1]
            digest.update(sample.float().cpu().numpy().tobytes())
        return digest.hexdigest()[:16]

    def run(
        self, tokens: Int[Tensor, "prompt pos"], keep: Iterable[StateName] = (), start: int = 0
    ) -> Run:
        """Run prompts of equal length and keep the named states (see `mechnum.models.run.Run`)."""
        return run(self.decoder, tokens, keep, start)

    @torch.no_grad()
    def logits(
        self,
        tokens: Int[Tensor, "prompt pos"],
        token_ids: Int[Tensor, " token"] | None = None,
    ) -> Float[Tensor, "prompt token"]:
        """Logits at the last position, on the CPU; of `token_ids` alone where they are given.

        Raises:
            MechnumError: on tokens that the model cannot read.
        """
        check_tokens(self.decoder, tokens)
        tokens = tokens.to(self.device)
        parts = []
        n_positions = tokens.shape[1]
        row_bytes = block_bytes(self.spec, n_positions, n_positions) + 4 * self.spec.d_vocab_out
        for rows in batches(len(tokens), row_bytes):
            resid = self.decoder.embed(tokens[rows])
            for layer in range(self.spec.n_layers):
                resid = self.decoder.block(layer, resid)
            last = resid[0, :, -1]
            parts.append(self.decoder.logits(last, token_ids).cpu())
        return torch.cat(parts)


def sharing_copy(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of a module tree around the very same tensors.

    TransformerLens puts its own modules into the tree that it wraps; in a copy they do not reach
    the caller's model, and no weight is stored twice.
    """
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)
