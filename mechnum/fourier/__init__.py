"""Fourier analysis over numbers: bases, spectra, the Fourier lens, filters, residue probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.fourier.ablation import filter_effects, filter_table
    from mechnum.fourier.analysis import number_spectra
    from mechnum.fourier.bases import FourierBasis, fourier_basis
    from mechnum.fourier.counts import token_counts
    from mechnum.fourier.filters import Band, high_pass, low_pass, single_pass, without
    from mechnum.fourier.final_logits import detrended_spectrum, rebuilt_answers
    from mechnum.fourier.grid import block_energy, linear_energy
    from mechnum.fourier.inner_rows import embedding_rows, number_rows, state_rows
    from mechnum.fourier.least_squares import amplitudes
    from mechnum.fourier.lens import fourier_attribution, fourier_lens, lens_coefficients
    from mechnum.fourier.nulls import spectrum_test
    from mechnum.fourier.output_rows import logit_rows, neuron_rows, unembedding_rows
    from mechnum.fourier.probes import residue_probe, residue_reader
    from mechnum.fourier.readings import number_logits
    from mechnum.fourier.results import filter_results, lens_results
    from mechnum.fourier.spectra import (
        key_frequencies,
        power_by_frequency,
        spectrum,
        strongest_frequencies,
    )
    from mechnum.fourier.tables import as_rows

_HOMES = {
    "Band": "filters",
    "FourierBasis": "bases",
    "amplitudes": "least_squares",
    "as_rows": "tables",
    "block_energy": "grid",
    "detrended_spectrum": "final_logits",
    "embedding_rows": "inner_rows",
    "filter_effects": "ablation",
    "filter_results": "results",
    "filter_table": "ablation",
    "fourier_attribution": "lens",
    "fourier_basis": "bases",
    "fourier_lens": "lens",
    "high_pass": "filters",
    "key_frequencies": "spectra",
    "lens_coefficients": "lens",
    "lens_results": "results",
    "linear_energy": "grid",
    "logit_rows": "output_rows",
    "low_pass": "filters",
    "neuron_rows": "output_rows",
    "number_logits": "readings",
    "number_rows": "inner_rows",
    "number_spectra": "analysis",
    "power_by_frequency": "spectra",
    "rebuilt_answers": "final_logits",
    "residue_probe": "probes",
    "residue_reader": "probes",
    "single_pass": "filters",
    "spectrum": "spectra",
    "spectrum_test": "nulls",
    "state_rows": "inner_rows",
    "strongest_frequencies": "spectra",
    "token_counts": "counts",
    "unembedding_rows": "output_rows",
    "without": "filters",
}

__all__ = [
    "Band",
    "FourierBasis",
    "amplitudes",
    "as_rows",
    "block_energy",
    "detrended_spectrum",
    "embedding_rows",
    "filter_effects",
    "filter_results",
    "filter_table",
    "fourier_attribution",
    "fourier_basis",
    "fourier_lens",
    "high_pass",
    "key_frequencies",
    "lens_coefficients",
    "lens_results",
    "linear_energy",
    "logit_rows",
    "low_pass",
    "neuron_rows",
    "number_logits",
    "number_rows",
    "number_spectra",
    "power_by_frequency",
    "rebuilt_answers",
    "residue_probe",
    "residue_reader",
    "single_pass",
    "spectrum",
    "spectrum_test",
    "state_rows",
    "strongest_frequencies",
    "token_counts",
    "unembedding_rows",
    "without",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
