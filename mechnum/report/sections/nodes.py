"""Sections about the effects of nodes: their figure, and the table of the largest."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Caption, Figure, Table
from mechnum.report.figures.nodes import NAMES
from mechnum.report.frames import ranked
from mechnum.report.intervals import INTERVAL_WORDS
from mechnum.report.measured import estimands
from mechnum.report.page import Section

_MOST_BARS = 40
_MOST_ROWS = 48  # Rows of a map of nodes x positions.
_MOST_IN_TABLE = 5_000
_PARTS = ("head", "group")


def nodes_section(results: xr.DataTree, frame: pd.DataFrame) -> Section:
    """The figure that suits the table's shape, and the nodes by size of effect."""
    return Section("Effects", [_figure(results, frame), _table(results, frame)])


def _figure(results: xr.DataTree, frame: pd.DataFrame) -> Figure:
    unit = words.unit(reading.attributes(results))
    by = estimands(frame)[0]
    cut = ""
    part = next((name for name in _PARTS if name in frame), None)
    if "position" in frame:
        row = "layer" if part is None and "layer" in frame and "neuron" not in frame else "node"
        best = frame.groupby(row, sort=False)[by].apply(lambda own: own.abs().max())
        if row == "node" and len(best) > _MOST_ROWS:
            kept = best.nlargest(_MOST_ROWS).index
            cut = _cut(len(kept), len(best), by)
            frame = frame[frame["node"].isin(kept)]
        labels = _position_labels(results, frame)
        drawn = figures.node_maps(
            frame.sort_values("position", kind="stable"),
            row,
            "position",
            unit,
            _layer_labels(frame) if row == "layer" else None,
            labels,
        )
        text = "Mean effect of each node at each position, counted from the end."
        columns = len(labels)
    elif part is not None:
        drawn = figures.node_maps(frame, "layer", part, unit)
        text = f"Mean effect of each {part} of each layer."
        columns = frame[part].nunique()
    else:
        shown = frame
        if len(frame) > _MOST_BARS:
            shown = ranked(frame, by, _MOST_BARS)
            cut = _cut(len(shown), len(frame), by)
        drawn = figures.node_bars(shown, unit)
        frame = shown
        text = "Mean effect of each node; whiskers are intervals."
        columns = 12
    n_panels = len([name for name in figures.SHOWN if name in frame])
    if n_panels > 1:
        text += " The panels share one scale."
    if cut:
        text += f" {cut}"
    return Figure(
        title="Total, direct and indirect effect" if n_panels > 1 else "Effect",
        views={"effects": drawn},
        caption=Caption(
            text=text,
            estimand=words.sentence(words.effect_estimand(reading.attributes(results), "the node")),
            n=words.count_range(frame["n"], "pairs"),
            interval=INTERVAL_WORDS,
            null="0: the value does not matter, or does not differ from what it is replaced by",
        ),
        alt=f"{text} {largest_words(frame, by, 3)}",
        data=frame,
        width=min(max(190 * n_panels + 130, n_panels * 16 * columns + 130), 1600),
        widest=max(700, n_panels * 34 * columns + 220),
        most=_MOST_IN_TABLE,
    )


def _table(results: xr.DataTree, frame: pd.DataFrame) -> Table:
    by = estimands(frame)[0]
    order = ranked(frame, by)
    return Table(
        title="Nodes by size of effect",
        frame=order.drop(columns=[name for name in ("layer", *_PARTS, "neuron") if name in order]),
        caption=Caption(
            text=f"In falling order of the absolute mean {NAMES.get(by, by)} effect, in "
            f"{words.unit(reading.attributes(results))}; low and high end the interval.",
            estimand=words.sentence(words.effect_estimand(reading.attributes(results), "the node")),
            n=words.count_range(order["n"], "pairs"),
            interval=INTERVAL_WORDS,
            null=q_words(len(order)),
        ),
        most=_MOST_IN_TABLE,
    )


def q_words(count: int) -> str:
    """What the q-values say, for tables and summaries."""
    return (
        "0. q: sign-flip test of the mean over pairs, Benjamini-Hochberg over all "
        f"{count:,} values of an effect; those with q below {words.SURE} differ from 0 at "
        f"{words.FDR}"
    )


def largest_words(frame: pd.DataFrame, estimand: str, count: int) -> str:
    """The largest effects with their intervals, in words."""
    columns = (estimand, f"{estimand}_low", f"{estimand}_high")
    names = [
        f"{name(row)} ({words.interval(*(row[column] for column in columns))})"
        for row in ranked(frame, estimand, count).to_dict("records")
    ]
    return f"Largest: {words.listed(names)}." if names else ""


def name(row: dict) -> str:
    """A node or edge, with its position where it has one."""
    text = str(row["node"]) if "node" in row else f"{row['sender']} → {row['receiver']}"
    if "position" in row:
        text += f" at {words.number(int(row['position']))}"
    return text


def _cut(kept: int, count: int, by: str) -> str:
    effect = NAMES.get(by, by)
    return f"Drawn are the {kept} of {count:,} nodes with the largest {effect} effect."


def _layer_labels(frame: pd.DataFrame) -> list[str]:
    return ["emb" if layer == -1 else str(layer) for layer in dict.fromkeys(frame["layer"])]


def _position_labels(results: xr.DataTree, frame: pd.DataFrame) -> list[str]:
    """Positions from the end, with the names that they have in all pairs."""
    roles = reading.roles_from_the_end(results)
    labels = []
    for position in sorted(frame["position"].unique()):
        role = roles.get(int(position))
        number = words.number(int(position))
        labels.append(f"{number}<br>{role}" if role else number)
    return labels
