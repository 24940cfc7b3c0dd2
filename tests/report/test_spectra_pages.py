"""The page of spectra: what stands out, what can be read, and against which chance."""

from __future__ import annotations

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from mechnum.errors import MechnumError
from mechnum.report import page_of, read_netcdf, save, spectra_summary
from mechnum.report.figures import residue_bars, spectrum_lines, spectrum_map
from mechnum.report.sections.spectra import residue_words
from mechnum.report.spectra import residue_frame, spectrum_frame, strongest_frame, wave_frame

from .spectra import spectra_results
from .test_page import Document

LAYERED, FLAT = spectra_results(), spectra_results(None, counts=True)


def text_of(page) -> str:
    return " ".join(Document(page.html()).text.split())


def blocks_of(results) -> dict:
    return {block.title: block for block in page_of(results).sections[1].blocks}


def test_frames_hold_what_was_measured():
    frame = spectrum_frame(LAYERED)
    assert frame.columns[:3].tolist() == ["layer", "frequency", "period"]
    assert len(frame) == 3 * 50
    row = frame[(frame["layer"] == 0) & (frame["frequency"] == 10)].iloc[0]
    own = LAYERED["spectrum"].sel(layer=0, frequency=10)
    assert (row["period"], row["share"]) == (10, float(own["share"]))
    assert row["flat"] == pytest.approx(50 * float(own["share"]))
    assert set(residue_frame(FLAT)["status"]) == {"read", "too few numbers of some residues"}
    assert wave_frame(FLAT)["on_bin"].tolist() == [True, True, False, True]


def test_each_frequency_is_shown_where_it_is_strongest_with_its_residue():
    frame = strongest_frame(LAYERED)
    assert len(frame) == 50
    assert frame["share"].is_monotonic_decreasing
    share = LAYERED["spectrum"]["share"]
    best = frame[frame["period"] == 10].iloc[0]
    assert best["share"] == pytest.approx(float(share.sel(frequency=10).max()))
    assert best["layer"] == int(share.sel(frequency=10).idxmax("layer"))
    kappas = LAYERED["residues"]["kappa"].sel(modulus=10)
    assert best["kappa"] == pytest.approx(float(kappas.sel(layer=best["layer"])))
    assert best["kappa_best"] == pytest.approx(float(kappas.max()))
    assert frame.loc[frame["period"] == 100 / 7, "kappa"].isna().all()


@pytest.mark.parametrize("results", [LAYERED, FLAT], ids=["layers", "embedding"])
def test_every_figure_says_what_it_shows_and_against_what(results):
    blocks = blocks_of(results)
    for title in ("Spectrum over numbers", "Residues that can be read"):
        facts = dict(blocks[title].caption.facts)
        assert set(facts) == {"Estimand", "n", "Interval", "Null"}
        assert "100 numbers" in facts["n"]
    caption = blocks["Spectrum over numbers"].caption
    assert "The constant (DC) holds" in caption.text
    assert "given to the numbers at random, 99 times" in dict(caption.facts)["Null"]
    assert (
        "Not read, too few numbers of some residues: T = 30."
        in blocks["Residues that can be read"].caption.text
    )
    waves = blocks["Waves at chosen periods"].caption.text
    assert "left out: sin(T=2)" in waves
    assert "Off the bins of this range: T = 7." in waves
    assert ("Spectra of all layers" in blocks) == ("layer" in results["spectrum"].dims)


def test_the_page_says_what_was_found_and_how_it_was_made():
    text = text_of(page_of(LAYERED))
    assert "Numbers in Fourier space: states of adder-gptj" in text
    assert "Read on held-out numbers: n mod 5 (κ = 1.00, in the embedding)" in text
    assert "Largest: T = 5 (" in text or "Largest: T = 10 (" in text
    made = text[text.rindex("How it was made") :]
    for fact in ("last: read at their last token", "0: 10 1: 90", "shuffled", "99", "39",
                 "mechnum fourier adder-gptj", "Seed"):  # fmt: skip
        assert fact in made, fact
    # Such texts ask for no answer.
    assert "the answer is read at end" not in text
    assert "BOS token: none: the tokenizer has no such token" in text


def test_a_peak_that_cannot_be_read_is_named():
    results = spectra_results(None)
    residues = results["residues"].to_dataset()
    silent = residues.assign(
        p_family=residues["p_family"].where(residues["modulus"] != 10, 1.0),
    )
    results["residues"] = xr.DataTree(silent)
    text = text_of(page_of(results))
    assert "Peaks without residues: T = 10: the share is no chance, and n mod T cannot" in text
    assert "Peaks without residues" not in text_of(page_of(spectra_results(None)))


def test_nothing_readable_is_said_so():
    results = spectra_results(None)
    residues = results["residues"].to_dataset()
    results["residues"] = xr.DataTree(residues.assign(p_family=residues["p_family"] * 0 + 1))
    assert residue_words(results) == "No residue is read better than chance."
    results["residues"] = xr.DataTree(residues.assign(kappa=residues["kappa"] * np.nan))
    assert residue_words(results) == "No residue could be read."
    assert page_of(results).html()


def test_the_lines_have_the_band_the_peaks_and_the_counts():
    frame = spectrum_frame(FLAT)
    figure = spectrum_lines(frame, spectrum_frame(FLAT, "counts"))
    names = [trace.name for trace in figure.data]
    assert names == ["chance (95 %)", "log counts", "share", "above all of chance (5 %)"]
    share = figure.data[2]
    np.testing.assert_allclose(share.x, 1 / frame["period"], rtol=1e-5)
    np.testing.assert_allclose(share.y, frame["share"].clip(lower=1e-5), rtol=1e-5)
    sure = frame.loc[frame["p_family"] < 0.05, "period"]
    np.testing.assert_allclose(1 / np.array(figure.data[3].x), sure, rtol=1e-5)
    assert {note.text for note in figure.layout.annotations} >= {"T = 5", "T = 10"}
    assert (
        "spectrum of log(1 + counts in text.csv)"
        in blocks_of(FLAT)["Spectrum over numbers"].caption.text
    )


def test_maps_have_a_row_for_each_layer_and_no_layer_that_is_not_there():
    results = spectra_results()
    spectrum = results["spectrum"].to_dataset()
    results["spectrum"] = xr.DataTree(spectrum.where(spectrum["layer"] != 1))
    frame = spectrum_frame(results)
    heat = spectrum_map(frame, ["emb", "0", "1"]).data[0]
    assert np.shape(heat.z) == (3, 50)
    assert all(value is None for value in heat.z[2])
    assert list(blocks_of(results)["Spectrum over numbers"].views) == ["emb", "0"]


def test_many_layers_are_a_choice_of_lines_and_one_map():
    blocks = blocks_of(spectra_results(14))
    assert list(blocks["Spectrum over numbers"].views) == ["emb", "2", "5", "8", "11", "12"]
    assert np.shape(blocks["Spectra of all layers"].views["map"].data[0].z)[0] == 14


def test_bars_show_kappa_beside_that_of_permuted_residues():
    frame = residue_frame(FLAT).dropna(subset=["kappa"])
    bars, marks = residue_bars(frame).data
    np.testing.assert_allclose(bars.y, frame["kappa"], rtol=1e-5)
    np.testing.assert_allclose(marks.y, frame["null_high"], rtol=1e-5)


def test_the_terminal_shows_the_strongest_in_order():
    out = io.StringIO()
    Console(file=out, width=140).print(spectra_summary(LAYERED, 4))
    text = out.getvalue()
    periods = [line.split()[0] for line in text.splitlines() if line.strip()[:1].isdigit()]
    expected = [f"{period:.4g}" for period in strongest_frame(LAYERED)["period"][:4]]
    assert [f"{float(period):.4g}" for period in periods[:4]] == expected
    assert "The 4 strongest of 50 frequencies over 100 numbers (0 to 99), 16 dimensions" in text
    assert "States of adder-gptj" in text


@pytest.mark.parametrize("results", [LAYERED, FLAT], ids=["layers", "embedding"])
def test_what_was_written_draws_the_same_page(results, tmp_path):
    page, data = save(results, tmp_path)
    assert page_of(read_netcdf(data)).html() == page.read_text(encoding="utf-8")


def test_spectra_of_heads_have_no_page_and_say_so():
    results = spectra_results()
    spectrum = results["spectrum"].to_dataset().expand_dims(head=2)
    with pytest.raises(MechnumError, match="select one entry of the others"):
        spectrum_frame(xr.DataTree.from_dict({"/spectrum": spectrum}))
    with pytest.raises(MechnumError, match="hold no residues"):
        residue_frame(xr.DataTree.from_dict({"/spectrum": spectrum}))
