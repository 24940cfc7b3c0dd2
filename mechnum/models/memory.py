"""How much is computed at a time."""

from __future__ import annotations

from collections.abc import Iterator

from mechnum.errors import MechnumError
from mechnum.models.spec import ModelSpec

# Bytes of activations that one batch may take; small enough to stay in a CPU's reach, large
# enough that matrix products run at full speed.
DEFAULT_BUDGET = 256 * 2**20


def block_bytes(spec: ModelSpec, n_positions: int, n_keys: int) -> int:
    """About what one block holds at a time for one prompt, in bytes of float32."""
    residuals = 6 * spec.d_model
    heads = spec.n_heads * (4 * spec.d_head + 3 * n_keys)
    return 4 * n_positions * (residuals + heads + 3 * spec.d_mlp)


def batches(n_rows: int, bytes_per_row: int, budget: int = DEFAULT_BUDGET) -> Iterator[slice]:
    """Slices over `n_rows` whose activations fit `budget` bytes; at least one row each.

    Raises:
        MechnumError: where one row alone takes more than 16 times the budget.
    """
    if bytes_per_row > 16 * budget:
        raise MechnumError(
            f"one prompt needs {bytes_per_row / 2**30:.1f} GiB of activations: use shorter prompts"
        )
    size = max(1, budget // max(bytes_per_row, 1))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
