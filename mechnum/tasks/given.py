"""Pairs from token ids, for models without a tokenizer and tasks of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.tasks.numbers import check_integer, some
from mechnum.tasks.pairs import PairGroup, Pairs
from mechnum.tasks.prompts import Prompts, group_by_length

if TYPE_CHECKING:
    from mechnum.models.model import Model

# Unions of types, not of their names: Python 3.10 cannot resolve a name in another module.
Ids: TypeAlias = Tensor | np.ndarray | Sequence[int]
Rows: TypeAlias = Tensor | np.ndarray | Sequence[Ids]


def pairs_from_tokens(
    clean: Rows,
    corrupt: Rows,
    answers: Ids,
    corrupt_answers: Ids,
    positions: Mapping[str, int | Ids] | None = None,
    *,
    model: Model | None = None,
) -> Pairs:
    """Pairs from token ids.

    Args:
        clean: token ids of the clean prompts, `[pair, pos]`, or a list of prompts that may
            differ in length from pair to pair; with the BOS token where the model wants one.
        corrupt: the same for the corrupt prompts.
        answers: token id of the right answer to each clean prompt.
        corrupt_answers: token id of the right answer to each corrupt prompt.
        positions: name → position in every pair (a number, or one for each pair, counted from
            0), valid on both sides. "end", the last token, is there always.
        model: where given, the ids are checked against its vocabulary and context.

    Returns:
        The pairs in the order given, with `vary="given"` and nothing dropped.

    Raises:
        MechnumError: ids that are not integers or are out of range, clean and corrupt prompts of
            different length, equal prompts, equal answers, or positions outside the prompt.
    """
    clean_rows = _rows("clean", clean)
    corrupt_rows = _rows("corrupt", corrupt)
    n = len(clean_rows)
    sides = {
        "corrupt prompts": len(corrupt_rows),
        "answers": len(right := _ids("answers", answers)),
        "corrupt answers": len(wrong := _ids("corrupt_answers", corrupt_answers)),
    }
    for what, count in sides.items():
        if count != n:
            raise MechnumError(f"{n} clean prompts have {count} {what}: give one for each prompt")
    if n == 0:
        raise MechnumError("there are no pairs: give at least one clean and one corrupt prompt")
    for row, (left, right_side) in enumerate(zip(clean_rows, corrupt_rows, strict=True)):
        if len(left) != len(right_side):
            raise MechnumError(
                f"pair {row} has prompts of different length, clean {left} and corrupt "
                f"{right_side}: pair prompts of equal token count, nothing is padded"
            )
    _refuse("answers", [row for row in range(n) if right[row] == wrong[row]], n)
    _refuse("prompts", [row for row in range(n) if clean_rows[row] == corrupt_rows[row]], n)
    places = _positions(positions or {}, clean_rows)
    groups = tuple(
        PairGroup(clean=left, corrupt=right_group, index=left.index)
        for left, right_group in zip(
            _prompts(clean_rows, right, places), _prompts(corrupt_rows, wrong, places), strict=True
        )
    )
    pairs = Pairs(
        groups=groups,
        vary="given",
        seed=None,
        dropped=MappingProxyType({}),
        candidates=n,
        task="tokens",
    )
    if model is not None:
        pairs.check_fits(model)
    return pairs


def _prompts(
    rows: list[list[int]], answers: list[int], positions: Mapping[str, list[int]]
) -> tuple[Prompts, ...]:
    texts = [" ".join(map(str, row)) for row in rows]
    return group_by_length(rows, positions, answers, {}, texts)


def _rows(what: str, rows: Rows) -> list[list[int]]:
    if isinstance(rows, Tensor | np.ndarray) and rows.ndim != 2:
        raise MechnumError(
            f"{what} has shape {tuple(rows.shape)}: give token ids of shape [pair, pos]"
        )
    found = [_ids(f"{what}[{row}]", ids) for row, ids in enumerate(rows)]
    for row, ids in enumerate(found):
        if not ids:
            raise MechnumError(f"{what}[{row}] has no tokens: give at least one")
    return found


def _ids(what: str, ids: Ids) -> list[int]:
    found = _integers(what, ids)
    if negative := [token_id for token_id in found if token_id < 0]:
        raise MechnumError(f"{what} has the token id {negative[0]}: token ids are 0 or more")
    return found


def _integers(what: str, values: Ids) -> list[int]:
    try:
        tensor = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        tensor = None
    if tensor is None or tensor.ndim != 1:
        raise MechnumError(f"{what} is not a row of integers: give a list or tensor of them")
    is_integer = not (
        tensor.dtype == torch.bool or tensor.is_floating_point() or tensor.is_complex()
    )
    # An empty list becomes a float tensor.
    if len(tensor) and not is_integer:
        raise MechnumError(
            f"{what} holds {str(tensor.dtype).removeprefix('torch.')} values: give integers"
        )
    return tensor.tolist()


def _positions(positions: Mapping[str, int | Ids], rows: list[list[int]]) -> dict[str, list[int]]:
    found = {}
    for name, given in positions.items():
        what = f"positions[{name!r}]"
        if isinstance(given, int | np.integer):
            places = [check_integer(given)] * len(rows)
        else:
            places = _integers(what, given)
        if len(places) != len(rows):
            raise MechnumError(
                f"{what} has {len(places)} entries for {len(rows)} pairs: give one number, or "
                "one for each pair"
            )
        for place, row in zip(places, rows, strict=True):
            if not 0 <= place < len(row):
                raise MechnumError(
                    f"position {place} of {name!r} is outside a prompt of {len(row)} tokens: "
                    f"count from 0 to {len(row) - 1}"
                )
            if name == "end" and place != len(row) - 1:
                raise MechnumError(
                    f"position {place} is not the end of a prompt of {len(row)} tokens: call it "
                    "something else, 'end' is the last token"
                )
        found[name] = places
    return found


def _refuse(what: str, rows: list[int], n: int) -> None:
    if rows:
        raise MechnumError(
            f"{len(rows)} of {n} pairs have equal {what} (rows {some(rows)}): leave them out, "
            "they show no effect"
        )
