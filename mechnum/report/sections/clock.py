"""Sections about the clock: its picture, classes of heads, validation, stages of MLPs, figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Caption, Figure, Table
from mechnum.report.clock_frames import (
    LEVELS,
    curve_frames,
    heads_frame,
    mlps_frame,
    sizes_for,
    validation_frame,
)
from mechnum.report.intervals import INTERVAL_WORDS
from mechnum.report.page import Section
from mechnum.report.sections.circuit import circuit_frames, files_blocks

_NAMES = {"heads": "heads", "mlps": "MLPs"}
_CONTROLS = {
    "true": "true outputs, to all readers",
    "swapped": "none mixed, classes swapped",
    "permuted": "fit to shuffled numbers, to all readers",
    "mean": "mean output, to all readers",
}


def picture_section(results: xr.DataTree) -> Section:
    """The circuit, from the embedding to the logits in four steps."""
    nodes, edges = circuit_frames(results)
    heads, mlps = heads_frame(results), mlps_frame(results)
    attrs = reading.attributes(results)
    real = figures.strongest(edges[~edges["link"]], len(edges))
    named = [
        f"{row['sender']} → {row['receiver']} ({words.number(row['effect'], sign=True)})"
        for row in real.head(3).to_dict("records")
    ]
    text = (
        "On the left stand heads that move a and b, beside them MLPs that build the sum, both with "
        "those that are unclear (grey), and on the right the MLPs and heads that write it to the "
        "logits. Below a head is its class and how often resampled pairs give it. Edges are as "
        "wide as their effect is large, negative ones blue and dashed. Hover for the effect with "
        "its interval."
    )
    figure = Figure(
        title="The clock",
        views={"clock": figures.clock_picture(nodes, edges, heads, mlps, words.unit(attrs))},
        caption=Caption(
            text=text,
            estimand=f"Change of {words.metric(attrs)} in the corrupt run when the sender's value "
            "at every position is replaced by that of the clean run, but only the receiver reads "
            "the difference",
            n=f"{attrs['n_pairs']} pairs, others than the {attrs.get('n_pairs_found_on')} that "
            "nodes and edges were chosen on",
            interval=INTERVAL_WORDS,
            null="0: the receiver makes nothing of the difference",
        ),
        alt=f"Graph in five columns of {len(nodes)} nodes and {len(real)} edges. Strongest edges: "
        f"{words.listed(named)}.",
        data=real.drop(columns=["reader", "link"]),
        width=720,
    )
    return Section("Embed, move, compute, read out", [figure, *files_blocks(results)])


def heads_section(results: xr.DataTree) -> Section:
    """Classes of heads, and whether they are true."""
    frame, attrs = heads_frame(results), reading.attributes(results)
    bars = Figure(
        title="What heads move",
        views={"classes": figures.class_bars(frame)},
        caption=Caption(
            text="The larger of c_ab and c_sum is a head's class; those in which they differ least "
            "are mixed. Heads are ordered by their total effect on the pairs that chose them.",
            estimand="c_ab = (1 − DE/TE) · E(a, b) / E(a, b, a+b), c_sum = DE/TE · E(a+b) / "
            "E(a, b, a+b), each ratio cut to 0 … 1; E is what a helix in the head's place keeps of "
            "the metric of the clean run, less what the head's mean output keeps. Metric: "
            f"{words.metric(attrs)}; helices {_fit(attrs)}",
            n=f"{attrs['n_pairs']} pairs",
            interval=f"{INTERVAL_WORDS}; classes: each resample is classified anew",
            null="a head is unclear where helix(a, b, a+b) keeps no more than the head's mean "
            "output, or than a fit to shuffled numbers",
        ),
        alt=f"Bars of c_ab and c_sum, and of class shares. {class_words(frame)}",
        data=frame,
        width=640,
    )
    table = Table(
        title="Heads patched together by class",
        frame=_validation_table(results),
        caption=Caption(
            text="In one run a,b-heads pass helix(a, b) on to all readers but the logits, "
            "a+b-heads helix(a+b) to the logits alone, mixed and unclear heads helix(a, b, a+b) to "
            "all. What a class does not claim stays as in the corrupt run. “of all heads” is the "
            "share of the joint effect of all heads' clean values, “of these” that of the true "
            "outputs of the heads that are patched.",
            estimand=f"Joint change of {words.metric(attrs)} in the corrupt run, helices "
            f"{_fit(attrs)}",
            n=f"{attrs['n_pairs']} pairs",
            interval=INTERVAL_WORDS,
            null="classes swapped: the same contents to the wrong readers; mean output: what "
            "taking the corrupt numbers out does by itself",
        ),
    )
    return Section("Heads", [bars, table])


def curves_section(results: xr.DataTree) -> Section:
    """How many heads and MLPs make up the effect."""
    frames, attrs = curve_frames(results), reading.attributes(results)
    data = pd.concat([one.assign(kind=kind) for kind, one in frames.items()], ignore_index=True)
    said = [sizes_words(results, kind) for kind in frames]
    figure = Figure(
        title="How many nodes it takes",
        views={"curves": figures.cumulative_lines(frames)},
        caption=Caption(
            text=f"The best k nodes patched together. {' '.join(said)} Dotted lines: 50, 70, 80 "
            "and 90 %.",
            estimand=f"Joint change of {words.metric(attrs)} in the corrupt run, as a share of "
            "that of all heads, or all MLPs",
            n=f"{attrs['n_pairs']} pairs; the rank is that of {attrs.get('n_pairs_found_on')} "
            "others",
            interval=f"{INTERVAL_WORDS} (band)",
            null="nodes that matter alike and add up: a straight line to 1 at all of them",
        ),
        alt=f"Lines of the share of the joint effect by number of nodes. {' '.join(said)}",
        data=data,
        width=320 * len(frames),
    )
    return Section("Cumulative effects", [figure])


def mlps_section(results: xr.DataTree) -> Section | None:
    """Which MLPs build the sum, and which write it out."""
    frame, attrs = mlps_frame(results), reading.attributes(results)
    if frame is None:
        return None
    figure = Figure(
        title="Stages of MLPs",
        views={"stages": figures.stage_lines(frame)},
        caption=Caption(
            text="An MLP computes where the interval of DE/TE lies below one half (dotted), reads "
            f"out where it lies above, and is unclear otherwise. {stage_words(frame)}",
            estimand=f"DE/TE, and the total effect of helix(a+b) in the MLP's place over TE; "
            f"effects on {words.metric(attrs)}, helices {_fit(attrs)}",
            n=f"{attrs['n_pairs']} pairs",
            interval=INTERVAL_WORDS,
            null="mean output (thin): what taking the corrupt numbers out does by itself",
        ),
        alt=f"Lines of two ratios by layer. {stage_words(frame)}",
        data=frame,
        width=440,
        widest=860,
    )
    return Section("MLPs", [figure])


def class_words(frame: pd.DataFrame) -> str:
    """The heads of each class, in words."""
    parts = [
        f"{name}: {words.listed([str(node).removeprefix('head ') for node in own['node']])}"
        for name, own in frame.groupby("class", sort=False)
    ]
    return f"{'; '.join(parts)}."


def stage_words(frame: pd.DataFrame) -> str:
    """The MLPs of each stage, in words."""
    parts = [
        f"{words.sentence(str(name))}: {words.listed([str(layer) for layer in own['layer']])}"
        for name, own in frame.groupby("stage", sort=False)
    ]
    return f"{'; '.join(parts)}."


def sizes_words(results: xr.DataTree, kind: str) -> str:
    """How many nodes reach each level, in words."""
    sizes = sizes_for(results, kind)
    reached = [
        f"{float(level):.0%} at k = {sizes[level]}".replace("%", " %")
        for level in LEVELS
        if sizes[level] is not None
    ]
    name = words.sentence(_NAMES[kind])
    return f"{name}: {words.listed(reached)}." if reached else f"{name}: none of the levels."


def validation_rows(results: xr.DataTree) -> list[tuple[str, str, str]]:
    """What was patched, and its share of all heads' effect and of the true outputs', in words."""
    rows = []
    found = results["clock/validation"]
    n_unclear = int((results["clock/heads/class"] == "unclear").sum())
    unclear = f", {n_unclear} unclear" if n_unclear else ""
    for row in validation_frame(results).to_dict("records"):
        name = str(row["set"])
        what = _CONTROLS.get(name) or f"by class, {name[2:]} mixed{unclear}"
        cells = []
        for share in ("share", "share_of_true"):
            ends = (row[share], row[f"{share}_low"], row[f"{share}_high"])
            status = str(found[f"{share}_status"].values)
            cells.append(_share(*ends) if status == "measured" else status)
        rows.append((what, *cells))
    return rows


def _share(mean: float, low: float, high: float) -> str:
    ends = [words.fixed(value, 3) for value in (mean, low, high)]
    return ends[0] if math.isnan(low) else f"{ends[0]} [{ends[1]}, {ends[2]}]"


def _validation_table(results: xr.DataTree) -> pd.DataFrame:
    columns = ["patched with", "of all heads", "of these"]
    return pd.DataFrame(validation_rows(results), columns=pd.Index(columns))


def _fit(attrs: Mapping[str, Any]) -> str:
    parts = [f"of periods {attrs.get('periods')}"]
    if attrs.get("linear") == "False":
        parts.append("without a linear column")
    parts.append(
        f"fitted to {attrs.get('n_fit')} prompts out of sample: {attrs.get('folds')} folds of "
        "numbers"
    )
    return ", ".join(parts)
