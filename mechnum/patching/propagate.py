"""The engine: what becomes of changes to the residual stream.

Every patch of this package is a difference that enters the residual stream at one point, since
all that a component does is to write there. From that point on the rest of the model is
recomputed, and nothing else: layers before it are skipped, positions before it come from the base
run's keys and values, and patches of all layers travel upwards together as one growing stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from mechnum.models.decoder import Decoder, KeysValues
from mechnum.models.memory import block_bytes, rows_at_a_time
from mechnum.models.run import Run, StateName

# Where a difference can enter, as the state of the base run that it is added to.
Point = Literal["resid_pre", "resid_mid", "resid_post"]


@dataclass(frozen=True)
class Injection:
    """Differences that enter the residual stream of `layer` at `point`, one patch a row.

    Attributes:
        delta: patched value minus base value, at the base run's `start` and all later positions.
    """

    layer: int
    point: Point
    delta: Float[Tensor, "stack pair pos d_model"]


def states_for(decoder: Decoder) -> tuple[StateName, ...]:
    """The states that a base run must keep for `propagate`."""
    if decoder.spec.parallel:
        return ("resid_pre", "resid_post", "k", "v")
    return ("resid_pre", "resid_mid", "resid_post", "k", "v")


@torch.no_grad()
def propagate(
    decoder: Decoder, base: Run, injections: Sequence[Injection]
) -> list[Float[Tensor, "stack pair d_model"]]:
    """The last residual at the last position, for each injection.

    Args:
        base: the run that is patched, with `states_for(decoder)` kept.
    """
    stack = _Stack(decoder, base, injections)
    for layer in range(decoder.spec.n_layers):
        past = base.past(layer)
        stack.enter(layer, "resid_pre")
        if decoder.spec.parallel:
            stack.advance(partial(decoder.block, layer, past=past))
        else:
            stack.advance(partial(_after_attention, decoder, layer, past))
            stack.enter(layer, "resid_mid")
            stack.advance(partial(_after_mlp, decoder, layer))
        stack.enter(layer, "resid_post")
    return stack.ends()


class _Stack:
    """The patched residual streams on their way up, in the order in which they entered."""

    def __init__(self, decoder: Decoder, base: Run, injections: Sequence[Injection]) -> None:
        self.decoder = decoder
        self.base = base
        self.injections = injections
        self.rows: Tensor | None = None
        self.order: list[int] = []
        n_pairs, n_positions, _ = base.last.shape
        row_bytes = n_pairs * block_bytes(decoder.spec, n_positions, base.start + n_positions)
        self.rows_at_a_time = rows_at_a_time(row_bytes)

    def enter(self, layer: int, point: Point) -> None:
        """Put the patches of this point on the stack."""
        for index, injection in enumerate(self.injections):
            if (injection.layer, injection.point) == (layer, point):
                delta = injection.delta
                # Added in the difference's own precision: the body's may be bfloat16.
                entering = (self.base[point, layer].to(delta.dtype) + delta).to(self.decoder.dtype)
                self.rows = entering if self.rows is None else torch.cat([self.rows, entering])
                self.order.append(index)

    def advance(self, step: Callable[[Tensor], Tensor]) -> None:
        """One half-block for all patches, as many at a time as the budget allows."""
        if self.rows is not None:
            self.rows = torch.cat([step(part) for part in self.rows.split(self.rows_at_a_time)])

    def ends(self) -> list[Tensor]:
        """The last position of each injection's patches, in the order of the injections."""
        if self.rows is None:
            return []
        sizes = [len(self.injections[index].delta) for index in self.order]
        parts = self.rows[:, :, -1].split(sizes)
        by_index = dict(zip(self.order, parts, strict=True))
        return [by_index[index] for index in range(len(self.injections))]


def _after_attention(decoder: Decoder, layer: int, past: KeysValues | None, rows: Tensor) -> Tensor:
    return rows + decoder.attention(layer, rows, past).out


def _after_mlp(decoder: Decoder, layer: int, rows: Tensor) -> Tensor:
    mlp = decoder.mlp(layer, rows)
    return rows if mlp is None else rows + mlp.out
