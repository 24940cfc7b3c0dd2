"""The report on probes: numbers in texts, a task's numbers, or ordinals; and its summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from mechnum.report import findings, probe_frames, reading, words
from mechnum.report.blocks import Text
from mechnum.report.page import Page, Section
from mechnum.report.probe_frames import NAMES
from mechnum.report.sections.probe_tasks import (
    best_ordinals,
    ordinal_sections,
    task_section,
    variable_name,
)
from mechnum.report.sections.probes import (
    controls_section,
    curves_section,
    residues_section,
    sines_section,
    transfer_section,
)
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.published import published_section
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group


def probe_page(results: xr.DataTree) -> Page:
    """The page of what `probe`, `probe_task` or `probe_ordinals` of `mechnum.circuits.instruments`
    measured."""
    model = results.attrs.get("model", "a model")
    found = [Text(points=_points(results))]
    if (read_so := _read_so(results)) is not None:
        found.append(Text([read_so]))
    sections: list[Section | None] = [Section("What was found", found)]
    if "probes" in results.children:
        title, makers = (
            f"Numbers in texts, as read from {model}",
            (
                curves_section,
                controls_section,
                residues_section,
                sines_section,
                transfer_section,
            ),
        )
        sections += [make(results) for make in makers]
    elif "task_probes" in results.children:
        task = str(results.attrs["task"]).replace("_", " ")
        title = f"Numbers of {task}, as read from {model}"
        sections += [task_section(results), tokens_section(results)]
    else:
        title = f"Words with an order, as read from {model}"
        sections += ordinal_sections(results)
    sections += [published_section(results), provenance_section(results)]
    return Page(
        title=title,
        lead=_lead(results),
        sections=[section for section in sections if section is not None],
    )


def probe_summary(results: xr.DataTree) -> Group:
    """Accuracies by layer and what they mean, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    lines = [Line(str(results.attrs.get("model", "")), style="bold")]
    lines += [Line(f"{name}: {text}") for name, text in _points(results)]
    if "probes" not in results.children:
        return Group(*lines)
    frame, table = probe_frames.probe_frame(results), bare_table()
    grid = frame.pivot(index="layer", columns="reader", values="accuracy")
    table.add_column("layer")
    for name in dict.fromkeys(frame["reader"]):
        table.add_column(name, justify="right")
    for layer in grid.index:
        cells = [
            words.percent(float(grid.loc[layer, name])) for name in dict.fromkeys(frame["reader"])
        ]
        table.add_row("embedding" if layer == -1 else str(layer), *cells)
    table.caption = (
        "Share of states whose number is read, numbers and templates held out; of lenses, whose "
        "token is."
    )
    return Group(*lines, table)


def _points(results: xr.DataTree) -> list[tuple[str, str]]:
    if "probes" in results.children:
        return probe_frames.points(results)
    if "task_probes" in results.children:
        return _task_points(results)
    found = [
        (words.sentence(name.replace("_", " ")), best_ordinals(node.to_dataset()))
        for name, node in results["ordinals"].children.items()
    ]
    return found + reading.left_out(results)


def _task_points(results: xr.DataTree) -> list[tuple[str, str]]:
    """Where each variable is read first, and what the tokens alone tell at the end."""
    found, points = results["task_probes"].to_dataset(), []
    if sentence := findings.accuracy_sentence(results):
        points.append(("Accuracy", sentence))
    for variable in found["variable"].values:
        own = found.sel(variable=variable, probe="fourier")
        best = own["accuracy"].max("layer")
        texts = [
            f"{words.percent(float(best.sel(position=position)))} at {position}"
            for position in found["position"].values
            if position != "end" and np.isfinite(float(best.sel(position=position)))
        ]
        end = own["accuracy"].sel(position="end")
        layer = int(end["layer"].values[int(end.fillna(-1).argmax("layer"))])
        tokens = float(own["tokens"].sel(position="end"))
        ends = own[["accuracy", "low", "high"]].sel(position="end", layer=layer)
        shown = words.percent_interval(*(float(ends[name]) for name in ends))
        text = (
            f"the {NAMES['fourier']} reads {words.listed([*texts, f'{shown} at the end'])}, each "
            f"at its best layer; at the end that is {words.after_layer(layer)}, where the tokens "
            f"alone give {words.percent(tokens)} to the same probe. A guess gives "
            f"{words.percent(float(own['chance']))}."
        )
        name = variable_name(variable)
        points.append((words.sentence(name) if " " in name else f"The number {name}", text))
    return points + reading.left_out(results)


def _read_so(results: xr.DataTree) -> str | None:
    """What the intervals are, and what a guess reads; nothing of words, whose points say so."""
    if "probes" in results.children:
        guess = words.percent(float(results["probes"].to_dataset()["chance"].max()))
        return (
            f"A guess reads {guess} of the numbers. In parentheses are 95 % intervals over numbers."
        )
    if "task_probes" in results.children:
        return "In square brackets are 95 % intervals over numbers."
    return None


def _lead(results: xr.DataTree) -> str:
    if "probes" not in results.children:
        # What is said of the model is a sentence of its own.
        return " ".join(
            text if name == "Accuracy" else f"{name}: {text}" for name, text in _points(results)[:2]
        )
    return words.sentence(probe_frames.what_it_means(results) or "")
