"""Sections about how alike numbers are: maps, chance, frequencies, transfer, published values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table, Text
from mechnum.report.page import Section
from mechnum.report.sections.published import published_section
from mechnum.report.similarity_frames import (
    MEASURES,
    curve_frame,
    pair_frame,
    pair_names,
    present_nulls,
    transfer_frame,
)

_ONE_TABLE = "none: there is one table of numbers for each place of a model"
_CURVES = 8  # Pairs whose match by number of frequencies is drawn.
_ESTIMAND = (
    "RSA: correlation of the similarities (Euclid: of the distances) of all pairs of numbers. CKA: "
    "linear, of centred rows. Frequencies: shared / all of the strongest ones of both, or "
    "Kendall's τ of all, each frequency with the largest amplitude of any principal component"
)


def map_section(results: xr.DataTree) -> Section:
    """Every place of every model beside every other."""
    table = results["map"].to_dataset()["value"]
    views = {
        title: figures.labelled_map(table.sel(measure=measure), title, ("", ""))
        for measure, title in MEASURES.items()
    }
    data = table.to_series().unstack("measure").reset_index()
    figure = Figure(
        title="Every place beside every other",
        views=views,
        caption=Caption(
            text="Layer k is the state after it, at the number. Of numbers of several tokens the "
            "embedding is that of the last token. The table of digits alone has no model in it: "
            "which digit stands at each place of the number. What is like it may be spelling.",
            estimand=_ESTIMAND,
            n=f"{results.attrs['n_numbers']:,} numbers",
            interval=_ONE_TABLE,
            null="in the section before, for the pairs that are tested",
        ),
        alt="Maps of the similarity of every place of every model with every other.",
        data=data,
        width=640,
        switch="Measure",
    )
    return Section("Places", [figure])


def chance_section(results: xr.DataTree) -> Section:
    """The tested pairs beside three nulls, for each measure."""
    nulls = present_nulls(results)
    views = {
        title: figures.chance_ranges(pair_frame(results, measure), nulls)
        for measure, title in MEASURES.items()
    }
    frame = pd.concat(
        [pair_frame(results, measure).assign(measure=title) for measure, title in MEASURES.items()]
    )
    frame = frame[["a", "b", "measure", *frame.columns.drop(["a", "b", "measure", "name"])]]
    caption = Caption(
        text="Diamonds are the models' numbers, bars the central 95 % of what chance makes. "
        + " ".join(f"{words.sentence(name)}: {NULL_TEXTS[null]}" for null, name in nulls.items()),
        estimand=_ESTIMAND,
        n=f"{results.attrs['n_numbers']:,} numbers, {results.attrs['draws']:,} draws of each null",
        interval=f"{_ONE_TABLE}; the bars are of the nulls",
        null="the bars; no p is below " + words.number(1 / (int(results.attrs["draws"]) + 1)),
    )
    figure = Figure(
        title="Similarity beside chance",
        views=views,
        caption=caption,
        alt="Measured similarities beside the ranges of the nulls.",
        data=frame,
        width=520,
        switch="Measure",
    )
    table = Table(
        title="Pairs",
        frame=frame.drop(columns=[name for name in frame if name.endswith(("_mean", "_low"))]),
        caption=replace(
            caption,
            text="Of each null, the 97.5 % quantile and p: how often a draw is as large as the "
            "value, which is counted with them; each p is of one value, without correction for how "
            "many there are.",
            interval=_ONE_TABLE,
            null=f"{words.listed(list(nulls.values()))}, as in the figure; no p is below "
            + words.number(1 / (int(results.attrs["draws"]) + 1)),
        ),
    )
    return Section("Against chance", [figure, table])


def frequencies_section(results: xr.DataTree) -> Section:
    """How the match of spectra depends on how many frequencies are compared."""
    nulls, names = present_nulls(results), pair_names(results)
    count = min(len(names), _CURVES)
    chosen = np.linspace(0, len(names) - 1, count).round().astype(int)
    top = int(results.attrs["top"])
    curves = {names[pair]: curve_frame(results, int(pair)) for pair in chosen}
    figure = Figure(
        title="Match by number of frequencies",
        views={name: figures.match_lines(frame, nulls, top) for name, frame in curves.items()},
        caption=Caption(
            text="A match grows with how many frequencies are compared, in any two spectra: all of "
            "them always match. It says something only where it is above the bands. A frequency "
            f"and its mirror image count once. Dotted: the {top} of the other figures.",
            estimand="shared / all of the n strongest frequencies of both",
            n=f"{results.attrs['n_numbers']:,} numbers",
            interval=_ONE_TABLE,
            null="the bands, the central 95 % of draws",
        ),
        alt="Lines of the match by the number of frequencies, over the bands of chance.",
        data=pd.concat([frame.assign(pair=name) for name, frame in curves.items()]),
        width=420,
        switch="Pair",
    )
    return Section("Frequencies", [figure])


def transfer_section(results: xr.DataTree) -> Section | None:
    """Probes of one model read on the others; None where that was not measured."""
    blocks: list[Block] = []
    for name, what in (("number", "the number that is read"), ("answer", "the answer")):
        found = reading.group(results, f"transfer/{name}")
        if found is None:
            continue
        models = found.sel(tested_on=found["kind"] == "model")
        controls = found.sel(tested_on=found["kind"] != "model")
        views = {
            "trained models": models["accuracy"],
            "controls": controls["accuracy"],
            "shuffled alignment": models["shuffled"],
        }
        blocks.append(
            Figure(
                title=f"Probes of {what}, on other models",
                views={
                    title: figures.labelled_map(
                        table, "accuracy", ("trained on", "tested on"), signed=False
                    )
                    for title, table in views.items()
                },
                caption=Caption(
                    text="A probe that was trained on the row's place reads the column's place, "
                    "through the affine map (ridge regression) that takes the training numbers' "
                    "mean states there to those of the row. Controls: untrained nets of the same "
                    "shapes, Gaussian rows of the same mean and covariance, and maps fitted to "
                    "numbers paired at random.",
                    estimand=f"share of states at which {what} is decoded exactly, of numbers that "
                    "neither probe nor map has seen",
                    n=f"{int(found['test_values'].max())} held-out numbers, "
                    f"{int(found['test_rows'].max()):,} states",
                    interval="in the data: 95 % bootstrap over numbers",
                    null=f"{words.percent(float(found['chance']))} for a guess",
                ),
                alt=f"Maps of the accuracy of probes of {what} on other models.",
                data=transfer_frame(found),
                width=640,
                switch="Tested on",
            )
        )
    return Section("Probes of one model on another", blocks) if blocks else None


def models_section(results: xr.DataTree) -> Section | None:
    """What is known of where the models come from; None where nothing is."""
    about = reading.structured(results.attrs.get("about", {}))
    if not about:
        return None
    return Section(
        "Where the models come from",
        [Text(points=list(about.items()))],
        lead="Models may be alike since they started alike.",
    )


def published_values(results: xr.DataTree) -> Section | None:
    """What was published of other models, and what speaks against it."""
    section = published_section(results)
    if section is None:
        return None
    note = (
        "The paper calls the representations universal. Its own values say so of the cosine; of "
        "the dot product weakly, and of distances not. Its comparison of spectra is void: in the "
        "notebook that was released, all spectra come from one model, which is compared with "
        "itself."
    )
    return replace(section, blocks=[*section.blocks, Text([note])])


NULL_TEXTS = {
    "tokens": "words that are one token in both, in place of the numbers: what numbers share with "
    "any token of the two.",
    "shuffled": "the rows of one side in random order: the same rows, of the wrong numbers.",
    "gaussian": "independent rows with the mean and the covariance of one side.",
}
