"""The page of a circuit that was run, one part for each step, and its summary on the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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

FOUND = "What was found"
"""The title of the section, on each page, that says it in words."""

_SAID_ABOVE = ("steps", "title", "question", "paper", "left_out")


def run_page(results: xr.DataTree, page_of: Callable[[xr.DataTree], Page]) -> Page:
    """The page of what `mechnum.run_circuit` gave.

    Args:
        page_of: the page of a step's results, whose sections become a part of this one.
    """
    attrs, steps = results.attrs, _steps(results)
    pages = {step["name"]: page_of(_of_step(results, step)) for step in steps if step["found"]}
    points = _points(results, pages)
    found = [Text(points=points)]
    if any("[" in text for _, text in points):
        found.append(Text([_READ_SO]))
    sections = [
        Section("What was asked", [Text([str(attrs["question"]), f"{attrs['paper']}."])]),
        Section(FOUND, found),
        published_section(results),
    ]
    made = [
        _settings_section(steps),
        provenance_section(xr.DataTree(xr.Dataset(attrs=_own(attrs)))),
    ]
    return Page(
        title=str(attrs["title"]),
        subtitle=f"{attrs['circuit']} in {attrs['model']}",
        sections=[section for section in sections if section is not None],
        parts=[
            *(_part(step, pages[step["name"]]) for step in steps if step["found"]),
            Part("How it was run", made),
        ],
    )


def run_summary(results: xr.DataTree, page: Page) -> Group:
    """What each step found, as its `page` says it, and the figures that are measured beside the
    paper's, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    attrs = results.attrs
    lines = [Line(f"{attrs['circuit']} · {attrs['model']}", style="bold")]
    lines += [Line.assemble((f"{title}. ", "bold"), said) for title, said in _findings(page)]
    found = reading.group(results, "published")
    if found is None:
        return Group(*lines)
    table = bare_table()
    table.add_column("quantity")
    for number, model in (("published", "of"), ("measured", "on")):
        table.add_column(number, justify="right", no_wrap=True)
        table.add_column(model, no_wrap=True)
    table.add_column("same kind of model")
    for row in published_frame(found)[found["needs"].values == ""].to_dict("records"):
        published, measured = (
            value if isinstance(value, str) else words.number(value)
            for value in (row["published"], row["measured"])
        )
        met = f", within tolerance: {row['tolerance met']}" if row["tolerance met"] else ""
        models = row["paper's model"], row["this model"]
        kind = f"{row['same kind']}{met}"
        table.add_row(row["quantity"], published, models[0], measured, models[1], kind)
    table.caption = published_words(found)
    return Group(*lines, table)


def _steps(results: xr.DataTree) -> list[dict[str, Any]]:
    """What the run says of each step, with whether it was `found`, and else `why` not."""
    left_out = reading.structured(results.attrs.get("left_out", "{}"))
    return [
        {**step, "found": step["name"] not in left_out, "why": left_out.get(step["name"], "")}
        for step in reading.structured(results.attrs["steps"])
    ]


def _of_step(results: xr.DataTree, step: dict[str, Any]) -> xr.DataTree:
    """A step's results as the tree that its instrument gave."""
    return results[f"steps/{step['name']}"].copy()


def _part(step: dict[str, Any], page: Page) -> Part:
    models = words.listed([step["model"], *step["beside"]])
    lead = f"{step['shows']} Measured on {models}. {page.lead}"
    return Part(title=step["title"], sections=page.sections, lead=lead.strip())


_READ_SO = (
    "Brackets hold 95 % intervals. The parts below say what they are over, and what each number is "
    "to be compared with."
)
_FINDINGS = 2
"""Of a step, that the summary of the run repeats."""


def _points(results: xr.DataTree, pages: Mapping[str, Page]) -> list[tuple[str, str]]:
    """Each step in a few sentences: what its own page leads with and finds first, and nothing that
    a step before it said."""
    points, said = [], ""
    for step in _steps(results):
        if not step["found"]:
            points.append((f"Left out: {step['title']}", f"{step['why']}."))
            continue
        page = pages[step["name"]]
        led = page.lead.casefold() in said
        said += page.lead.casefold()
        new = [own for own in _findings(page) if own[1].casefold().removesuffix(".") not in said]
        told = [f"{name}: {text}" for name, text in new[:_FINDINGS]]
        sentences = [*([] if led else _unsaid(page.lead, told)), *told]
        said += "".join(text.casefold() for _, text in new[:_FINDINGS])
        points.append((step["title"], " ".join(sentences) or step["shows"]))
    return points


def _unsaid(lead: str, told: list[str]) -> list[str]:
    """The sentences of a lead that no finding begins with."""
    sentences = re.split(r"(?<=\.) ", lead)
    return [
        one for one in sentences if not any(own.startswith(one.removesuffix(".")) for own in told)
    ]


def _findings(page: Page) -> list[tuple[str, str]]:
    return [
        point
        for section in page.sections
        if section.title == FOUND
        for block in section.blocks
        if isinstance(block, Text)
        for point in block.points
    ]


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
    return {str(name): value for name, value in attrs.items() if name not in _SAID_ABOVE}
