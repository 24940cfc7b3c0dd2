"""How much is computed at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec

# Small enough for a laptop, large enough that matrix products run at full speed.
_CACHED = 40 * 2**20
_budget: ContextVar[int] = ContextVar("mechnum_memory_budget", default=256 * 2**20)


@contextmanager
def memory_budget(n_bytes: int) -> Iterator[None]:
    """Within the block, activations of one batch take about `n_bytes`; results do not change.

    Raises:
        MechnumError: where the budget is not positive.
    """
    if n_bytes < 1:
        raise MechnumError(f"a memory budget of {n_bytes} bytes is none: give a positive number")
    token = _budget.set(n_bytes)
    try:
        yield
    finally:
        _budget.reset(token)


def block_bytes(spec: ModelSpec, n_positions: int, n_keys: int) -> int:
    """About what one block holds at a time for one prompt, in bytes of float32."""
    residuals = 6 * spec.d_model
    heads = spec.n_heads * (4 * spec.d_head + 3 * n_keys)
    return 4 * n_positions * (residuals + heads + 3 * spec.d_mlp)


def working_rows(row_bytes: int, device: torch.device) -> int:
    """How many rows one block computes at a time; at least one.

    On a CPU fewer than the budget allows: products whose factors stay in the cache are faster.
    """
    most = rows_at_a_time(row_bytes)
    return min(most, max(1, _CACHED // max(row_bytes, 1))) if device.type == "cpu" else most


def rows_at_a_time(row_bytes: int) -> int:
    """How many rows of activations fit the budget; at least one."""
    return max(1, _budget.get() // max(row_bytes, 1))


def batches(n_rows: int, row_bytes: int) -> Iterator[slice]:
    """Slices over `n_rows` whose activations fit the budget; at least one row each."""
    size = rows_at_a_time(row_bytes)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
