"""The report on steering, and its summary on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from mechnum.report import reading, words
from mechnum.report.blocks import Text
from mechnum.report.page import Page, Section
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.published import published_section
from mechnum.report.sections.steering import (
    ORACLE,
    best_section,
    maps_section,
    probes_section,
)
from mechnum.report.steering_frames import best_frame, reading_frame
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group


_READ_SO = (
    "Brackets are 95 % intervals: of shares over questions, of random directions over draws. p: "
    "how likely random directions repair as many or more."
)


def steering_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.circuits.instruments.steer.measure_steering` gave."""
    attrs = results.attrs
    points = _points(results) + reading.left_out(results)
    sections = [
        Section("What was found", [Text([ORACLE], points), Text([_READ_SO])]),
        best_section(results),
        maps_section(results),
        probes_section(results),
        published_section(results),
        tokens_section(results),
        provenance_section(results),
    ]
    return Page(
        title=f"Steering {attrs.get('model', 'the model')}, {attrs.get('task', 'its task')}",
        lead=_lead(results),
        sections=[section for section in sections if section is not None],
    )


def steering_summary(results: xr.DataTree) -> Group:
    """The best layer and strength of each kind of vector, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    table = bare_table()
    for name in ("steered towards", "layer", "α", "repaired", "random", "p", "broken"):
        table.add_column(name, justify="left" if name == "steered towards" else "right")
    for row in best_frame(results).to_dict("records"):
        shown = [
            words.interval(row[name], row[f"{name}_low"], row[f"{name}_high"], sign=False)
            for name in ("repaired", "random", "broken")
        ]
        table.add_row(
            row["vector"],
            str(row["layer"]),
            f"{row['alpha']:g}",
            *shown[:2],
            words.q_value(row["p"]),
            shown[2],
        )
    table.caption = (
        "Layer and strength are chosen on half of the questions and scored on the other half, with "
        "95 % intervals.\nVectors use the right answer, except for “decoded”: this is no way to "
        "repair a model."
    )
    title = f"{results.attrs['model']} · {results.attrs['task']}"
    return Group(Line(title, style="bold"), Line(_lead(results)), table)


def _lead(results: xr.DataTree) -> str:
    found = results["steering"].to_dataset()
    right, n = int(found["right_before"].sum()), found.sizes["prompt"]
    best = best_frame(results).set_index("vector").loc["probe"]
    return (
        f"The model answers {right:,} of {n:,} test prompts correctly "
        f"({words.percent(right / n)}); {int(results.attrs['n_train']):,} others trained the "
        f"probes. Their vectors of the right answer repair {words.percent(best['repaired'])} of "
        f"the wrong ones at best, random directions {words.percent(best['random'])}."
    )


def _points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What each kind of vector does at its best, in a sentence."""
    points = []
    for row in best_frame(results).to_dict("records"):
        place = f"{words.after_layer(int(row['layer']))}, α = {row['alpha']:g}"
        repaired, random, broken = (
            words.percent_interval(*(row[f"{name}{end}"] for end in ("", "_low", "_high")))
            for name in ("repaired", "random", "broken")
        )
        text = (
            f"{place}: {repaired} of the wrong answers repaired (random directions {random}, p "
            f"{words.q_value(row['p'])})"
        )
        text += f", {broken} of the right ones broken." if row["broken"] == row["broken"] else "."
        points.append((words.sentence(str(row["vector"])), text))
    frame = reading_frame(results)
    best = frame["wrong answers"].idxmax()
    share = words.percent(float(frame["wrong answers"][best]))
    points.append(
        (
            "Decodable",
            f"the probe reads the right answer in {share} of the wrong prompts at best, "
            f"{words.after_layer(int(frame['layer'][best]))}.",
        )
    )
    return points
