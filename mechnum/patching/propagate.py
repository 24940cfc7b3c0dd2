"""The engine: what becomes of changes to the residual stream.

Every patch of single nodes is a difference that enters the residual stream at one point, since all
that a component does is to write there. From that point on the rest of the model is recomputed, and
nothing else: layers before it are skipped, positions before it come from the base run's keys and
values, and patches of all layers travel upwards together as one growing stack.

Points are counted as in `Node.written_at`: 2l is `resid_pre` of layer l, 2l + 1 its `resid_mid`,
and 2 × n_layers the last residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from mechnum.models.decoder import Decoder, KeysValues, StateName
from mechnum.models.memory import block_bytes, rows_at_a_time, working_rows
from mechnum.models.norms import at_least_float32
from mechnum.models.run import Run


@dataclass(frozen=True)
class Patches:
    """Differences that enter the residual stream at one point, one patch a row.

    Attributes:
        delta: patched value minus base value of the rows asked for, at the base run's `start` and
            all later positions. Made when its turn comes: those of all neurons fill no memory.
    """

    point: int
    n_rows: int
    delta: Callable[[slice], Float[Tensor, "row pair pos d_model"]]


def states_for(decoder: Decoder) -> tuple[StateName, ...]:
    """The states that a base run must keep for `propagate`."""
    return (
        ("resid_pre", "k", "v") if decoder.spec.parallel else ("resid_pre", "resid_mid", "k", "v")
    )


def state_at(base: Run, point: int) -> Float[Tensor, "pair pos d_model"]:
    """The residual stream of a run at a point."""
    layer, half = divmod(point, 2)
    if half:
        return base["resid_mid", layer]
    return base["resid_pre", layer] if layer < len(base.states["resid_pre"]) else base.last


@torch.no_grad()
def propagate(
    decoder: Decoder,
    base: Run,
    patches: Sequence[Patches],
    score: Callable[[Float[Tensor, "row pair d_model"]], Shaped[Tensor, "row pair"]],
) -> list[Shaped[Tensor, "_ pair"]]:
    """The score of the last residual at the last position, for each row of each of the patches.

    Args:
        base: the run that is patched, with `states_for(decoder)` kept.
    """
    found: list[list[Tensor]] = [[] for _ in patches]
    for pieces in _stacks(decoder, base, patches):
        ends = _Stack(decoder, base, pieces).run()
        for piece, end in zip(pieces, ends, strict=True):
            found[piece.index].append(score(end))
    # In the precision of a score.
    empty = at_least_float32(base.last.new_zeros(0, len(base.last)))
    return [torch.cat(scores) if scores else empty for scores in found]


@dataclass(frozen=True)
class _Piece:
    """Some rows of the patches with number `index`."""

    index: int
    rows: slice
    patches: Patches

    @property
    def n_rows(self) -> int:
        return self.rows.stop - self.rows.start


def _stacks(decoder: Decoder, base: Run, patches: Sequence[Patches]) -> Iterator[list[_Piece]]:
    """The rows of all patches, as many together as the memory budget allows."""
    n_pairs, n_positions, d_model = base.last.shape
    # The stack, the entering rows and their difference, in float32.
    capacity = rows_at_a_time(4 * 4 * n_pairs * n_positions * d_model)
    pieces: list[_Piece] = []
    room = capacity
    for index, own in enumerate(patches):
        first = 0
        while first < own.n_rows:
            last = min(own.n_rows, first + room)
            pieces.append(_Piece(index, slice(first, last), own))
            room -= last - first
            first = last
            if room == 0:
                yield pieces
                pieces, room = [], capacity
    if pieces:
        yield pieces


class _Stack:
    """Patched residual streams on their way up, in the order in which they enter."""

    def __init__(self, decoder: Decoder, base: Run, pieces: list[_Piece]) -> None:
        self.decoder = decoder
        self.base = base
        self.pieces = sorted(pieces, key=lambda piece: piece.patches.point)
        self.order = sorted(range(len(pieces)), key=lambda index: pieces[index].patches.point)
        n_rows = sum(piece.n_rows for piece in pieces)
        n_pairs, n_positions, d_model = base.last.shape
        self.rows = base.last.new_empty(n_rows, n_pairs, n_positions, d_model)
        self.n_entered = 0
        row_bytes = n_pairs * block_bytes(decoder.spec, n_positions, base.start + n_positions)
        self.rows_at_a_time = working_rows(row_bytes, decoder.device)

    def run(self) -> list[Float[Tensor, "_ pair d_model"]]:
        """The last position of each piece, in the order in which the pieces were given."""
        spec = self.decoder.spec
        for layer in range(spec.n_layers):
            past = self.base.past(layer)
            # Of the last layer only the last position is read.
            kept = self.rows.shape[2] if layer < spec.n_layers - 1 else 1
            self.enter(2 * layer)
            if spec.parallel:
                self.advance(partial(self.both_halves, layer, past), kept)
                continue
            self.advance(partial(self.attend, layer, past), kept)
            self.enter(2 * layer + 1)
            if spec.d_mlp:
                self.advance(partial(self.decoder.mlp_write, layer), kept)
        self.enter(2 * spec.n_layers)
        ends = self.rows[:, :, -1].split([piece.n_rows for piece in self.pieces])
        by_index = dict(zip(self.order, ends, strict=True))
        return [by_index[index] for index in range(len(self.pieces))]

    def attend(self, layer: int, past: KeysValues | None, rows: Tensor) -> Tensor:
        """What attention writes; in the last layer at the last position alone."""
        if layer == self.decoder.spec.n_layers - 1:
            return self.decoder.attention_at_end(layer, rows, past)
        return self.decoder.attention_write(layer, rows, past)

    def both_halves(self, layer: int, past: KeysValues | None, rows: Tensor) -> Tensor:
        """What attention and MLP of a parallel block write."""
        attention = self.attend(layer, past, rows)
        if not self.decoder.spec.d_mlp:
            return attention
        return attention + self.decoder.mlp_write(layer, rows[:, :, -attention.shape[2] :])

    def enter(self, point: int) -> None:
        """Put the patches of this point on the stack."""
        for piece in self.pieces:
            if piece.patches.point != point:
                continue
            n_positions = self.rows.shape[2]
            delta = piece.patches.delta(piece.rows)[:, :, -n_positions:]
            # Added in the difference's own precision: the body's may be bfloat16.
            entering = state_at(self.base, point)[:, -n_positions:].to(delta.dtype) + delta
            self.rows[self.n_entered : self.n_entered + piece.n_rows] = entering
            self.n_entered += piece.n_rows

    def advance(self, writes: Callable[[Tensor], Tensor], kept: int) -> None:
        """Add what a half-block writes to all patches on the stack, at the last `kept` positions.

        Positions before those are not needed any more.
        """
        advanced = self.rows
        if kept < advanced.shape[2]:
            advanced = torch.empty_like(advanced[:, :, -kept:])
        for first in range(0, self.n_entered, self.rows_at_a_time):
            part = slice(first, min(first + self.rows_at_a_time, self.n_entered))
            rows = self.rows[part]
            torch.add(rows[:, :, -kept:], writes(rows), out=advanced[part])
        self.rows = advanced
