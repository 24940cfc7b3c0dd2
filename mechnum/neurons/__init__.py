"""Neurons: fits of pre-activations, period maps, heuristics, knock-outs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.neurons.kept import ablate, replace
    from mechnum.neurons.mlps import mlp_shares
    from mechnum.neurons.ranking import rank

_HOMES = {
    "ablate": "kept",
    "mlp_shares": "mlps",
    "rank": "ranking",
    "replace": "kept",
}

__all__ = [
    "ablate",
    "mlp_shares",
    "rank",
    "replace",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
