"""Periods to look for where none were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechnum.errors import InvalidInput
from mechnum.fourier.spectra import key_frequencies
from mechnum.models.model import Model
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.task import Task

PERIODS = (2, 5, 10, 100)
"""Those that Kantamneni & Tegmark 2025 find (section 4)."""

# In the order in which they find that they help a helix.
_NESTED_PERIODS = (100.0, 10.0, 5.0, 2.0)


def default_periods(model: Model, task: Task, numbers: Any) -> tuple[float, ...]:
    """Periods that a helix over this task's numbers can be fitted with.

    Of 2, 5, 10 and 100, the largest set in the paper's nested order whose columns are at most half
    as many as the distinct operands: more would fit any states. Modular nets choose periods of
    their own: those of the key frequencies of their embedding.

    Args:
        numbers: an operand of every prompt.

    Raises:
        InvalidInput: the embedding of a modular net has no key frequencies.
    """
    if isinstance(task, ModularAddition):
        embedding = model.decoder.weights.W_E[: task.p].float().cpu().numpy()
        keys = key_frequencies(embedding).tolist()
        if not keys:
            raise InvalidInput(
                f"no frequency stands out in the embedding of {model.name}, so that it has no "
                "periods of its own: give periods, or a net that has learned to add"
            )
        return tuple(task.p / k for k in keys)
    n_distinct = len(np.unique(np.asarray(numbers)))
    fitting = [period for period in _NESTED_PERIODS if period <= n_distinct]
    # A constant, a linear column, and two for each period.
    n_periods = max(1, (n_distinct // 2 - 2) // 2)
    return tuple(sorted(fitting[:n_periods])) or (float(n_distinct),)


def periods_within(n_numbers: int) -> tuple[int, ...]:
    """Those of 2, 5, 10 and 100 that fit into a range of numbers, the shorter ones first.

    So many that constant, trend and waves are at most half as many columns as there are numbers:
    more would fit anything.
    """
    fitting = [period for period in PERIODS if period <= n_numbers]
    while fitting and 2 * (2 + 2 * len(fitting) - (2 in fitting)) > n_numbers:
        fitting.pop()
    return tuple(fitting)
