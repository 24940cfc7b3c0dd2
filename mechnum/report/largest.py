"""The largest effects of a measurement, and a circuit, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from mechnum.report import findings, reading, words
from mechnum.report.figures.circuit import strongest
from mechnum.report.frames import ranked
from mechnum.report.measured import edge_frame, estimands, node_frame
from mechnum.report.sections.circuit import circuit_frames, quality_rows
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text


def ranking(results: xr.DataTree, top: int = 10) -> Group:
    """The `top` nodes or edges by the absolute mean effect, for a Rich console.

    Each with mean, 95 % interval and q-value; nodes are ranked by their total effect, or by the
    direct one where that alone was measured.
    """
    from rich.console import Group

    edges = "edges" in results.children
    frame = edge_frame(results) if edges else node_frame(results)
    effects = [name for name in estimands(frame) if name in ("total", "direct", "effect")]
    places = ["sender", "receiver"] if edges else ["node"]
    places += ["position"] if "position" in frame else []
    table = bare_table()
    for place in places:
        table.add_column(place, no_wrap=True)
    for effect in effects:
        name = effect if effect == "effect" else f"{effect} effect"
        for title in (name, "95 % interval", "q"):
            table.add_column(title, justify="right", no_wrap=True)
    order = ranked(frame, effects[0])
    for row in order.head(top).to_dict("records"):
        cells = []
        for effect in effects:
            text = words.interval(row[effect], row[f"{effect}_low"], row[f"{effect}_high"])
            mean, _, interval = text.partition(" ")
            cells += [mean, interval or "none", words.q_value(row[f"{effect}_q"])]
        named = [words.number(row[p]) if p == "position" else str(row[p]) for p in places]
        table.add_row(*named, *cells)
    attrs = reading.attributes(results)
    table.caption = (
        f"Mean change of {words.metric(attrs)} in the {words.patched_run(attrs)} run over "
        f"{words.count_range(order['n'], 'pairs')}, in {words.unit(attrs)}.\n"
        f"The {min(top, len(order)):,} largest of {len(order):,}; q: sign-flip test, "
        "Benjamini-Hochberg over all of them."
    )
    return Group(*head_lines(results), table)


def circuit_summary(results: xr.DataTree, top: int = 10) -> Group:
    """How faithful a circuit is, and its `top` edges by the absolute effect."""
    from rich.console import Group

    quality = bare_table()
    quality.show_header = False
    for name, value in quality_rows(results):
        quality.add_row(name, value)
    edges = circuit_frames(results)[1]
    order = strongest(edges[~edges["link"]], len(edges))
    table = bare_table()
    for name in ("sender", "receiver"):
        table.add_column(name, no_wrap=True)
    for name in ("effect", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in order.head(top).to_dict("records"):
        text = words.interval(row["effect"], row["low"], row["high"])
        mean, _, interval = text.partition(" ")
        table.add_row(row["sender"], row["receiver"], mean, interval or "none")
    attrs = reading.attributes(results)
    table.caption = (
        f"Mean change of {words.metric(attrs)} in the {words.patched_run(attrs)} run, in "
        f"{words.unit(attrs)}.\nThe {min(top, len(order)):,} largest of {len(order):,} edges."
    )
    return Group(*head_lines(results), quality, table)


def head_lines(results: xr.DataTree) -> list[Text]:
    """Model, task and accuracy."""
    from rich.text import Text

    title = " · ".join(str(results.attrs[key]) for key in ("model", "task") if key in results.attrs)
    accuracy = findings.accuracy_sentence(results)
    return [Text(title, style="bold"), *([Text(accuracy)] if accuracy else [])]
