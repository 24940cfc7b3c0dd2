"""The page about clock and pizza, and its summary on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from mechnum.report import words
from mechnum.report.page import Page, Section
from mechnum.report.sections.clock_pizza import (
    circle_frame,
    circles_section,
    dispute_section,
    figures_frame,
    irrelevance_section,
    verdict_section,
)
from mechnum.report.sections.grokking import circles_figure
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.published import published_section
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group


def clock_pizza_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.circuits.instruments.clock_pizza.measure_clock_pizza` gave."""
    attrs = results.attrs
    sections = [
        verdict_section(results),
        circles_section(results),
        Section("Circles", [circles_figure(results["circles"].to_dataset())]),
        irrelevance_section(results),
        dispute_section(results),
        published_section(results),
        tokens_section(results),
        provenance_section(results),
    ]
    return Page(
        title=f"Clock or pizza: {attrs.get('model', 'a net')}",
        lead=f"{words.sentence(str(attrs['verdict']))}: {attrs['because']}.",
        sections=[section for section in sections if section is not None],
    )


def clock_pizza_summary(results: xr.DataTree) -> Group:
    """Every figure, the circles by formula, and the verdict, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    attrs, numbers, circles = results.attrs, bare_table(), bare_table()
    numbers.show_header = False
    for row in figures_frame(results).to_dict("records"):
        value = words.interval(row["value"], row["low"], row["high"], sign=False)
        numbers.add_row(str(row["figure"]), value)
    columns = ("circle", "power", "clock", "pizza", "accompanying")
    for name in columns:
        circles.add_column(name, justify="right", no_wrap=True)
    for row in circle_frame(results["verdict"].to_dataset(), "fourier").to_dict("records"):
        shares = (
            "none" if row[name] != row[name] else words.percent(row[name]) for name in columns[1:]
        )
        circles.add_row(f"k = {row['circle']}", *shares)
    circles.caption = "What each formula explains of the logits from one circle alone"
    return Group(
        Line(f"{attrs['model']} · {attrs['task']}", style="bold"),
        numbers,
        circles,
        Line(f"{attrs['verdict']}: {attrs['because']}"),
        Line(str(attrs["caution"])),
    )
