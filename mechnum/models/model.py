"""The model that the rest of the package works on."""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.exact import exact
from mechnum.models.memory import batches, block_bytes
from mechnum.models.run import Edit, Run, StateName, check_tokens, run
from mechnum.models.spec import ModelSpec
from mechnum.models.undisturbed import n_user_hooks
from mechnum.models.verify import Verification


@dataclass(frozen=True)
class Model:
    """A wrapped model with its canonical decoder.

    Made by `mechnum.load` and `mechnum.wrap`. Neither the wrapped model nor global state is
    changed. Recipes run the decoder on the wrapped model's tensors: what is written into these
    counts at once, a tensor that is replaced is refused, and hooks have no part in results, which
    a warning says.

    Attributes:
        name: what was asked for.
        spec: what the model is made of.
        decoder: its forward in plain torch, on the wrapped model's weights.
        tokenizer: a transformers tokenizer, None for nets that read number ids.
        verification: how far the decoder was from the wrapped model when it was wrapped.
        wrapped: the wrapped model.
        template: the prompt that the model was trained on, None where a task's own is used.
        default_task: the task that the model was trained on, as `mechnum.tasks.parse` reads it.
    """

    name: str
    spec: ModelSpec
    decoder: Decoder
    tokenizer: Any
    verification: Verification
    wrapped: nn.Module
    make_tl: Callable[[], Any]
    template: str | None = None
    default_task: str | None = None
    _identities: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Note which tensors are wrapped: the decoder would go on with one that is replaced."""
        identities = {name: id(tensor) for name, tensor in self.wrapped.named_parameters()}
        object.__setattr__(self, "_identities", identities)

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

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell models apart: the spec and a sample of each matrix.

        Computed from the weights as they stand now.
        """
        digest = hashlib.sha256(repr(self.spec).encode())
        weights = self.decoder.weights
        for tensor in (
            weights.W_E,
            weights.W_U,
            *(block.attn.W_O for block in weights.blocks),
            *(block.mlp.W_out for block in weights.blocks if block.mlp is not None),
        ):
            sample = tensor[tuple(slice(None, None, max(1, size // 16)) for size in tensor.shape)]
            digest.update(sample.float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def check_current(self) -> None:
        """Is the wrapped model still the one that was wrapped?

        Raises:
            MechnumError: where one of its tensors was replaced by another.

        Warns:
            UserWarning: where hooks sit on it, since results are those without them.
        """
        now = {name: id(parameter) for name, parameter in self.wrapped.named_parameters()}
        changed = [name for name, identity in self._identities.items() if now.get(name) != identity]
        if changed:
            raise MechnumError(
                f"parameter {changed[0]} of {self.name} was replaced after wrapping: wrap it again"
            )
        if count := n_user_hooks(self.wrapped):
            warnings.warn(
                f"{self.name} has {count} hooks of yours: mechnum's results are those without them",
                stacklevel=3,
            )

    def run(
        self,
        tokens: Int[Tensor, "prompt pos"],
        keep: Iterable[StateName] = (),
        start: int = 0,
        edit: Edit | None = None,
    ) -> Run:
        """Run prompts of equal length and keep the named states (see `mechnum.models.run.Run`).

        Args:
            edit: what it returns of a state goes on (see `mechnum.models.run.run`).
        """
        self.check_current()
        return run(self.decoder, tokens, keep, start, edit=edit)

    def logits(
        self,
        tokens: Int[Tensor, "prompt pos"],
        token_ids: Int[Tensor, " token"] | None = None,
    ) -> Float[Tensor, "prompt token"]:
        """Logits at the last position, on the CPU; of `token_ids` alone where they are given.

        Raises:
            MechnumError: on tokens that the model cannot read.
        """
        self.check_current()
        check_tokens(self.decoder, tokens)
        with exact(self.device):
            return self._logits(tokens.to(self.device), token_ids)

    def _logits(
        self, tokens: Int[Tensor, "prompt pos"], token_ids: Int[Tensor, " token"] | None
    ) -> Float[Tensor, "prompt token"]:
        parts = []
        n_positions = tokens.shape[1]
        row_bytes = block_bytes(self.spec, n_positions, n_positions) + 4 * self.spec.d_vocab_out
        for rows in batches(len(tokens), row_bytes):
            last = run(self.decoder, tokens[rows], start=n_positions - 1).last[:, -1]
            parts.append(self.decoder.logits(last, token_ids).cpu())
        return torch.cat(parts)


def sharing_copy(model: nn.Module) -> nn.Module:
    """A copy of a module tree around the very same tensors.

    TransformerLens puts its own modules into the tree that it wraps; in a copy they do not reach
    the caller's model, and no weight is stored twice.
    """
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, shared)
