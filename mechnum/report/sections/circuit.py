"""Sections about a circuit: its picture, and how much of the model it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Facts, Figure, Files, Table
from mechnum.report.circuit_layout import layout
from mechnum.report.intervals import INTERVAL_WORDS
from mechnum.report.page import Section

_MOST_IN_TABLE = 5_000


def circuit_frames(results: xr.DataTree) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Nodes and edges of `/circuit`, as `circuit_picture` takes them."""
    circuit = results["circuit"].to_dataset()
    nodes, edges = (
        pd.DataFrame({name: circuit[name].values for name in names})
        for names in (
            ("name", "kind", "layer", "index"),
            ("sender", "receiver", "reader", "effect", "low", "high", "link"),
        )
    )
    # netCDF has no booleans.
    return nodes, edges.assign(link=edges["link"].astype(bool))


def circuit_section(results: xr.DataTree) -> Section | None:
    """The picture of the circuit and the table of its edges."""
    if reading.group(results, "circuit") is None:
        return None
    nodes, edges = circuit_frames(results)
    attrs = reading.attributes(results)
    unit = words.unit(attrs)
    real = figures.strongest(edges[~edges["link"]], len(edges))
    text = (
        "Each circle is a head, each square an MLP, the embedding or the logits. Edges are as wide "
        "as their effect is large; negative ones are blue and dashed. At a head, queries end on "
        "the left, keys in the middle, values on the right. Hover for the effect and its interval."
    )
    if (nodes["kind"] == "kv").any():
        text += " Diamonds are keys and values that heads share; dotted lines lead to these heads."
    if len(real) > figures.MOST_EDGES:
        text += f" Drawn are the {figures.MOST_EDGES} strongest of {len(real):,} edges."
    named = [
        f"{row['sender']} → {row['receiver']} ({words.number(row['effect'], sign=True)})"
        for row in real[real["effect"].notna()].head(3).to_dict("records")
    ]
    caption = Caption(
        text=text,
        estimand=words.sentence(words.path_estimand(attrs))
        if "variant" in attrs
        else "The score that each edge came with",
        n=_n_pairs(attrs),
        interval=INTERVAL_WORDS
        if edges["low"].notna().any()
        else "none: the scores came without, or are of one pair",
        null="0: the receiver makes nothing of what the sender writes",
    )
    picture = Figure(
        title="The circuit",
        views={"circuit": figures.circuit_picture(nodes, edges, unit)},
        caption=caption,
        alt=f"Layered graph of {len(nodes)} nodes and {len(real)} edges. "
        f"Strongest edges: {words.listed(named)}.",
        data=edges.drop(columns="link"),
        width=max(420, 64 * len(layout(nodes).columns) + 160),
        most=_MOST_IN_TABLE,
    )
    table = Table(
        title="Edges of the circuit",
        frame=real.drop(columns=["reader", "link"]),
        caption=replace(caption, text=f"In falling order of the absolute effect, in {unit}."),
        most=_MOST_IN_TABLE,
    )
    return Section("Circuit", [picture, table, *files_blocks(results)])


def files_blocks(results: xr.DataTree) -> list[Files]:
    """The circuit's files for other programs; none where `/files` is not there."""
    if (files := reading.group(results, "files")) is None:
        return []
    text = "The circuit with its scores, for other programs."
    if left_out := json.loads(files.attrs.get("left_out", "{}")):
        reasons = [f"{program} ({reason})" for program, reason in left_out.items()]
        text += f" Not here: {words.listed(reasons)}."
    names = zip(files["file"].values, files["content"].values, strict=True)
    return [
        Files(
            title="Files of the circuit",
            files=dict(zip(map(str, files["program"].values), names, strict=True)),
            caption=Caption(text=text),
        )
    ]


def faithfulness_section(results: xr.DataTree) -> Section | None:
    """How much of the model's metric the circuit keeps, in numbers and over its size."""
    blocks: list[Block] = []
    rows = quality_rows(results)
    if rows:
        blocks.append(Facts(rows))
    curve = reading.group(results, "curve")
    if curve is not None:
        blocks.append(_curve(curve, reading.attributes(results)))
    lead = (
        "Faithfulness is the share of the model's metric that is left when every edge outside the "
        "circuit is cut: 1 is all of it, 0 what no edge at all gives."
    )
    return Section("Is the circuit the model?", blocks, lead) if blocks else None


def quality_rows(results: xr.DataTree) -> list[tuple[str, str]]:
    """Faithfulness, completeness and minimality by name, with their status where it is no number.

    They are read from `/faithfulness`, `/completeness` and `/minimality`.
    """
    rows = []
    found = reading.group(results, "faithfulness")
    if found is not None:
        for circuit in found["circuit"].values:
            own = found.sel(circuit=circuit)
            ends = (float(own[name]) for name in ("faithfulness", "low", "high"))
            what = "Faithfulness" if found.sizes["circuit"] == 1 else f"Faithfulness of {circuit}"
            text = words.interval(*ends, sign=False)
            rows.append((what, _or_status(text, own)))
    complete = reading.group(results, "completeness")
    if complete is not None:
        text = words.number(float(complete["completeness"]))
        rows.append(
            ("Completeness (1 − faithfulness of all other edges)", _or_status(text, complete))
        )
        if "incompleteness" in complete:
            worst = words.number(float(complete["incompleteness"].max()))
            rows.append(("Largest incompleteness of random halves", _or_status(worst, complete)))
    minimal = reading.group(results, "minimality")
    if minimal is not None:
        text = words.number(float(minimal["minimality"]))
        rows.append(("Minimality (share of its edges that it loses by)", _or_status(text, minimal)))
    curve = reading.group(results, "curve")
    if curve is not None:
        for name in ("CPR", "CMD"):
            text = words.number(float(curve[name]))
            if f"random_{name}" in curve and curve.sizes.get("draw"):
                random = words.number(float(curve[f"random_{name}"].mean()))
                text += f" (random edges: {random})"
            rows.append((name, _or_status(text, curve)))
    return rows


def _or_status(text: str, dataset: xr.Dataset) -> str:
    status = str(dataset["status"].values) if "status" in dataset else "measured"
    return text if status == "measured" else status


def _n_pairs(attrs: Mapping[str, Any]) -> str:
    """Over how many pairs; a circuit that was read from a file may not say."""
    if "n_pairs" not in attrs:
        return "the pairs are not named"
    others = attrs.get("n_pairs_found_on")
    chosen = "" if others is None else f", others than the {others} that edges were chosen on"
    return f"{attrs['n_pairs']} pairs{chosen}"


def _curve(dataset: xr.Dataset, attrs: Mapping[str, Any]) -> Figure:
    frame = pd.DataFrame({"fraction": dataset["fraction"].values})
    for name in ("n_edges", "faithfulness", "low", "high"):
        frame[name] = dataset[name].values
    if "random" in dataset:
        for draw in range(dataset.sizes["draw"]):
            frame[f"random {draw}"] = dataset["random"].isel(draw=draw).values
    return Figure(
        title="Faithfulness over the size of the circuit",
        views={"curve": figures.faithfulness_lines(frame)},
        caption=Caption(
            text="The edges with the largest scores are kept, and all others cut. The dotted line "
            "is the whole model. CPR is the area under the curve, CMD that between it and 1, over "
            "the share of edges.",
            estimand=f"Mean {words.metric(attrs)} of the circuit less that without any edge, as a "
            "share of the whole model's less the same",
            n=_n_pairs(attrs),
            interval=f"{INTERVAL_WORDS} (band)"
            if frame["low"].notna().any()
            else "none: one pair, or no gap to share out",
            null="random edges: as many, drawn from all of them",
        ),
        alt="Line of faithfulness by share of edges, beside lines of random circuits.",
        data=frame,
        width=440,
        widest=760,
    )
