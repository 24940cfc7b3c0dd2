"""The page of the rescue experiment, and its summary on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import xarray as xr

from mechnum.report import words
from mechnum.report.blocks import Text
from mechnum.report.page import Page, Section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.rescue import (
    accuracy_section,
    distance_frame,
    errors_section,
    filter_frame,
    filters_section,
    seeds_words,
    spectra_section,
)
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group


_READ_SO = (
    "Means over seeds, in square brackets the least and the most. Scratch is the null: what "
    "training finds of itself."
)


def rescue_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.circuits.instruments.rescue.measure_rescue` gave."""
    points = _points(results)
    return Page(
        title="Do Fourier features rescue a net that learns to add?",
        lead=": ".join(points[0]),
        sections=[
            Section("What was found", [Text(points=points), Text([_READ_SO])]),
            accuracy_section(results),
            spectra_section(results),
            filters_section(results),
            errors_section(results),
            provenance_section(results),
        ],
    )


def rescue_summary(results: xr.DataTree) -> Group:
    """Each kind of net in a row, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    summary, table = results["rescue"].to_dataset(), bare_table()
    table.add_column("nets")
    for name in ("held out", "step with 99 %", "low in embedding", "low in logits"):
        table.add_column(name, justify="right", no_wrap=True)
    for arm in summary["arm"].values:
        own = summary.sel(arm=arm)
        table.add_row(
            str(arm),
            _spread(own["heldout_accuracy"]),
            _reached(own["reached"]),
            _spread(own["embedding_low"]),
            _spread(own["lens_low"]),
        )
    table.caption = f"{words.sentence(seeds_words(results))} kind: means [least, most]"
    return Group(table, *(Line(f"{name}: {text}") for name, text in _points(results)))


def _points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What was found, in a sentence each."""
    summary = results["rescue"].to_dataset()
    arms = [str(arm) for arm in summary["arm"].values]

    def each(text: Callable[[str], str]) -> str:
        return words.listed([f"{arm} {text(arm)}" for arm in arms])

    def of(name: str) -> Callable[[str], str]:
        return lambda arm: _spread(summary[name].sel(arm=arm))

    cut = float(results.attrs["cut_period"])
    points = [
        ("Held-out accuracy", f"{each(of('heldout_accuracy'))} after {results.attrs['steps']:,} "
         "steps."),
        (f"Periods above {cut:g}, in number vectors", f"{each(of('embedding_low'))} of the power."),
        (f"Periods above {cut:g}, in the logits", f"{each(of('lens_low'))} of the power."),
    ]  # fmt: skip
    filters = filter_frame(results["filters"].to_dataset())
    both = filters[filters["modules"] == "attention and MLPs"]
    right = both.groupby(["arm", "removed"])["accuracy"].mean().map(words.percent)
    points += [
        (
            f"Without {part} frequencies",
            each(lambda arm, p=part: f"{right[arm, p]} right ({right[arm, f'{p}, random']})")
            + ", in brackets with as many random directions removed.",
        )
        for part in ("low", "high")
        if (arms[0], part) in right.index
    ]
    distances = distance_frame(results["errors"].to_dataset()["count"])
    counts = distances.groupby(["arm", "distance"])["count"].sum().unstack()
    near, wrong = counts["1"] + counts["2"], counts.sum(axis=1)
    off = [f"{arm} {near[arm]:,} of {wrong[arm]:,}" for arm in arms]
    return [*points, ("Wrong answers that are off by 1 or 2", f"{words.listed(off)}.")]


def _spread(values: xr.DataArray) -> str:
    """The mean over seeds, with the least and the most where there are several."""
    mean = words.percent(float(values.mean()))
    if values.sizes["seed"] < 2:
        return mean
    return f"{mean} [{words.percent(float(values.min()))}, {words.percent(float(values.max()))}]"


def _reached(steps: xr.DataArray) -> str:
    """How many seeds came there, and at which step in the mean."""
    known = steps.dropna("seed")
    if not known.sizes["seed"]:
        return "never"
    text = words.number(round(float(known.mean())))
    return text if known.sizes["seed"] == steps.sizes["seed"] else f"{text} (not all)"
