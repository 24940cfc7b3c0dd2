"""The section about numbers in Fourier space: spectrum, residues and waves, with their nulls."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, spectra, words
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.page import Section

_SHARE = (
    "Squared length of the rows' component along cosine and sine of period N/k, over all k ≥ 1 "
    "together; the constant is left out"
)
_ONE_TABLE = "none: one table of rows, one for each number"
_VIEWS = 6  # Layers whose spectra are drawn as lines; the map has all.


def spectrum_section(results: xr.DataTree) -> Section:
    """Lines of some layers, and below them what of it can be read, then all layers as maps."""
    frame = spectra.spectrum_frame(results)
    blocks: list[Block] = [_lines(results, frame), _residues(results)]
    if "layer" in frame:
        blocks.append(_map(results, frame))
    waves = spectra.wave_frame(results)
    if waves is not None:
        blocks.append(_waves(results, waves))
    blocks.append(_table(results))
    return Section("Spectrum and residues", blocks)


def chance(attrs: dict[str, Any]) -> str:
    """What the null is, in words."""
    kind = {
        "shuffled": "the rows given to the numbers at random",
        "gaussian": "independent Gaussian rows of the same covariance",
    }.get(str(attrs.get("null")), "chance")
    return f"{kind}, {int(attrs.get('draws', 0)):,} times"


def rows_of(attrs: dict[str, Any]) -> str:
    """`100 numbers (0 to 99), 128 dimensions`."""
    n, first = int(attrs.get("n_numbers", 0)), int(attrs.get("first", 0))
    return (
        f"{n:,} numbers ({words.number(first)} to {words.number(first + n - 1)}), "
        f"{int(attrs.get('n_dimensions', 0)):,} dimensions"
    )


def _names(frame: pd.DataFrame) -> list[str]:
    layers = sorted(frame["layer"].unique())
    return ["emb" if layer == -1 else str(int(layer)) for layer in layers]


def _lines(results: xr.DataTree, frame: pd.DataFrame) -> Figure:
    attrs = reading.attributes(results)
    baseline = None
    more = ""
    if "counts" in results.children:
        baseline = spectra.spectrum_frame(results, "counts")
        of = results["counts"].attrs.get("of", "counts")
        more = f" The dashed line is the spectrum of log(1 + {of}), which knows no model."
    views = {"all": frame}
    if "layer" in frame:
        layers = sorted(frame.dropna(subset=["share"])["layer"].unique())
        step = max(1, -(-(len(layers) - 1) // (_VIEWS - 1)))
        chosen = [*layers[:-1:step], layers[-1]]
        views = {
            "emb" if layer == -1 else str(int(layer)): frame[frame["layer"] == layer]
            for layer in chosen
        }
    return Figure(
        title="Spectrum over numbers",
        views={name: figures.spectrum_lines(rows, baseline) for name, rows in views.items()},
        switch="Layer",
        caption=Caption(
            text="Share of each frequency in the rows' power, from period N to 2. The grey band is "
            "the central 95 % of chance at each frequency; diamonds exceed the largest share of "
            "any frequency in 95 % of the spectra of chance. A code that changes smoothly with the "
            "number has its power at long periods without any period of its own."
            + more
            + _constant(results),
            estimand=_SHARE,
            n=rows_of(attrs),
            interval=_ONE_TABLE,
            null=f"{words.sentence(chance(attrs))}; family-wise by the largest share",
        ),
        alt=f"Lines of share against period. {largest_words(results)}",
        data=frame,
        width=520,
    )


def _constant(results: xr.DataTree) -> str:
    dataset = results["spectrum"].to_dataset()
    share = dataset["dc"] / (dataset["dc"] + dataset["power"].sum("frequency"))
    low, high = float(share.min()), float(share.max())
    ends = words.percent(low) if low == high else f"{words.percent(low)} to {words.percent(high)}"
    return f" The constant (DC) holds {ends} of the squared length and no part of these shares."


def _map(results: xr.DataTree, frame: pd.DataFrame) -> Figure:
    attrs = reading.attributes(results)
    return Figure(
        title="Spectra of all layers",
        views={"map": figures.spectrum_map(frame, _names(frame))},
        caption=Caption(
            text="Each row is a layer's spectrum: how many times the share of a flat spectrum a "
            "frequency has. Blank rows are the same for all numbers.",
            estimand=f"{_SHARE}. Drawn as a multiple of what a flat spectrum has",
            n=rows_of(attrs),
            interval=_ONE_TABLE,
            null="1: all frequencies have the same share",
        ),
        alt=f"Map of layer and period. {largest_words(results)}",
        data=frame[["layer", "frequency", "period", "share", "flat", "p_family"]],
        width=520,
    )


def _residues(results: xr.DataTree) -> Figure:
    attrs = reading.attributes(results)
    frame = spectra.residue_frame(results)
    unread = frame[frame["kappa"].isna()]
    text = (
        "How well n mod T is read by a linear probe, on numbers that it was not trained on. 1 is "
        "every residue right, 0 is guessing, and below 0 a held-out number is the one that its "
        "group has not shown. A peak in the spectrum with κ near 0 is no residue that a linear "
        "reader could use."
    )
    for status, rows in unread.groupby("status", sort=False):
        moduli = [str(modulus) for modulus in sorted(rows["modulus"].unique())]
        text += f" Not read, {status}: T = {words.listed(moduli)}."
    drawn = frame.dropna(subset=["kappa"])
    bars = "layer" not in frame
    view = figures.residue_bars(drawn) if bars else figures.residue_map(drawn, _names(drawn))
    return Figure(
        title="Residues that can be read",
        views={"kappa": view},
        caption=Caption(
            text=text,
            estimand="Cohen's κ of true and read residue over all numbers; linear discriminant on "
            f"scaled rows within {attrs.get('components')} principal components, "
            f"{attrs.get('folds')} folds of numbers, everything fitted on training folds",
            n=f"{int(attrs.get('n_numbers', 0)):,} numbers",
            interval="none: one κ of all numbers; the permutations judge it",
            null=f"Residues dealt to the numbers at random, {attrs.get('permutations')} times; "
            "p_family by the largest of any modulus and layer, in standard deviations",
        ),
        alt=f"κ by modulus. {residue_words(results)}",
        data=frame,
        width=520,
    )


def _waves(results: xr.DataTree, frame: pd.DataFrame) -> Block:
    attrs = reading.attributes(results)
    dropped = str(results["amplitudes"].attrs.get("dropped", ""))
    off = frame.loc[~frame["on_bin"].astype(bool), "period"].unique()
    text = "How much of the variance the fit loses without the wave of a period."
    if dropped:
        text += f" Zero or spanned by others on these numbers, and left out: {dropped}."
    if len(off):
        named = [words.number(float(period), 4) for period in off]
        text += f" Off the bins of this range: T = {words.listed(named)}."
    caption = Caption(
        text=text,
        estimand="Fall of R² of a joint least-squares fit of constant, linear trend and the waves "
        "of all these periods",
        n=rows_of(attrs),
        interval=_ONE_TABLE,
        # The expectation of a cosine and a sine beside a constant.
        null=f"rows of independent noise: {words.percent(2 / (int(attrs['n_numbers']) - 1))} for "
        "each period in the mean" + (", half where a wave is left out" if dropped else ""),
    )
    if "layer" not in frame:
        shown = frame.rename(columns={"on_bin": "whole number of waves", "r2": "R² of all"})
        return Table(title="Waves at chosen periods", frame=shown, caption=caption)
    return Figure(
        title="Waves at chosen periods",
        views={"share": figures.wave_lines(frame, _names(frame))},
        caption=caption,
        alt="Lines of the share of variance of each period by layer.",
        data=frame,
        width=520,
    )


def _table(results: xr.DataTree) -> Table:
    frame = spectra.strongest_frame(results)
    where = " at the layer where its share is largest" if "layer" in frame else ""
    return Table(
        title="Frequencies by share",
        frame=frame,
        caption=Caption(
            text=f"Each frequency{where}. flat: the share as a multiple of that in a flat "
            "spectrum. kappa: Cohen's κ of reading n mod T, for whole T, with kappa_p by permuted "
            "residues; kappa_best is the largest of any layer.",
            estimand=_SHARE,
            n=rows_of(reading.attributes(results)),
            interval=_ONE_TABLE,
            null=f"{words.sentence(chance(reading.attributes(results)))}; p_family by the largest "
            "share of any frequency",
        ),
    )


def largest_words(results: xr.DataTree, most: int = 5) -> str:
    """`Largest: T = 100 (27.3 %, in the embedding), ...`."""
    frame = spectra.strongest_frame(results)
    attrs = reading.attributes(results)
    parts = []
    for row in frame.head(most).to_dict("records"):
        where = f", {spectra.row_name(attrs, row['layer'])}" if "layer" in row else ""
        period = words.number(float(row["period"]), 3)
        parts.append(f"T = {period} ({words.percent(float(row['share']))}{where})")
    return f"Largest: {words.listed(parts)}." if parts else "No rows differ."


def residue_words(results: xr.DataTree) -> str:
    """Which residues are read best, and where."""
    frame = spectra.residue_frame(results).dropna(subset=["kappa"])
    if frame.empty:
        return "No residue could be read."
    attrs = reading.attributes(results)
    sure = frame[frame["p_family"] < words.SURE]
    if sure.empty:
        return "No residue is read better than chance."
    best = sure.loc[sure.groupby("modulus")["kappa"].idxmax()]
    parts = [
        f"n mod {int(row['modulus'])} (κ = {words.fixed(float(row['kappa']), 2)}"
        + (f", {spectra.row_name(attrs, row['layer'])})" if "layer" in row else ")")
        for row in best.sort_values("kappa", ascending=False, kind="stable").to_dict("records")
    ]
    return f"Read on held-out numbers: {words.listed(parts)}."
