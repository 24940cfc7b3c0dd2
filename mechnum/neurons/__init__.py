"""Neurons: fits of pre-activations, period maps, heuristics, knock-outs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.neurons.fits import fit, fit_values
    from mechnum.neurons.formulas import formula, predict
    from mechnum.neurons.logit_periods import periods
    from mechnum.neurons.maps import operand_maps
    from mechnum.neurons.one_frequency import frequency_share, phase_sums
    from mechnum.neurons.writes import write_score

_HOMES = {
    "fit": "fits",
    "fit_values": "fits",
    "formula": "formulas",
    "frequency_share": "one_frequency",
    "operand_maps": "maps",
    "periods": "logit_periods",
    "phase_sums": "one_frequency",
    "predict": "formulas",
    "write_score": "writes",
}

__all__ = [
    "fit",
    "fit_values",
    "formula",
    "frequency_share",
    "operand_maps",
    "periods",
    "phase_sums",
    "predict",
    "write_score",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
