"""Positions of prompts, by name or by index."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import SupportsIndex

import torch
from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError


def resolve_position(
    position: str | int, named: Mapping[str, Int[Tensor, " prompt"]], length: int
) -> Int[Tensor, " prompt"]:
    """Where a position is in each prompt.

    Raises:
        MechnumError: on an unknown name, and on an index outside the prompt.
    """
    if isinstance(position, bool) or not isinstance(position, str | SupportsIndex):
        raise MechnumError(f"{position!r} is no position: use a name or an index")
    if isinstance(position, str):
        if position not in named:
            raise MechnumError(
                f"the prompts have no position {position!r} here: use an index, or one of "
                f"{', '.join(named)}"
            )
        return named[position]
    position = operator.index(position)
    if not -length <= position < length:
        raise MechnumError(f"position {position} is outside prompts of {length} tokens")
    return torch.full_like(named["end"], position % length)
