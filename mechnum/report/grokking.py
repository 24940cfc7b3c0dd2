"""The page of a grokked net, and its summary on the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import xarray as xr

from mechnum.report import reading, words
from mechnum.report.blocks import Text
from mechnum.report.page import Page, Section
from mechnum.report.sections.grokking import (
    frequencies_section,
    logits_section,
    measures_section,
    neurons_section,
    phase_words,
    training_section,
)
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section
from mechnum.report.sections.published import published_section
from mechnum.report.summary import bare_table

if TYPE_CHECKING:
    from rich.console import Group


_ADDS = 0.99  # Share of right pairs from which a net counts as one that adds.


def grokking_page(results: xr.DataTree) -> Page:
    """The page of what `mechnum.circuits.instruments.grokking.measure_grokking` gave."""
    sections = [
        Section("What was found", [Text(points=_points(results)), Text([_READ_SO])]),
        training_section(results),
        frequencies_section(results),
        logits_section(results),
        neurons_section(results),
        measures_section(results),
        published_section(results),
        tokens_section(results),
        provenance_section(results),
    ]
    return Page(
        title=f"How {results.attrs.get('model', 'a net')} adds modulo {results.attrs['p']}",
        lead=_lead(results),
        sections=[section for section in sections if section is not None],
    )


def grokking_summary(results: xr.DataTree) -> Group:
    """Losses, keys and phases, for a Rich console."""
    from rich.console import Group
    from rich.text import Text as Line

    progress, table = results["progress"].to_dataset(), bare_table()
    table.add_column("")
    for part in progress["part"].values:
        table.add_column(f"{part} pairs", justify="right", no_wrap=True)
    for name, variable in (
        ("loss, nats", "loss"),
        ("restricted to the keys", "restricted_loss"),
        ("without the keys", "excluded_loss"),
    ):
        table.add_row(name, *(words.number(float(value)) for value in progress[variable].values))
    table.add_row("accuracy", *(words.percent(float(v)) for v in progress["accuracy"].values))
    title = Line(f"{results.attrs['model']} · {results.attrs['task']}", style="bold")
    return Group(title, table, *(Line(f"{name}: {text}") for name, text in _points(results)))


_READ_SO = (
    "Everything is measured on all pairs of one net, exactly: there is no sample, and so no "
    "interval."
)


def _lead(results: xr.DataTree) -> str:
    progress = results["progress"].to_dataset()
    p = int(results.attrs["p"])
    return (
        f"{words.percent(float(progress['accuracy'].sel(part='all')))} of all "
        f"{results.attrs['n_prompts']:,} pairs are right (by a guess {words.percent(1 / p)}), with "
        f"a mean cross-entropy of {words.number(float(progress['loss'].sel(part='all')))} nats "
        f"({words.number(math.log(p))}). "
        f"{words.percent(float(progress['key_share']))} of the logits' variance is waves of a + b "
        f"at {words.count_range([progress.sizes['key']], 'key frequencies')}."
    )


def _points(results: xr.DataTree) -> list[tuple[str, str]]:
    """What was found, in a sentence each."""
    progress = results["progress"].to_dataset()
    part = "test" if "test" in progress["part"] else "all"
    names = ("loss", "restricted_loss", "excluded_loss")
    whole, kept, without = (float(progress[name].sel(part=part)) for name in names)
    keys = words.listed([str(k) for k in progress["key"].values])
    source = {
        "neurons": "the frequencies of 5 % or more of the neurons",
        "embedding": "the strong frequencies of the embedding",
    }.get(str(progress.attrs["keys_from"]), "as given")
    relation = "lower" if kept < whole else "higher"
    points = [
        ("Key frequencies", f"{keys}: {source}."),
        (
            "The key part",
            f"alone it has a loss of {words.number(kept)} on {part} pairs, {relation} than the "
            f"whole net's {words.number(whole)}; without it the loss is {words.number(without)}.",
        ),
    ]
    accuracy = float(progress["accuracy"].sel(part="all"))
    if accuracy < _ADDS:
        points.insert(
            0,
            (
                "It does not add",
                f"{words.percent(accuracy)} of all pairs are right, so that what follows describes "
                "its waves, and no way of adding.",
            ),
        )
    if "explained_neurons" in progress:
        points.append(
            (
                "Neurons",
                f"one frequency explains 85 % or more of "
                f"{words.percent(float(progress['explained_neurons']))} of them, and "
                f"{words.percent(float(progress['mean_explained']))} in the mean.",
            )
        )
    over = reading.group(results, "over")
    if over is not None and "phases" in over.attrs:
        points.append(("Phases", phase_words(over)))
    return points + reading.left_out(results)
