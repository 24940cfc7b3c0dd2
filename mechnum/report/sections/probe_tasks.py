"""Sections about what is read of a task's numbers, and of words with an order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, words
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.page import Section
from mechnum.report.probe_frames import NAMES, layers_of, map_frames

_EACH_WORD = "none: these words themselves, each left out once"
_VARIABLES = {"answer": "the answer"}


def task_section(results: xr.DataTree) -> Section:
    """Accuracy at each position and layer, one view for each variable and probe."""
    found = results["task_probes"].to_dataset()
    views, said = {}, []
    for variable in found["variable"].values:
        for probe in found["probe"].values[::-1]:
            grid, hover = map_frames(found.sel(variable=variable, probe=probe), "position", "layer")
            views[f"{variable_name(variable)}, {NAMES[str(probe)]}"] = figures.accuracy_map(
                grid, hover, ("layer", "position")
            )
        chance = float(found["chance"].sel(variable=variable))
        said.append(f"{variable_name(variable)} {words.percent(chance)}")
    n = f"{int(results.attrs['n_drawn']):,} prompts, a fifth of the numbers held out"
    null = f"a guess: {words.listed(said)}"
    figure = Figure(
        title="What is read where",
        views=views,
        caption=Caption(
            text="Read at each position after each layer, in percent; blank where the state is the "
            "same in all prompts. Before its first token a number cannot be known, which these "
            "cells show.",
            estimand="share of prompts whose number is read exactly; that number was not trained "
            "on, and all numbers of its range compete",
            n=n,
            interval="95 % percentile bootstrap over numbers, in each cell's text",
            null=null,
        ),
        alt="Maps of accuracy by position and layer.",
        data=found[["accuracy", "low", "high", "absolute_error"]].to_dataframe().reset_index(),
        width=420,
        widest=760,
        switch="Read",
    )
    return Section("Positions and layers", [figure, _controls(found, n, null)])


def ordinal_sections(results: xr.DataTree) -> list[Section]:
    """For each kind of words how many are read by layer, and as what."""
    return [
        Section(words.sentence(name.replace("_", " ")), _ordinal_blocks(name, node.to_dataset()))
        for name, node in results["ordinals"].children.items()
    ]


def variable_name(variable: object) -> str:
    """A variable in words."""
    return _VARIABLES.get(str(variable), str(variable))


def _controls(found: xr.Dataset, n: str, null: str) -> Table:
    rows = []
    for variable in found["variable"].values:
        for probe in found["probe"].values:
            own = found.sel(variable=variable, probe=probe)
            for position in found["position"].values:
                at = own.sel(position=position)
                row = {
                    "read": variable_name(variable),
                    "probe": NAMES[str(probe)],
                    "position": str(position),
                    "best layer": float(at["accuracy"].max()),
                    "tokens so far": float(at["tokens"]),
                }
                permuted = own["permuted"].max() if position == "end" else np.nan
                rows.append({**row, "numbers dealt anew": float(permuted)})
    return Table(
        title="Beside the tokens alone",
        frame=pd.DataFrame(rows),
        caption=Caption(
            text="The best layer beside the same probe on indicators of all tokens up to the "
            "position, and at the end beside numbers that are dealt anew to each other. A sum is "
            "linear in indicators of its operands, so that a line reads it from the tokens; "
            "waves of a sum are not. The token of an operand that was held out was never seen, so "
            "that tokens say nothing of it.",
            estimand="accuracy, as in the figure",
            n=n,
            interval="of the states' accuracy in the figure; the controls have none",
            null=f"{null}; and the tokens so far, and numbers dealt anew",
        ),
    )


def _ordinal_blocks(name: str, found: xr.Dataset) -> list[Block]:
    n, what = found.sizes["word"], name.replace("_", " ")
    curves = {
        NAMES[str(probe)]: pd.DataFrame({"accuracy": found["n_right"].sel(probe=probe).values / n})
        for probe in found["probe"].values
    }
    frame = found[["n_right", "p"]].to_dataframe().reset_index()
    lines = Figure(
        title=f"{words.sentence(what)} by layer",
        views={"layers": figures.accuracy_panels({what: curves}, layers_of(found))},
        caption=Caption(
            text="Each word is read by a probe that was trained on all others, in ten sentences; "
            "it is right where most of them are. Nothing is chosen on the word that is left out. "
            "A probe that reads the neighbours of words has their order, but gives the one that it "
            f"was not shown to those that it was. {best_ordinals(found)}",
            estimand=f"share of the {n} words whose place is read",
            n=_words_read(found),
            interval=_EACH_WORD,
            null=f"1 of {n} by a blind guess; p in the table, of words dealt anew to the places, "
            "for each layer by itself: the best of several layers is a little too good",
        ),
        alt=f"Lines of the share of {what} that are read, by layer.",
        data=frame,
        width=480,
    )
    return [lines, _read_as(found)]


def _words_read(found: xr.Dataset) -> str:
    return f"{found.sizes['word']} words in ten sentences each"


def best_ordinals(found: xr.Dataset) -> str:
    """How many words each probe reads at its best layer, and how many as the one beside."""
    n, parts = found.sizes["word"], []
    for probe in found["probe"].values:
        right = found["n_right"].sel(probe=probe)
        at = int(right.argmax("layer"))
        where = words.after_layer(int(found["layer"].values[at]))
        p = float(found["p"].sel(probe=probe)[at])
        said = "" if p != p else f", p {words.q_value(p)}"
        read = found["read"].sel(probe=probe).isel(layer=at).values
        beside = int(((read >= 0) & (np.abs(read - np.arange(n)) == 1)).sum())
        parts.append(
            f"{NAMES[str(probe)]} {int(right[at])} of {n} {where} ({beside} as a neighbour{said})"
        )
    return f"At the best of {found.sizes['layer']} layers: {words.listed(parts)}."


def _read_as(found: xr.Dataset) -> Table:
    names = found["word"].values
    frame = pd.DataFrame({"word": names})
    for probe in found["probe"].values:
        right = found["n_right"].sel(probe=probe)
        layer = int(found["layer"].values[int(right.argmax("layer"))])
        read = found["read"].sel(probe=probe, layer=layer).values.astype(int)
        frame[f"{NAMES[str(probe)]}, {words.after_layer(layer)}"] = [
            "none" if own < 0 else str(names[own]) for own in read
        ]
    return Table(
        title="Read as",
        frame=frame,
        caption=Caption(
            text="“none” where two places are read equally often. A probe's best layer is the one "
            "at which it reads most words right.",
            estimand="what most sentences of a word are read as, by a probe trained on all others",
            n=_words_read(found),
            interval=_EACH_WORD,
            null=f"1 of {len(names)} right by a blind guess; the best of "
            f"{found.sizes['layer']} layers is a little too good",
        ),
    )
