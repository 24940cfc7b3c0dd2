"""Fourier analysis over numbers: bases, spectra, the Fourier lens, filters, residue probes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mechnum.lazy import lazy_names

if TYPE_CHECKING:
    from mechnum.fourier.analysis import number_spectra
    from mechnum.fourier.bases import FourierBasis, fourier_basis
    from mechnum.fourier.counts import token_counts
    from mechnum.fourier.inner_rows import embedding_rows, number_rows, state_rows
    from mechnum.fourier.least_squares import amplitudes
    from mechnum.fourier.nulls import spectrum_test
    from mechnum.fourier.output_rows import logit_rows, neuron_rows, unembedding_rows
    from mechnum.fourier.probes import residue_probe, residue_reader
    from mechnum.fourier.spectra import (
        key_frequencies,
        power_by_frequency,
        spectrum,
        strongest_frequencies,
    )
    from mechnum.fourier.tables import as_rows

_HOMES = {
    "FourierBasis": "bases",
    "amplitudes": "least_squares",
    "as_rows": "tables",
    "embedding_rows": "inner_rows",
    "fourier_basis": "bases",
    "key_frequencies": "spectra",
    "logit_rows": "output_rows",
    "neuron_rows": "output_rows",
    "number_rows": "inner_rows",
    "number_spectra": "analysis",
    "power_by_frequency": "spectra",
    "residue_probe": "probes",
    "residue_reader": "probes",
    "spectrum": "spectra",
    "spectrum_test": "nulls",
    "state_rows": "inner_rows",
    "strongest_frequencies": "spectra",
    "token_counts": "counts",
    "unembedding_rows": "output_rows",
}

__all__ = [
    "FourierBasis",
    "amplitudes",
    "as_rows",
    "embedding_rows",
    "fourier_basis",
    "key_frequencies",
    "logit_rows",
    "neuron_rows",
    "number_rows",
    "number_spectra",
    "power_by_frequency",
    "residue_probe",
    "residue_reader",
    "spectrum",
    "spectrum_test",
    "state_rows",
    "strongest_frequencies",
    "token_counts",
    "unembedding_rows",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
