"""The pages and terminal summaries of the Fourier lens and of filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from mechnum.report import findings, reading, words
from mechnum.report.blocks import Text
from mechnum.report.page import Page, Section
from mechnum.report.sections.filters import (
    ablation_frame,
    ablation_section,
    errors_section,
)
from mechnum.report.sections.lens import (
    enough_words,
    lens_sections,
    rebuilt_section,
    strongest_words,
)
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.published import published_section
from mechnum.report.sections.signature import signature_section
from mechnum.report.summary import bare_table
from mechnum.report.wave_frames import (
    MODULES,
    filter_frame,
    lens_frame,
    outlier_frame,
    rebuilt_frame,
    state_name,
)

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text as RichText


def lens_page(results: xr.DataTree) -> Page:
    """The page of `mechnum.fourier.lens_results`."""
    return _page(
        results,
        "Waves over numbers in {model}, for {task}",
        _lens_found(results),
        *lens_sections(results),
        rebuilt_section(results),
        signature_section(results),
    )


def filter_page(results: xr.DataTree) -> Page:
    """The page of `mechnum.fourier.filter_results`."""
    return _page(
        results,
        "What {model} does without waves over numbers, for {task}",
        _filters_found(results),
        ablation_section(results),
        errors_section(results),
        published_section(results),
        signature_section(results),
    )


def lens_summary(results: xr.DataTree, top: int = 10) -> Group:
    """The frequencies that stand out most in the lens, for a Rich console."""
    from rich.console import Group
    from rich.text import Text

    dataset = results["lens"].to_dataset()
    found = outlier_frame(lens_frame(dataset))
    table = bare_table()
    table.add_column("state", no_wrap=True)
    for name in ("period", "frequency", "share of power", "amplitude", "p"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.head(top).to_dict("records"):
        table.add_row(
            state_name(row["stage"], int(row["layer"])),
            words.number(row["period"], 4),
            str(int(row["frequency"])),
            words.percent(row["share"]),
            words.number(row["amplitude"]),
            words.q_value(row["p"]),
        )
    table.caption = (
        f"The {min(top, len(found)):,} largest of {len(found):,} frequencies that stand out in "
        "their state, seen through the final norm\nwith the state's own statistics. p: how often "
        f"number tokens in random order reach it ({dataset.attrs['permutations']} orders)."
    )
    lines = [Text(line) for line in _rebuilt_sentences(results)]
    return Group(*_head(results), table, *lines)


def filter_summary(results: xr.DataTree) -> Group:
    """The ablation table, for a Rich console."""
    from rich.console import Group

    frame = ablation_frame(
        filter_frame(results["table"].to_dataset()), int(results.attrs["d_model"])
    )
    table = bare_table()
    for name in frame:
        side = "left" if name in ("removed", "from") else "right"
        table.add_column(str(name), justify=side, no_wrap=True)
    for row in frame.itertuples(index=False):
        table.add_row(*map(str, row))
    table.caption = (
        f"Means over {int(results.attrs['n_prompts']):,} prompts [95 % interval]; loss in nats. "
        "Random: as many directions drawn at random."
    )
    return Group(*_head(results), table)


def _page(results: xr.DataTree, title: str, *sections: Section | None) -> Page:
    task = str(results.attrs["task"]).replace("_", " ").replace(":", " ")
    ends = (tokens_section(results), provenance_section(results))
    return Page(
        title=title.format(model=results.attrs["model"], task=task),
        lead=findings.accuracy_sentence(results),
        sections=[section for section in (*sections, *ends) if section is not None],
    )


def _lens_found(results: xr.DataTree) -> Section:
    frame = lens_frame(results["lens"].to_dataset())
    points = []
    for stage, what in (("resid", "Last residual"), ("attn", "Attention"), ("mlp", "MLPs")):
        layers = sorted(set(frame.loc[frame["stage"] == stage, "layer"]))
        if not layers:
            continue
        if stage == "resid":
            named = strongest_words(frame, stage, layers[-1])
            text = f"Stand out, with their share of power: {named}." if named else ""
        else:
            parts = [(layer, strongest_words(frame, stage, layer, 3)) for layer in layers]
            seen = [f"layer {layer}: {named}" for layer, named in parts if named]
            text = f"{'; '.join(seen[:6])}." if seen else ""
            text += f" {len(seen) - 6} more layers are in the table." if len(seen) > 6 else ""
        points.append((what, text or "No frequency stands out."))
    points += [("Answer", sentence) for sentence in _rebuilt_sentences(results)]
    note = (
        f"T is a period in numbers. {_chance_words(results['lens'].to_dataset())}A wave that is "
        "there need not be used: filters (mechnum filter) show what the answer loses without it."
    )
    return Section("What was found", [Text(points=points), Text([note])])


def _chance_words(lens: xr.Dataset) -> str:
    """What frequencies that stand out exceed; nothing where no number tokens were shuffled."""
    if "chance" not in lens:
        return ""
    return (
        "Those that stand out exceed number tokens in random order, whose strongest frequency has "
        f"{words.percent(float(lens['chance'].median()))} in the median. "
    )


def _rebuilt_sentences(results: xr.DataTree) -> list[str]:
    rebuilt = reading.group(results, "rebuilt")
    if rebuilt is None:
        return []
    sentence = enough_words(rebuilt_frame(rebuilt, reading.seed(results)), rebuilt)
    return [sentence] if sentence else []


def _filters_found(results: xr.DataTree) -> Section:
    frame = filter_frame(results["table"].to_dataset())
    d_model = int(results.attrs["d_model"])
    points = [
        (words.sentence(str(band)), _band_words(rows, d_model))
        for band, rows in frame.groupby("band", sort=False)
        if band != "nothing"
    ]
    note = (
        "Intervals are over prompts. Rows are those of the Fourier basis over the numbers, two for "
        "each frequency: sine and cosine of frequency k are rows 2k − 1 and 2k. In a small net a "
        "wide band leaves few directions, so that its effect says little: compare with the random "
        "directions."
    )
    return Section("What was found", [Text(points=points), Text([note])])


def _band_words(rows: pd.DataFrame, d_model: int) -> str:
    """What is left without one band, for each set of modules."""
    rank = int(rows["rank"].iloc[0])
    if rank >= d_model:
        return (
            f"All {d_model} directions go, so that the modules write nothing: this band has more "
            "waves than the residual stream has directions."
        )
    parts = []
    for modules, own in rows.groupby("modules", sort=False):
        row, control = (own[own["projection"] == name].iloc[0] for name in ("filter", "random"))
        cells, ends = (
            [float(one[name]) for name in ("accuracy", "accuracy_low", "accuracy_high")]
            for one in (row, control)
        )
        text = f"accuracy {words.interval(*cells, sign=False)} without them in "
        text += f"{MODULES.get(str(modules), str(modules))}"
        text += f" ({words.interval(*ends, sign=False)} without as many random directions)"
        if row["multiple of 10_n"]:
            text += (
                f", {words.percent(row['multiple of 10'])} of {int(row['multiple of 10_n']):,} "
                "numeric errors are multiples of 10"
            )
        parts.append(text)
    return f"{rank} of {d_model} directions. {words.sentence('; '.join(parts))}."


def _head(results: xr.DataTree) -> list[RichText]:
    from rich.text import Text

    title = " · ".join(str(results.attrs[key]) for key in ("model", "task"))
    return [Text(title, style="bold"), Text(findings.accuracy_sentence(results))]
