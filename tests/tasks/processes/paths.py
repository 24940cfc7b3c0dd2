"""What a process does, by summing over hidden paths one by one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mechnum.tasks.processes import Process


def joint(process: Process, string: Sequence[int]) -> np.ndarray:
    """P(string, state after it), [state], as a sum over all paths."""
    found = np.zeros(process.n_states)
    for path in itertools.product(range(process.n_states), repeat=len(string) + 1):
        probability = float(process.start[path[0]])
        for token, before, after in zip(string, path, path[1:]):
            probability *= float(process.matrices[token][before][after])
        found[path[-1]] += probability
    return found


def strings(process: Process, length: int) -> Any:
    return itertools.product(range(process.n_tokens), repeat=length)
