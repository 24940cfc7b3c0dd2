"""The helix of a number, its rivals, its periods, held-out fits, causal scores and controls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.helix.ablation import ablation_scores
    from mechnum.helix.basis import HelixBasis, PolynomialBasis
    from mechnum.helix.causal import causal_scores, variable_scores
    from mechnum.helix.continuity import circle_continuity
    from mechnum.helix.controls import PermutedLabels
    from mechnum.helix.estimators import Circle, Helix, PCAReconstruction, Polynomial
    from mechnum.helix.heldout import heldout_r2
    from mechnum.helix.linear import linear_addition
    from mechnum.helix.planes import helix_planes
    from mechnum.helix.search import search_periods, search_periods_causally
    from mechnum.helix.structure import number_structure

_HOMES = {
    "Circle": "estimators",
    "Helix": "estimators",
    "HelixBasis": "basis",
    "PCAReconstruction": "estimators",
    "PermutedLabels": "controls",
    "Polynomial": "estimators",
    "PolynomialBasis": "basis",
    "ablation_scores": "ablation",
    "causal_scores": "causal",
    "circle_continuity": "continuity",
    "heldout_r2": "heldout",
    "helix_planes": "planes",
    "linear_addition": "linear",
    "number_structure": "structure",
    "search_periods": "search",
    "search_periods_causally": "search",
    "variable_scores": "causal",
}

__all__ = [
    "Circle",
    "Helix",
    "HelixBasis",
    "PCAReconstruction",
    "PermutedLabels",
    "Polynomial",
    "PolynomialBasis",
    "ablation_scores",
    "causal_scores",
    "circle_continuity",
    "heldout_r2",
    "helix_planes",
    "linear_addition",
    "number_structure",
    "search_periods",
    "search_periods_causally",
    "variable_scores",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
