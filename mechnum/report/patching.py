"""The pages of patching: what nodes do, and what they do through others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import xarray as xr

from mechnum.report import findings, measured, reading, words
from mechnum.report.blocks import Text
from mechnum.report.figures.nodes import NAMES
from mechnum.report.page import Page, Section
from mechnum.report.sections.circuit import (
    circuit_frames,
    circuit_section,
    faithfulness_section,
    quality_rows,
)
from mechnum.report.sections.edges import edges_section
from mechnum.report.sections.nodes import largest_words, nodes_section
from mechnum.report.sections.prompts import tokens_section
from mechnum.report.sections.provenance import provenance_section

_TABLES = {
    "heads": "each head",
    "attn": "each layer's attention",
    "mlps": "each MLP",
    "neurons": "each neuron",
    "q": "each query",
    "k": "each key",
    "v": "each value",
    "kv": "the keys and values of each group",
    "pattern": "each attention pattern",
    "residual": "the residual stream after each layer",
}
_NAMED = 3  # Nodes or edges that a sentence names.


def nodes_page(results: xr.DataTree) -> Page:
    """The page of `mechnum.effects`, from what `mechnum.patching.results` made of it."""
    frame = measured.node_frame(results)
    nodes = str(results.attrs.get("nodes", ""))
    estimands = [name for name in ("total", "direct", "indirect") if name in frame]
    what = _TABLES.get(nodes, "each node")
    model, task = _model_and_task(results)
    return _page(
        results,
        f"What {what} of {model} does for {task}",
        frame,
        estimands,
        nodes_section(results, frame),
    )


def edges_page(results: xr.DataTree) -> Page:
    """The page of `mechnum.path_effects`, from what `mechnum.patching.results` made of it."""
    frame = measured.edge_frame(results)
    model, task = _model_and_task(results)
    return _page(
        results,
        f"What the parts of {model} pass on to each other for {task}",
        frame,
        ["effect"],
        edges_section(results, frame),
    )


def circuit_page(results: xr.DataTree) -> Page:
    """The page of a circuit: its picture, and whether it is the model.

    `results` has `/circuit` as `mechnum.patching.circuit.results` makes it and, each where
    it was measured, `/faithfulness`, `/completeness`, `/minimality`, `/curve` and `/prompts`.
    """
    nodes, edges = circuit_frames(results)
    model, task = _model_and_task(results)
    real = int((~edges["link"]).sum())
    sections = [
        _circuit_found(results, edges[~edges["link"]]),
        circuit_section(results),
        faithfulness_section(results),
        tokens_section(results),
        provenance_section(results),
    ]
    return Page(
        title=f"The circuit of {model} for {task}",
        lead=f"{len(nodes):,} nodes and {real:,} edges.",
        sections=[section for section in sections if section is not None],
    )


def _circuit_found(results: xr.DataTree, edges: pd.DataFrame) -> Section:
    """How much of the model the circuit is, and its strongest edges."""
    of_all = results.attrs.get("n_edges_of_the_model")
    size = f", {len(edges):,} of {int(of_all):,} edges" if of_all is not None else ""
    points = [
        (name, f"{text}{size}.")
        for name, text in quality_rows(results)
        if name.startswith("Faithfulness")
    ]
    curve = reading.group(results, "curve")
    if curve is not None and "random_CPR" in curve and curve.sizes.get("draw"):
        own, random = (float(curve[name].mean()) for name in ("CPR", "random_CPR"))
        if not math.isnan(own):
            text = f"{words.number(own)} in the mean over all shares of edges, of random edges "
            points.append(("Circuits of all sizes", f"{text}{words.number(random)}."))
    named = edges.rename(columns={"low": "effect_low", "high": "effect_high"})
    if text := largest_words(named, "effect", _NAMED):
        points.append(("Edges", text))
    notes = []
    if "faithfulness" in results.children:
        notes.append(
            "Faithfulness is the share of the model's metric that is left when all other edges are "
            "cut: 1 is all of it, 0 what no edge gives."
        )
    attrs = reading.attributes(results)
    notes.append(
        f"Effects of edges are changes of {words.metric(attrs)}, 0 where a receiver makes nothing "
        "of a sender. Brackets are 95 % intervals over pairs."
        if "variant" in attrs
        else "Edges have the scores that they came with."
    )
    return Section("What was found", [Text(points=points), Text([" ".join(notes)])])


def _page(
    results: xr.DataTree,
    title: str,
    frame: pd.DataFrame,
    estimands: Sequence[str],
    effects: Section,
) -> Page:
    sections = [
        _found(results, frame, estimands),
        effects,
        tokens_section(results),
        provenance_section(results),
    ]
    return Page(
        title=title,
        lead=findings.accuracy_sentence(results),
        sections=[section for section in sections if section is not None],
    )


def _found(results: xr.DataTree, frame: pd.DataFrame, estimands: Sequence[str]) -> Section:
    points = []
    attrs = reading.attributes(results)
    base = measured.base_metrics(results)
    if base:
        sides = [f"{words.interval(*base[side])} in the {side} run" for side in base]
        points.append(("Without a patch", f"{words.metric(attrs)} is {words.listed(sides)}."))
    for name in estimands:
        tested = frame[name].notna()
        found = len(measured.sure(frame, name))
        count = f"{found:,} of {int(tested.sum()):,} differ from 0 at {words.FDR}."
        label = f"{words.sentence(NAMES.get(name, name))} effect" if name != "effect" else "Effect"
        points.append((label, f"{largest_words(frame, name, _NAMED)} {count}"))
    note = (
        "y is the right answer to a pair's clean prompt, y\N{PRIME} that to its corrupt prompt. "
        "Numbers are means over pairs with 95 % intervals. What is largest was chosen on the "
        "pairs that also measure it, so it is likely to be somewhat overstated."
    )
    return Section("What was found", [Text(points=points), Text([note])])


def _model_and_task(results: xr.DataTree) -> tuple[str, str]:
    task = str(results.attrs.get("task", "its task")).replace("_", " ").replace(":", " ")
    return str(results.attrs.get("model", "the model")), task
