"""Sections about numbers in texts: layers, controls, residues, transfer, fitted sines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.page import Section
from mechnum.report.probe_frames import (
    NAMES,
    WAVES,
    curve,
    layers_of,
    map_frames,
    probe_frame,
    strongest_sines,
)

_ESTIMAND = (
    "share of states whose number is read exactly; neither the number nor the template of a tested "
    "state was trained on, and all numbers of the range compete"
)
_INTERVAL = "95 % percentile bootstrap over numbers"


def curves_section(results: xr.DataTree) -> Section:
    """Every probe and lens by layer, beside what was published."""
    probes, frame = results["probes"].to_dataset(), probe_frame(results)
    curves = {str(name): own for name, own in frame.groupby("reader", sort=False)}
    waves = {NAMES[name]: curves[NAMES[name]] for name in WAVES if NAMES[name] in curves}
    rest = {name: own for name, own in curves.items() if name not in waves}
    groups = {"Probes with waves of the number": waves, "Others, and lenses": rest}
    published = float(results.attrs["published"])
    figure = Figure(
        title="Accuracy by layer",
        views={
            "layers": figures.accuracy_panels(
                {name: own for name, own in groups.items() if own},
                layers_of(probes),
                marks={f"published for param-sin: {words.percent(published)} and more": published},
            )
        },
        caption=Caption(
            text="Layer l is the state after block l, emb the embedding. Lenses answer another "
            "question: whether a state gives most to the number's own token (its last piece) "
            "among the tokens of all numbers; the embedding is that token. The best of several "
            "layers is a little too good.",
            estimand=_ESTIMAND,
            n=_n(probes),
            interval=f"{_INTERVAL}, whose states are read right or wrong together",
            null=f"{_chance(probes)} for probes{_lens_chance(results)}",
        ),
        alt="Lines of accuracy by layer for each probe and lens.",
        data=frame,
        width=560,
    )
    return Section("Layers", [figure])


def controls_section(results: xr.DataTree) -> Section | None:
    """What is read without what training, or the number itself, brings."""
    controls, spelling = (reading.group(results, name) for name in ("controls", "spelling"))
    if controls is None:
        return None
    groups: dict[str, dict[str, pd.DataFrame]] = {}
    layers, tables = layers_of(controls), []
    for probe in controls["probe"].values:
        own = {
            str(name): curve(controls, control=name, probe=probe)
            for name in controls["control"].values
        }
        if spelling is not None:
            at = spelling.sel(probe=probe).isel(reader=0)
            ends = {key: [float(at[key])] * len(layers) for key in ("accuracy", "low", "high")}
            own["tokens alone"] = pd.DataFrame({"layer": layers, **ends})
        groups[words.sentence(NAMES[str(probe)])] = own
        tables += [one.assign(probe=NAMES[str(probe)], control=name) for name, one in own.items()]
    figure = Figure(
        title="Controls",
        views={"controls": figures.accuracy_panels(groups, layers)},
        caption=Caption(
            text="States of the numbers; the same where only numbers are held out, and the probe "
            "has seen the templates; states of the same texts one token earlier; those of a net of "
            "the same shape without training; numbers that are dealt anew to each other; and no "
            "net at all: indicators of the number's token and of the three before it.",
            estimand=_ESTIMAND,
            n=_n(results["probes"].to_dataset()),
            interval=_INTERVAL,
            null=f"{_chance(controls)}, where numbers dealt anew must lie",
        ),
        alt="Lines of accuracy by layer for states and for each control.",
        data=pd.concat(tables, ignore_index=True),
        width=560,
    )
    return Section("What it means", [figure])


def residues_section(results: xr.DataTree) -> Section | None:
    """n mod m by layer, as accuracy above chance."""
    residues = reading.group(results, "residues")
    if residues is None:
        return None
    curves, tables = {}, []
    for modulus in residues["modulus"].values:
        own = curve(residues, modulus=int(modulus))
        chance = own["chance"]
        above = own.assign(
            **{key: (own[key] - chance) / (1 - chance) for key in ("accuracy", "low", "high")}
        )
        curves[f"n mod {modulus}"] = above
        tables.append(own.assign(modulus=int(modulus)))
    figure = Figure(
        title="Residues",
        views={
            "residues": figures.accuracy_panels(
                {"Shrunk linear discriminant": curves}, layers_of(residues), "above chance"
            )
        },
        caption=Caption(
            text="n mod 2, 5 and 10 are in the last digit; those of 3, 7 and 9 take all of them. "
            "The table holds the accuracies themselves.",
            estimand="(accuracy − chance) / (1 − chance) of the residue on held-out numbers and "
            "templates",
            n=_n(residues),
            interval=_INTERVAL,
            null="0: a guess",
        ),
        alt="Lines of accuracy above chance by layer for each modulus.",
        data=pd.concat(tables, ignore_index=True),
        width=520,
    )
    return Section("Residues", [figure])


def transfer_section(results: xr.DataTree) -> Section | None:
    """Probes on states that they were not trained on."""
    blocks: list[Block] = []
    layer = words.after_layer(int(results.attrs["layer"]))
    maps = {
        "transfer/layers": ("From layer to layer", ""),
        "transfer/contexts": ("From context to context", f" States {layer}."),
        "transfer/kinds": (
            "Arithmetic and natural texts",
            f" States {layer}; as many rows of natural texts as there are of arithmetic.",
        ),
    }
    for path, (title, more) in maps.items():
        found = reading.group(results, path)
        if found is not None:
            blocks.append(_map(found, title, more))
    blocks += _left_out(results)
    return Section("Transfer", blocks) if blocks else None


def sines_section(results: xr.DataTree) -> Section | None:
    """The frequencies, phases and amplitudes that param-sin found."""
    sines = reading.group(results, "sines")
    if sines is None:
        return None
    curves = results["probes"].to_dataset()
    accuracy = curves["accuracy"].sel(probe="param-sin")
    best = int(accuracy["layer"].values[int(accuracy.argmax("layer"))])
    views = {
        words.sentence(words.after_layer(layer)): figures.sine_stems(strongest_sines(sines, layer))
        for layer in sorted(layers_of(sines), key=lambda layer: layer != best)
    }
    drawn = [strongest_sines(sines, layer).assign(layer=layer) for layer in layers_of(sines)]
    caption = Caption(
        text="Each latent unit of the probe has a sine amplitude·sin(phase + 2π·frequency·n), all "
        "three of them learnt; the 40 largest are drawn. A wave needs two units, and units that "
        "the penalty prunes have amplitude 0.",
        estimand="parameters of the probe at its best check on held-out training numbers",
        n=f"{sines.sizes['sine']} units, {_n(curves)}",
        interval="none: the parameters of one trained probe for each state",
        null="frequencies start evenly between one wave over all numbers and ½",
    )
    table = strongest_sines(sines, best, 20).reset_index(drop=True)
    return Section(
        "Fitted sines",
        [
            Figure(
                title="Fitted sines",
                views=views,
                caption=caption,
                alt="Stems of amplitude by period.",
                data=pd.concat(drawn, ignore_index=True),
                width=480,
                switch="State",
            ),
            Table(
                title=f"The largest sines {words.after_layer(best)}",
                frame=table,
                caption=replace(
                    caption,
                    text="Periods in numbers, frequencies in waves for each 1, phases in radians, "
                    "where param-sin reads most.",
                ),
            ),
        ],
    )  # fmt: skip


def _map(found: xr.Dataset, title: str, more: str) -> Figure:
    grid, hover = map_frames(found, "trained_on", "tested_on")
    sizes = found["train_rows"].values, found["test_rows"].values
    said = [f"{words.count_range(own.tolist(), 'states')}" for own in sizes]
    return Figure(
        title=title,
        views={"map": figures.accuracy_map(grid, hover, ("tested on", "trained on"))},
        caption=Caption(
            text="The Fourier regression, trained on a row's states and tested on a column's as "
            f"they are, in percent. The same numbers and templates are held out of all.{more}",
            estimand=_ESTIMAND,
            n=f"{said[0]} to train on and {said[1]} to test on, for each",
            interval=f"{_INTERVAL}, in each cell's text",
            null=_chance(found),
        ),
        alt=f"Map of accuracy. {title}.",
        data=found[["accuracy", "low", "high", "absolute_error"]].to_dataframe().reset_index(),
        width=420,
        widest=760,
    )


def _left_out(results: xr.DataTree) -> list[Table]:
    """Probes of all tables but one."""
    kinds: dict[str, tuple[str, Callable[[object], str]]] = {
        "transfer/other_layers": (
            "Trained on all other layers",
            lambda label: words.after_layer(int(str(label))),
        ),
        "transfer/other_contexts": ("Trained on all other contexts", str),
    }
    found = []
    for path, (title, name) in kinds.items():
        dataset = reading.group(results, path)
        if dataset is None:
            continue
        columns = ["accuracy", "low", "high", "absolute_error", "test_rows"]
        frame = pd.DataFrame({column: dataset[column].values for column in columns})
        frame.insert(0, "tested on", [name(label) for label in dataset["tested_on"].values])
        found.append(
            Table(
                title=title,
                frame=frame,
                caption=Caption(
                    text="One Fourier regression on the states of all others, tested on the one "
                    "that it has not seen.",
                    estimand=_ESTIMAND,
                    n=f"{words.count_range(frame['test_rows'], 'states')} of "
                    f"{words.count_range(dataset['test_values'].values.tolist(), 'numbers')} to "
                    "test on, for each",
                    interval=_INTERVAL,
                    null=_chance(dataset),
                ),
            )
        )
    return found


def _n(curves: xr.Dataset) -> str:
    sizes = {
        name: words.count_range(curves[name].values.tolist(), what)
        for name, what in (
            ("train_rows", "states"), ("test_rows", "states"), ("test_values", "numbers")
        )
    }  # fmt: skip
    return (
        f"{sizes['train_rows']} to train on; {sizes['test_rows']} of {sizes['test_values']} to "
        "test on"
    )


def _chance(curves: xr.Dataset) -> str:
    return f"a guess: {words.percent(float(curves['chance'].max()))}"


def _lens_chance(results: xr.DataTree) -> str:
    lenses = reading.group(results, "lenses")
    if lenses is None:
        return ""
    return f"; the commonest token for lenses: {words.percent(float(lenses['chance']))}"
