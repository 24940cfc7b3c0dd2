"""Sections about path effects: their map, and the table of the largest."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Caption, Figure, Table
from mechnum.report.frames import ranked
from mechnum.report.intervals import INTERVAL_WORDS
from mechnum.report.page import Section
from mechnum.report.sections.nodes import largest_words, q_words

# Cells that the maps of one page hold; their hovers take most of its size.
_BUDGET = 30_000
_MOST_ROWS, _MOST_COLUMNS = 80, 120
_MOST_IN_TABLE = 5_000


def edges_section(results: xr.DataTree, frame: pd.DataFrame) -> Section:
    """The map of sender x receiver, and the edges by size of effect."""
    return Section("Path effects", [_figure(results, frame), _table(results, frame)])


def _figure(results: xr.DataTree, frame: pd.DataFrame) -> Figure:
    unit = words.unit(reading.attributes(results))
    shown, cut = _largest_part(frame)
    largest = float(shown["effect"].abs().max())
    impossible = int(frame["effect"].isna().sum())
    if "position" in shown:
        views = {
            words.number(int(position)): figures.path_map(own, unit, largest)
            for position, own in shown.groupby("position")
        }
    else:
        views = {"effect": figures.path_map(shown, unit, largest)}
    text = "Mean effect of each sender (row) through each receiver (column)."
    if impossible:
        text += (
            " Hatched edges are impossible, since the receiver reads before the sender writes: "
            "they have no effect, not one of 0."
        )
    if "position" in shown:
        text += " Choose the position of the sender, counted from the end; the scale is the same."
    if cut:
        text += f" {cut}"
    return Figure(
        title="Effect of each sender through each receiver",
        views=views,
        switch="Position",
        caption=Caption(
            text=text,
            estimand=words.sentence(words.path_estimand(reading.attributes(results))),
            n=words.count_range(frame["n"][frame["effect"].notna()], "pairs"),
            interval=INTERVAL_WORDS,
            null="0: what the sender writes does not matter to this receiver, or does not differ "
            "between the two prompts",
        ),
        alt=f"{text} {largest_words(frame, 'effect', 3)}",
        data=shown.drop(columns="n"),
        width=min(160 + 11 * shown["receiver"].nunique(), 1500),
        widest=max(560, 260 + 40 * shown["receiver"].nunique()),
        most=_MOST_IN_TABLE,
    )


def _largest_part(frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The senders and receivers of the largest effects, where there are too many to draw."""
    n_maps = frame["position"].nunique() if "position" in frame else 1
    counts = {side: frame[side].nunique() for side in ("sender", "receiver")}
    rows, columns = min(counts["sender"], _MOST_ROWS), min(counts["receiver"], _MOST_COLUMNS)
    while rows * columns * n_maps > _BUDGET and rows * columns > 1:
        rows, columns = max(1, rows * 9 // 10), max(1, columns * 9 // 10)
    if (rows, columns) == tuple(counts.values()):
        return frame, ""
    for side, most in (("sender", rows), ("receiver", columns)):
        size = frame.groupby(side)["effect"].apply(lambda own: own.abs().max())
        frame = frame[frame[side].isin(size.nlargest(most).index)]
    return frame, (
        f"Drawn are {rows} of {counts['sender']:,} senders and {columns} of "
        f"{counts['receiver']:,} receivers, those of the largest effects."
    )


def _table(results: xr.DataTree, frame: pd.DataFrame) -> Table:
    order = ranked(frame, "effect")
    return Table(
        title="Edges by size of effect",
        frame=order,
        caption=Caption(
            text="Possible edges in falling order of the absolute mean effect, in "
            f"{words.unit(reading.attributes(results))}; low and high end the interval.",
            estimand=words.sentence(words.path_estimand(reading.attributes(results))),
            n=words.count_range(order["n"], "pairs"),
            interval=INTERVAL_WORDS,
            null=q_words(len(order)),
        ),
        most=_MOST_IN_TABLE,
    )
