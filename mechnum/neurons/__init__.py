"""Neurons: fits of pre-activations, period maps, heuristics, knock-outs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.neurons.adjudication import adjudicate
    from mechnum.neurons.kinds import Heuristic, all_heuristics, parse_heuristic
    from mechnum.neurons.knock_outs import knock_out, knock_out_by_prompt
    from mechnum.neurons.matching import heuristics

_HOMES = {
    "Heuristic": "kinds",
    "adjudicate": "adjudication",
    "all_heuristics": "kinds",
    "heuristics": "matching",
    "knock_out": "knock_outs",
    "knock_out_by_prompt": "knock_outs",
    "parse_heuristic": "kinds",
}

__all__ = [
    "Heuristic",
    "adjudicate",
    "all_heuristics",
    "heuristics",
    "knock_out",
    "knock_out_by_prompt",
    "parse_heuristic",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
