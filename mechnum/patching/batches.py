"""Pairs in batches whose runs fit the memory budget, with the position that is patched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from mechnum.models.decoder import StateName
from mechnum.models.memory import batches, block_bytes
from mechnum.models.model import Model
from mechnum.models.run import first_difference
from mechnum.models.spec import ModelSpec
from mechnum.tasks.pairs import PairGroup, Pairs
from mechnum.tasks.positions import resolve_position

Direction = Literal["denoise", "noise"]


@dataclass(frozen=True)
class Batch:
    """Pairs of one token count whose patched position is the same.

    Attributes:
        base: tokens of the run that is patched.
        other: tokens of the other prompt of each pair.
        position: the first that is patched.
        index: place of each pair among all pairs.
    """

    base: Int[Tensor, "pair pos"]
    other: Int[Tensor, "pair pos"]
    answers: Int[Tensor, " pair"]
    corrupt_answers: Int[Tensor, " pair"]
    position: int
    index: Int[Tensor, " pair"]

    @property
    def length(self) -> int:
        """Tokens of a prompt."""
        return self.base.shape[1]


def is_everywhere(position: str | int) -> bool:
    """Whether every position is patched, together or in turn."""
    return position in ("all", "each")


def pair_batches(
    model: Model,
    pairs: Pairs,
    position: str | int,
    direction: Direction,
    states: Iterable[StateName],
    from_the_first: bool = False,
    pair_bytes: int = 0,
) -> Iterator[Batch]:
    """The pairs in batches whose runs fit the memory budget.

    Args:
        position: name of a position, an index, or "all" and "each", which begin at the first
            position at which the prompts of a batch's pairs differ.
        states: what the two runs keep.
        from_the_first: "all" and "each" begin at the first position: values that are not the other
            prompt's differ everywhere.
        pair_bytes: what is held for one pair besides its runs.

    Raises:
        MechnumError: on a position that the prompts do not have.
    """
    states = tuple(states)
    for group in pairs.groups:
        length = group.clean.tokens.shape[1]
        base, other = group.corrupt.tokens, group.clean.tokens
        if direction == "noise":
            base, other = other, base
        places = _places(position, group, length)
        for place in places.unique().tolist():
            rows = (places == place).nonzero().flatten()
            row_bytes = run_bytes(model.spec, states, length, length - place)
            for part in batches(len(rows), row_bytes + pair_bytes):
                chosen = rows[part]
                first = place
                if is_everywhere(position) and not from_the_first:
                    first = first_difference(base[chosen], other[chosen])
                yield Batch(
                    base=base[chosen],
                    other=other[chosen],
                    answers=group.clean.answers[chosen],
                    corrupt_answers=group.corrupt.answers[chosen],
                    position=first,
                    index=group.index[chosen],
                )


def run_bytes(spec: ModelSpec, states: tuple[StateName, ...], length: int, n_kept: int) -> int:
    """About what a base run and the run of its values keep for one pair, in bytes."""
    heads, groups = spec.n_heads * spec.d_head, spec.n_kv_heads * spec.d_head
    widths = {"q": heads, "z": heads, "pattern": spec.n_heads * length, "mlp_hidden": spec.d_mlp}
    kept = sum(widths.get(name, spec.d_model) for name in states if name not in ("k", "v"))
    layer = n_kept * kept + 2 * length * groups
    return 2 * 4 * spec.n_layers * layer + block_bytes(spec, length, length)


def _places(position: str | int, group: PairGroup, length: int) -> Int[Tensor, " pair"]:
    if is_everywhere(position):
        return torch.zeros_like(group.index)
    return resolve_position(position, group.clean.positions, length)
