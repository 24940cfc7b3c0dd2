"""Fourier analysis over numbers: bases, spectra, the Fourier lens, filters, residue probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.fourier.ablation import filter_effects, filter_table
    from mechnum.fourier.bases import FourierBasis, fourier_basis
    from mechnum.fourier.filters import Band, high_pass, low_pass, single_pass, without
    from mechnum.fourier.final_logits import detrended_spectrum, rebuilt_answers
    from mechnum.fourier.lens import fourier_attribution, fourier_lens, lens_coefficients
    from mechnum.fourier.readings import number_logits
    from mechnum.fourier.results import filter_results, lens_results

_HOMES = {
    "Band": "filters",
    "FourierBasis": "bases",
    "detrended_spectrum": "final_logits",
    "filter_effects": "ablation",
    "filter_results": "results",
    "filter_table": "ablation",
    "fourier_attribution": "lens",
    "fourier_basis": "bases",
    "fourier_lens": "lens",
    "high_pass": "filters",
    "lens_coefficients": "lens",
    "lens_results": "results",
    "low_pass": "filters",
    "number_logits": "readings",
    "rebuilt_answers": "final_logits",
    "single_pass": "filters",
    "without": "filters",
}

__all__ = [
    "Band",
    "FourierBasis",
    "detrended_spectrum",
    "filter_effects",
    "filter_results",
    "filter_table",
    "fourier_attribution",
    "fourier_basis",
    "fourier_lens",
    "high_pass",
    "lens_coefficients",
    "lens_results",
    "low_pass",
    "number_logits",
    "rebuilt_answers",
    "single_pass",
    "without",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
