"""The neuron-level attribution report, its tables as files, and its summary on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import xarray as xr

from mechnum.report import findings, reading, words
from mechnum.report.blocks import Text
from mechnum.report.exports import write_csv, write_parquet
from mechnum.report.largest import head_lines
from mechnum.report.neuron_frames import STATE_NAMES, kind_frame, neuron_frame, verdict_frame
from mechnum.report.page import Page, Section
from mechnum.report.sections.heuristics import heuristics_section, verdict_section
from mechnum.report.sections.modular import modular_section
from mechnum.report.sections.neurons import (
    accuracy_section,
    fits_section,
    layers_section,
    table_section,
)
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group

_NEARLY = 0.9
# How parts that may be left out are called.
_PARTS = {
    "periods": "periods read and written",
    "adjudication": "waves or heuristics",
    "kept": "accuracy of the best neurons",
    "replaced": "accuracy of their fits",
    "mlps": "MLPs and their neurons",
    "knock_out": "knock-outs by heuristic",
    "by_prompt": "knock-outs by prompt",
    "frequencies": "single frequencies",
    "phases": "phases",
}


def neurons_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.circuits.instruments.neurons.measure_neurons` gave."""
    attrs = results.attrs
    sections = [
        _found(results),
        table_section(results),
        layers_section(results),
        accuracy_section(results),
        fits_section(results),
        modular_section(results),
        heuristics_section(results),
        verdict_section(results),
        tokens_section(results),
        provenance_section(results),
    ]
    task = str(attrs.get("task", "its task")).replace("_", " ")
    return Page(
        title=f"Neurons of {attrs.get('model', 'the model')}, {task}",
        lead=findings.accuracy_sentence(results),
        sections=[section for section in sections if section is not None],
    )


def write_tables(results: xr.DataTree, folder: str | Path) -> tuple[Path, Path]:
    """Write the table of described neurons as `neurons.csv` and `neurons.parquet`."""
    frame, folder = neuron_frame(results), Path(folder)
    return (
        write_csv(frame, folder / "neurons.csv"),
        write_parquet(frame, folder / "neurons.parquet"),
    )


def neurons_summary(results: xr.DataTree, top: int = 10) -> Group:
    """The first neurons with what they compute, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    attrs, table = reading.attributes(results), bare_table()
    for name in ("neuron", "total effect", "direct", "T_in", "T_out", "R²"):
        table.add_column(name, justify="left" if name == "neuron" else "right", no_wrap=True)
    table.add_column("fit and heuristics")
    frame = neuron_frame(results)
    for row in frame.head(top).to_dict("records"):
        table.add_row(
            str(row["node"]).removeprefix("neuron "),
            words.interval(row["total"], row["total_low"], row["total_high"]),
            words.number(row["direct"], sign=True),
            *(_period(row[name]) for name in ("t_in", "t_out")),
            words.number(row["r2"], 2),
            row["formula"] + (f"\n{row['heuristics']}" if row["heuristics"] else ""),
        )
    table.caption = (
        f"Mean change of {words.metric(attrs)} over {attrs['n_held_out']} pairs, other ones than "
        f"those that chose the neurons.\nThe first {min(top, len(frame))} of {len(frame)} that "
        "are described."
    )
    lines = [Line(f"{name}: {text}") for name, text in _points(results)]
    return Group(*head_lines(results), table, *lines)


def _period(value: float) -> str:
    return "" if value != value else f"{value:.4g}"


def _found(results: xr.DataTree) -> Section:
    note = (
        "y is the right answer to a pair's clean prompt, y\N{PRIME} that to its corrupt prompt. "
        "A neuron's waves and its heuristics are two descriptions of the same activations."
    )
    points = _points(results)
    return Section("What was found", [Text(points=points), Text([note])])


def _points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What was found, in a sentence each."""
    table = results["neurons"].to_dataset()
    sure = int((table["total_q"] < words.SURE).sum())
    text = (
        f"{sure:,} of the {table.sizes['node']:,} described neurons have a total effect at "
        f"{words.FDR}{_largest(table)}.{_few(int(results.attrs['n_held_out']))}"
    )
    points = [("Effects", text)]
    r2 = table["r2"].dropna("node")
    if len(r2):
        good = float((r2 > 0.5).mean())
        text = f"the fit explains half or more, held out, of {words.percent(good)} of them"
        share = float(table["sum_share"].mean())
        if share == share:
            text += f"; in the mean {words.percent(share)} of its waves' power is of a+b alone"
        points.append(("Waves and heuristics", f"{text}; {_heuristics(results)}."))
    else:
        points.append(("Heuristics", f"{_heuristics(results)}."))
    if (periods := reading.group(results, "periods")) is not None:
        points += _agreement(periods)
    if (kept := reading.group(results, "kept")) is not None:
        points.append(("Kept", _kept(kept)))
    return points + reading.left_out(results, _PARTS)


def _heuristics(results: xr.DataTree) -> str:
    """How many neurons match a heuristic, and whether that tells more of them than waves do."""
    some = kind_frame(results).set_index("kind").loc["any"]
    attrs = results["heuristics"].attrs
    text = (
        f"{words.percent(float(some['share']))} match at least one heuristic, at q ≤ "
        f"{attrs['alpha']:g} against chance"
    )
    if (judged := reading.group(results, "adjudication")) is None:
        return text
    state = str(judged["of"].values[-1])
    verdicts = verdict_frame(results, state)["verdict"].value_counts()
    waves, heuristics = (int(verdicts.get(name, 0)) for name in ("waves", "heuristics"))
    return (
        f"{text}. The held-out {STATE_NAMES[state]} is told better by waves in {waves:,} of "
        f"{int(verdicts.sum()):,} neurons and by heuristics in {heuristics:,}, the others are "
        "undecided"
    )


def _largest(table: xr.Dataset) -> str:
    """The largest total effect with its interval; nothing where none is known."""
    size = abs(table["total"]).fillna(-1)
    best = table.isel(node=int(size.argmax("node")))
    mean, low, high = (float(best[name]) for name in ("total", "total_low", "total_high"))
    if mean != mean:
        return ""
    return f", the largest {best['node'].item()} with {words.interval(mean, low, high)}"


def _few(n_pairs: int) -> str:
    """What so few pairs cannot show."""
    least = 2.0 ** (1 - n_pairs)
    if least <= words.SURE:
        return ""
    return f" With {n_pairs} held-out pairs no p is below {words.number(least)}: give more pairs."


def _agreement(periods: xr.Dataset) -> list[tuple[str, str]]:
    share, null, p = (float(periods[f"agreement{end}"]) for end in ("", "_null", "_p"))
    # One period alone is read and written by all.
    if share != share or periods.sizes["period"] < 2:
        return []
    n = int(periods["count"].sum())
    text = (
        f"of {n:,} that read waves of a+b, {words.percent(share)} write the period that they read"
    )
    return [("Periods", f"{text} (by chance {words.percent(null)}, p {words.q_value(p)}).")]


def _kept(kept: xr.Dataset) -> str:
    """How few of the best neurons, from which number on, do nine tenths of what the model does."""
    given = kept["accuracy"].sel(order="given")
    whole, none = float(kept["model_accuracy"]), float(kept["ablated_accuracy"])
    said = (
        f"the model answers {words.percent(whole)} of {kept.sizes['prompt']} prompts, and "
        f"{words.percent(none)} with every neuron at its mean"
    )
    if none >= _NEARLY * whole:
        return f"{said}, so that neurons at the last position decide little."
    # From there on, not only there; all neurons are the model itself.
    short = given["k"].values[given.values < _NEARLY * whole]
    enough = given["k"].values[given["k"].values > short.max(initial=0)]
    some = enough[enough < int(kept.attrs["n_neurons"])]
    if not len(some):
        return f"{said}; no part of the neurons that was tried comes within a tenth of the model."
    k = int(some.min())
    return (
        f"{said}; with the best {k:,} neurons alone it is {words.percent(float(given.sel(k=k)))}."
    )
