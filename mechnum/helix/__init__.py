"""The helix of a number, its rivals, held-out fits and causal scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.helix.basis import HelixBasis, PolynomialBasis
    from mechnum.helix.causal import causal_scores
    from mechnum.helix.controls import PermutedLabels
    from mechnum.helix.estimators import Circle, Helix, PCAReconstruction, Polynomial
    from mechnum.helix.heldout import heldout_r2
    from mechnum.helix.planes import helix_planes

_HOMES = {
    "Circle": "estimators",
    "Helix": "estimators",
    "HelixBasis": "basis",
    "PCAReconstruction": "estimators",
    "PermutedLabels": "controls",
    "Polynomial": "estimators",
    "PolynomialBasis": "basis",
    "causal_scores": "causal",
    "heldout_r2": "heldout",
    "helix_planes": "planes",
}

__all__ = [
    "Circle",
    "Helix",
    "HelixBasis",
    "PCAReconstruction",
    "PermutedLabels",
    "Polynomial",
    "PolynomialBasis",
    "causal_scores",
    "heldout_r2",
    "helix_planes",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
