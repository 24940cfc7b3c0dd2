"""What is asked of a net about a process, where nothing else is said: which beliefs, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from mechnum.beliefs.geometry import checked_readout, coordinate_names
from mechnum.tasks.processes import Process, carry_base, carry_readout
from mechnum.tasks.processes.tree import levels

PREFIXES = 10
"""Prefixes from which on a position is read: two for each of five folds."""


@dataclass(frozen=True, eq=False)
class Question:
    """Beliefs that are read, and the positions that they are read at.

    Attributes:
        positions: all, where it is None.
        why: of these positions, a sentence without its stop.
        readout: makes of beliefs what is read; the beliefs themselves, where it is None.
        names: of what is read.
        also: other positions, by what is read there, of which a second table is made.
    """

    positions: tuple[int, ...] | None
    why: str
    readout: Float[np.ndarray, "state coordinate"] | None
    names: list[str]
    also: dict[str, tuple[int, ...]] = field(default_factory=dict)


def question(
    process: Process,
    length: int,
    positions: Sequence[int] | None = None,
    readout: Float[np.ndarray, "state coordinate"] | None = None,
) -> Question:
    """What was asked for, and where nothing was, what has an answer that says something.

    Column addition is asked for the carry. After the digit of a sum it is all that the past says
    about what comes, and the next token, two random digits, says nothing of it; after two operands
    it follows from them and the next token nearly everywhere, which a second table shows. Other
    processes are asked for their beliefs from the first position on that has 10 prefixes: where
    there are fewer, each weighs as much as many others, and a regression that has not seen it knows
    next to nothing of its position.

    Raises:
        MechnumError: on a readout that does not fit.
    """
    base = carry_base(process)
    matrix = None if readout is None else checked_readout(readout, process)
    names = coordinate_names(process, readout)
    if readout is None and base is not None:
        matrix, names = carry_readout(base), ["no carry", "carry"]
    if positions is not None:
        return Question(tuple(positions), "as they were chosen", matrix, names)
    if base is not None and length > 2:
        sums, operands = tuple(range(1, length - 1, 2)), tuple(range(0, length, 2))
        why = "after the digit of each sum, as long as another column comes"
        return Question(sums, why, matrix, names, {"operands": operands})
    first = _first_of_many(process, length)
    if not first:
        return Question(None, "all", matrix, names)
    why = f"from the first one on that has {PREFIXES} prefixes"
    return Question(tuple(range(first, length)), why, matrix, names)


def _first_of_many(process: Process, length: int) -> int:
    """The first position with enough prefixes, and 0 where none has."""
    grown = enumerate(levels(process, length))
    enough = (seen - 1 for seen, level in grown if level.strings.sum() >= PREFIXES)
    return next(enough, 0)
