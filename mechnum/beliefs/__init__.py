"""Belief states: which linear subspace holds the posterior over a hidden process's states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.beliefs.along_training import belief_progress
    from mechnum.beliefs.causal import belief_patching
    from mechnum.beliefs.geometry import belief_geometry
    from mechnum.beliefs.readout import BeliefReadout
    from mechnum.beliefs.regression import belief_regression

_HOMES = {
    "BeliefReadout": "readout",
    "belief_geometry": "geometry",
    "belief_patching": "causal",
    "belief_progress": "along_training",
    "belief_regression": "regression",
}

__all__ = [
    "BeliefReadout",
    "belief_geometry",
    "belief_patching",
    "belief_progress",
    "belief_regression",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
