"""What a measurement will take, said before it runs where that is much."""

from __future__ import annotations

import warnings

from mechnum.models.model import Model
from mechnum.patching.batches import is_everywhere
from mechnum.patching.intervention import Intervention
from mechnum.tasks.pairs import PairGroup, Pairs
from mechnum.tasks.positions import resolve_position

# A table that strains a laptop, and forwards that take a large model hours.
TABLE_LIMIT = 2 * 2**30
FORWARD_LIMIT = 100_000


def announce(
    model: Model,
    pairs: Pairs,
    intervention: Intervention,
    what: str,
    n_values: int,
    n_layers_run: float = 0.0,
) -> None:
    """Warn of a measurement whose results or runs pass a limit.

    Args:
        n_values: of the result, for one pair at one position.
        n_layers_run: layers that all patched runs of a pair at one position recompute.

    Warns:
        UserWarning: with the size of the result, or the number of forwards that a prompt's patched
            runs come to.
    """
    sweep = intervention.position == "each"
    places = sum(len(group) * (_length(group) if sweep else 1) for group in pairs.groups)
    n_bytes = 8 * n_values * places
    if n_bytes > TABLE_LIMIT:
        warnings.warn(
            f"the result of these {what} takes {n_bytes / 2**30:,.1f} GiB of memory: "
            "name fewer nodes or positions, or take fewer pairs at a time",
            stacklevel=4,
        )
    share = sum(_prompts_run(group, intervention.position) for group in pairs.groups)
    n_forwards = share * n_layers_run / model.spec.n_layers
    if n_forwards > FORWARD_LIMIT:
        warnings.warn(
            f"these {what} take as much as {n_forwards:,.0f} forwards of a prompt: rank the nodes "
            "with mechnum.attribute or by direct effects first, and measure the best of them",
            stacklevel=4,
        )


def _prompts_run(group: PairGroup, position: str | int) -> float:
    """Positions that are recomputed for all pairs of a group, as a number of prompts."""
    length = _length(group)
    if is_everywhere(position):
        return len(group) * ((length + 1) / 2 if position == "each" else 1.0)
    places = resolve_position(position, group.clean.positions, length)
    return float((length - places).sum()) / length


def _length(group: PairGroup) -> int:
    return group.clean.tokens.shape[1]
