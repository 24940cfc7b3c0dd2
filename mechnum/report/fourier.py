"""The page of a model's numbers in Fourier space."""

from __future__ import annotations

import xarray as xr

from mechnum.report import reading, spectra, words
from mechnum.report.blocks import Text
from mechnum.report.page import Page, Section
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.spectra import (
    largest_words,
    residue_words,
    rows_of,
    spectrum_section,
)


def fourier_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.fourier.number_spectra` gives."""
    attrs = reading.attributes(results)
    sections = [
        _found(results),
        spectrum_section(results),
        tokens_section(results),
        provenance_section(results),
    ]
    return Page(
        title=f"Numbers in Fourier space: {spectra.title_of(attrs)}",
        lead=f"{words.sentence(rows_of(attrs))}.",
        sections=[section for section in sections if section is not None],
    )


def _found(results: xr.DataTree) -> Section:
    frame = spectra.spectrum_frame(results)
    tested = frame.dropna(subset=["p_family"])
    sure = tested[tested["p_family"] < words.SURE]
    count = f"{len(sure):,} of {len(tested):,} shares exceed those of chance (family-wise 5 %)."
    points = [
        ("Spectrum", f"{largest_words(results)} {count}"),
        ("Residues", residue_words(results)),
    ]
    if silent := _unread_peaks(results):
        points.append(("Peaks without residues", silent))
    note = (
        "Shares are tested over the frequencies of their layer, residues over the layers of their "
        "modulus: 5 % family-wise is how often chance exceeds any of them. κ is Cohen's: 1 where "
        "every residue is read right, 0 for guesses. What is largest was chosen on the numbers "
        "that also measure it."
    )
    return Section("What was found", [Text(points=points), Text([note])])


def _unread_peaks(results: xr.DataTree) -> str:
    """Whole periods whose share is no chance, and whose residue is read nowhere."""
    frame = spectra.spectrum_frame(results)
    residues = spectra.residue_frame(results).dropna(subset=["kappa"])
    read = set(residues.loc[residues["p_family"] < words.SURE, "modulus"])
    sure = frame.loc[frame["p_family"] < words.SURE, "period"].round(9)
    silent = sorted(set(sure) & (set(residues["modulus"]) - read))
    if not silent:
        return ""
    named = [words.number(float(period)) for period in silent]
    return f"T = {words.listed(named)}: the share is no chance, and n mod T cannot be read."
