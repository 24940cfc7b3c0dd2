"""The page of a circuit that was run, one part for each step, and its summary on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import xarray as xr

from mechnum.report import reading, words
from mechnum.report.blocks import Facts, Text
from mechnum.report.page import Page, Part, Section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.published import (
    published_frame,
    published_section,
    published_words,
)
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group

# Each step has sections of its own that say how it was made and what was published.
_OF_THE_RUN = ("steps", "title", "question", "paper", "left_out")


def run_page(results: xr.DataTree, page_of: Callable[[xr.DataTree], Page]) -> Page:
    """The page of what `mechnum.run_circuit` gave.

    Args:
        page_of: the page of a step's results, whose sections become a part of this one.
    """
    attrs, steps = results.attrs, _steps(results)
    parts = [_part(step, results, page_of) for step in steps if _found(results, step)]
    sections = [
        Section("What was asked", [Text([str(attrs["question"]), f"{attrs['paper']}."])]),
        Section("What was found", [Text(points=_points(results, page_of))]),
        published_section(results),
        _settings_section(steps),
        provenance_section(xr.DataTree(xr.Dataset(attrs=_own(attrs)))),
    ]
    return Page(
        title=str(attrs["title"]),
        subtitle=f"{attrs['circuit']} in {attrs['model']}",
        sections=[section for section in sections if section is not None],
        parts=parts,
    )


def run_summary(results: xr.DataTree, page_of: Callable[[xr.DataTree], Page]) -> Group:
    """What the steps found, and the figures that are measured, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    attrs = results.attrs
    lines = [Line(f"{attrs['circuit']} · {attrs['model']}", style="bold")]
    lines += [Line(f"{name}: {text}") for name, text in _points(results, page_of)]
    found = reading.group(results, "published")
    if found is None:
        return Group(*lines)
    frame = published_frame(found)[found["needs"].values == ""]
    table = bare_table()
    table.add_column("quantity")
    for name in ("published", "measured"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("same kind of model")
    for row in frame.to_dict("records"):
        numbers = (row[name] for name in ("published", "measured"))
        shown = (value if isinstance(value, str) else words.number(value) for value in numbers)
        met = f", within tolerance: {row['tolerance met']}" if row["tolerance met"] else ""
        table.add_row(str(row["quantity"]), *shown, f"{row['same kind']}{met}")
    table.caption = published_words(found)
    return Group(*lines, table)


def _steps(results: xr.DataTree) -> list[dict[str, Any]]:
    return list(reading.structured(results.attrs["steps"]))


def _found(results: xr.DataTree, step: dict[str, Any]) -> bool:
    return step["name"] in results["steps"].children


def _of_step(results: xr.DataTree, step: dict[str, Any]) -> xr.DataTree:
    """A step's results as the tree that its instrument gave."""
    found = results[f"steps/{step['name']}"].copy()
    return found.assign_attrs(seed=found.attrs.get("seed", results.attrs["seed"]))


def _part(
    step: dict[str, Any], results: xr.DataTree, page_of: Callable[[xr.DataTree], Page]
) -> Part:
    page = page_of(_of_step(results, step))
    lead = f"{step['shows']} Measured on {step['model']} by the instrument {step['instrument']}."
    return Part(title=step["title"], sections=page.sections, lead=f"{lead} {page.lead}".strip())


def _points(
    results: xr.DataTree, page_of: Callable[[xr.DataTree], Page]
) -> list[tuple[str, str]]:
    """Each step in a sentence: what its own page leads with."""
    points = []
    left_out = reading.structured(results.attrs.get("left_out", "{}"))
    for step in _steps(results):
        if _found(results, step):
            said = page_of(_of_step(results, step)).lead or step["shows"]
            points.append((step["title"], said))
        else:
            points.append((f"Left out: {step['title']}", f"{left_out[step['name']]}."))
    return points


def _settings_section(steps: list[dict[str, Any]]) -> Section:
    rows = []
    for step in steps:
        settings = [
            f"{name} = {'none' if value is None else value}"
            for name, value in step["settings"].items()
        ]
        rows.append((f"{step['name']} ({step['instrument']})", "\n".join(settings)))
    note = "mechnum run takes each of them as --set steps.STEP.SETTING=VALUE."
    return Section("Settings", [Facts(rows), Text([note])])


def _own(attrs: dict[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in attrs.items() if name not in _OF_THE_RUN}
