"""Neurons: fits of pre-activations, period maps, heuristics, knock-outs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.neurons.adjudication import adjudicate
    from mechnum.neurons.fits import fit, fit_values
    from mechnum.neurons.formulas import formula, predict
    from mechnum.neurons.kept import ablate, replace
    from mechnum.neurons.kinds import Heuristic, all_heuristics, parse_heuristic
    from mechnum.neurons.knock_outs import knock_out, knock_out_by_prompt
    from mechnum.neurons.logit_periods import periods
    from mechnum.neurons.maps import operand_maps
    from mechnum.neurons.matching import heuristics
    from mechnum.neurons.mlps import mlp_shares
    from mechnum.neurons.one_frequency import frequency_share, phase_sums
    from mechnum.neurons.ranking import rank
    from mechnum.neurons.writes import write_score

_HOMES = {
    "Heuristic": "kinds",
    "ablate": "kept",
    "adjudicate": "adjudication",
    "all_heuristics": "kinds",
    "fit": "fits",
    "fit_values": "fits",
    "formula": "formulas",
    "frequency_share": "one_frequency",
    "heuristics": "matching",
    "knock_out": "knock_outs",
    "knock_out_by_prompt": "knock_outs",
    "mlp_shares": "mlps",
    "operand_maps": "maps",
    "parse_heuristic": "kinds",
    "periods": "logit_periods",
    "phase_sums": "one_frequency",
    "predict": "formulas",
    "rank": "ranking",
    "replace": "kept",
    "write_score": "writes",
}

__all__ = [
    "Heuristic",
    "ablate",
    "adjudicate",
    "all_heuristics",
    "fit",
    "fit_values",
    "formula",
    "frequency_share",
    "heuristics",
    "knock_out",
    "knock_out_by_prompt",
    "mlp_shares",
    "operand_maps",
    "parse_heuristic",
    "periods",
    "phase_sums",
    "predict",
    "rank",
    "replace",
    "write_score",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
