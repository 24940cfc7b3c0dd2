"""Fourier analysis over numbers: bases, spectra, the Fourier lens, filters, residue probes."""

from __future__ import annotations
