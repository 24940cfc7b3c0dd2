"""The summary of a clock on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from mechnum.report import words
from mechnum.report.clock_frames import heads_frame, mlps_frame
from mechnum.report.largest import head_lines
from mechnum.report.sections.circuit import quality_rows
from mechnum.report.sections.clock import sizes_words, validation_rows
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table


def clock_summary(results: xr.DataTree) -> Group:
    """Classes of heads, stages of MLPs, validation and faithfulness, for a Rich console."""
    from rich.console import Group
    from rich.text import Text

    parts = [*head_lines(results), _heads(results)]
    mlps = mlps_frame(results)
    sizes = [Text(sizes_words(results, "heads"))]
    if mlps is not None:
        parts.append(_mlps(results))
        sizes.append(Text(sizes_words(results, "mlps")))
    return Group(*parts, *sizes, _validation(results), _quality(results))


def _heads(results: xr.DataTree) -> Table:
    table = bare_table()
    for name in ("head", "class"):
        table.add_column(name, no_wrap=True)
    for name in ("of resamples", "c_ab", "c_sum", "DE/TE"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in heads_frame(results).to_dict("records"):
        cells = [
            words.interval(row[name], row[f"{name}_low"], row[f"{name}_high"], sign=False)
            for name in ("c_ab", "c_sum")
        ]
        share = words.number(row["direct_share"])
        node = row["node"].removeprefix("head ")
        table.add_row(node, row["class"], words.percent(row["sure"]), *cells, share)
    return table


def _mlps(results: xr.DataTree) -> Table:
    table = bare_table()
    for name in ("MLP", "stage"):
        table.add_column(name, no_wrap=True)
    names = ("direct_share", "helix_share", "mean_share")
    for name in ("DE/TE", "helix(a+b)/TE", "mean/TE"):
        table.add_column(name, justify="right", no_wrap=True)
    frame = mlps_frame(results)
    for row in [] if frame is None else frame.to_dict("records"):
        cells = [
            words.interval(row[name], row[f"{name}_low"], row[f"{name}_high"], sign=False)
            for name in names
        ]
        table.add_row(str(row["layer"]), row["stage"], *cells)
    return table


def _validation(results: xr.DataTree) -> Table:
    table = bare_table()
    table.add_column("patched together", no_wrap=True)
    for name in ("of all heads' effect", "of these heads'"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in validation_rows(results):
        table.add_row(*row)
    return table


def _quality(results: xr.DataTree) -> Table:
    table = bare_table()
    table.show_header = False
    for name, value in quality_rows(results):
        table.add_row(name, value)
    return table
