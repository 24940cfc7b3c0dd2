"""Neurons: fits of pre-activations, period maps, heuristics, knock-outs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.neurons.bag.adjudication import adjudicate
    from mechnum.neurons.bag.kinds import Heuristic, all_heuristics, parse_heuristic
    from mechnum.neurons.bag.knock_outs import knock_out, knock_out_by_prompt
    from mechnum.neurons.bag.matching import heuristics
    from mechnum.neurons.effects.kept import ablate, replace
    from mechnum.neurons.effects.mlps import mlp_shares
    from mechnum.neurons.effects.ranking import rank
    from mechnum.neurons.maps import operand_maps
    from mechnum.neurons.waves.fits import fit, fit_values
    from mechnum.neurons.waves.formulas import formula, predict
    from mechnum.neurons.waves.logit_periods import periods
    from mechnum.neurons.waves.one_frequency import frequency_share, phase_sums
    from mechnum.neurons.writes import write_score

_HOMES = {
    "Heuristic": "bag.kinds",
    "ablate": "effects.kept",
    "adjudicate": "bag.adjudication",
    "all_heuristics": "bag.kinds",
    "fit": "waves.fits",
    "fit_values": "waves.fits",
    "formula": "waves.formulas",
    "frequency_share": "waves.one_frequency",
    "heuristics": "bag.matching",
    "knock_out": "bag.knock_outs",
    "knock_out_by_prompt": "bag.knock_outs",
    "mlp_shares": "effects.mlps",
    "operand_maps": "maps",
    "parse_heuristic": "bag.kinds",
    "periods": "waves.logit_periods",
    "phase_sums": "waves.one_frequency",
    "predict": "waves.formulas",
    "rank": "effects.ranking",
    "replace": "effects.kept",
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
