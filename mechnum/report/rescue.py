"""The page of the rescue experiment, and its summary on the terminal."""

from __future__ import annotations

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


def rescue_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.circuits.rescue.measure_rescue` gave."""
    points = _points(results)
    return Page(
        title="Do Fourier features rescue a net that learns to add?",
        lead=points[0][1],
        sections=[
            Section("What was found", [Text(points=points)]),
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
    table.caption = f"Means over {seeds_words(results)} with the least and the most"
    return Group(table, *(Line(f"{name}: {text}") for name, text in _points(results)))


def _points(results: xr.DataTree) -> list[tuple[str, str]]:
    summary = results["rescue"].to_dataset()
    arms = [str(arm) for arm in summary["arm"].values]
    filters = filter_frame(results["filters"].to_dataset())
    accuracy = filters.groupby(["arm", "condition"])["accuracy"].mean()
    distances = distance_frame(results["errors"]["count"]).groupby(["arm", "distance"])["share"]
    near = distances.mean()
    points = [
        (
            "Held-out accuracy",
            words.listed(
                [f"{arm} {_spread(summary['heldout_accuracy'].sel(arm=arm))}" for arm in arms]
            )
            + f" after {results.attrs['steps']:,} steps.",
        ),
        (
            "Low frequencies",
            "of the power of number vectors and of the answer's logits, "
            + words.listed(
                [
                    f"{arm} {_spread(summary['embedding_low'].sel(arm=arm))} and "
                    f"{_spread(summary['lens_low'].sel(arm=arm))}"
                    for arm in arms
                ]
            )
            + f" have periods above {float(results.attrs['cut_period']):g}.",
        ),
    ]
    for part in ("low", "high"):
        name = f"{part}, attention and MLPs"
        if (arms[0], name) in accuracy.index:
            points.append(
                (
                    f"Without {part} frequencies",
                    words.listed(
                        [
                            f"{arm} {words.percent(accuracy[arm, name])} right (random "
                            f"{words.percent(accuracy[arm, f'{name}, random'])})"
                            for arm in arms
                        ]
                    )
                    + ".",
                )
            )
    off = [
        f"{arm} {words.percent(near[arm, '1'] + near[arm, '2'])}"
        for arm in arms
        if near[arm, "1"] == near[arm, "1"]
    ]
    if off:
        points.append(("Errors", f"off by 1 or 2: {words.listed(off)} of the wrong answers."))
    return points


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
