"""The page of a clock: the circuit that adds, and how sure each part of it is."""

from __future__ import annotations

import xarray as xr

from mechnum.report import findings, words
from mechnum.report.blocks import Text
from mechnum.report.clock_frames import heads_frame, mlps_frame
from mechnum.report.page import Page, Section
from mechnum.report.sections.circuit import faithfulness_section
from mechnum.report.sections.clock import (
    curves_section,
    heads_section,
    mlps_section,
    picture_section,
    sizes_words,
    stage_words,
    validation_rows,
)
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.published import published_section


def clock_page(results: xr.DataTree) -> Page:
    """The page of `mechnum.trace_clock`."""
    attrs = results.attrs
    sections = [
        _found(results),
        picture_section(results),
        heads_section(results),
        curves_section(results),
        mlps_section(results),
        faithfulness_section(results),
        published_section(results),
        tokens_section(results),
        provenance_section(results),
    ]
    task = str(attrs.get("task", "its task")).replace("_", " ").replace(":", " ")
    return Page(
        title=f"The clock of {attrs.get('model', 'the model')} for {task}",
        lead=findings.accuracy_sentence(results),
        sections=[section for section in sections if section is not None],
    )


_DO = {
    "a,b": "move a and b",
    "a+b": "write the sum out",
    "mixed": "do both",
    "unclear": "do neither clearly",
}


def clock_points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What was found, as names and sentences."""
    heads, mlps = heads_frame(results), mlps_frame(results)
    sure = int((heads["sure"] >= words.CONFIDENT).sum())
    rows = {what: of_all for what, of_all, _ in validation_rows(results)}
    n_mixed = int((heads["class"] == "mixed").sum())
    as_listed = next(what for what in rows if what.startswith(f"by class, {n_mixed} mixed"))
    shares = [f"{text} ({what})" for what, text in rows.items() if not what.startswith("by class")]
    classes = [
        f"{len(own)} {_DO.get(str(name), str(name))} "
        f"({words.listed([str(node).removeprefix('head ') for node in own['node']])})"
        for name, own in heads.groupby("class", sort=False)
    ]
    points = [
        (
            "Classes of heads",
            f"{words.listed(classes)}. {sure} of {len(heads)} keep their class in at least "
            f"{words.percent(words.CONFIDENT)} of the resamples.",
        ),
        (
            "Patched together",
            f"passing on what their classes claim, heads have {rows[as_listed]} of all heads' "
            f"effect; beside it {words.listed(shares)}.",
        ),
    ]
    kinds = ["heads"] if mlps is None else ["heads", "mlps"]
    points.append(("Share of the effect", " ".join(sizes_words(results, kind) for kind in kinds)))
    if mlps is not None:
        points.append(("MLPs", stage_words(mlps)))
    return points


def _found(results: xr.DataTree) -> Section:
    note = (
        "y is the right answer to a pair's clean prompt, y\N{PRIME} that to its corrupt prompt. "
        "Numbers are means over pairs with 95 % intervals. Nodes and edges were chosen on other "
        "pairs than those that measure them."
    )
    return Section("What was found", [Text(points=clock_points(results)), Text([note])])
