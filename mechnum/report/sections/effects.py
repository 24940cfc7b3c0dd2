"""Sections about patching effects: heads, and attention and MLPs by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import xarray as xr

from mechnum.report import figures, findings, reading, words
from mechnum.report.blocks import Caption, Figure
from mechnum.report.frames import EFFECTS
from mechnum.report.intervals import INTERVAL_WORDS
from mechnum.report.page import Section

_TITLES = {"attn": "Attention", "mlps": "MLPs"}


def heads_section(results: xr.DataTree, effects: dict[str, pd.DataFrame]) -> Section | None:
    """The map of heads with a switch between total, direct and indirect effect."""
    if "heads" not in effects:
        return None
    frame = effects["heads"]
    attrs = reading.attributes(results, reading.group(results, "effects/heads"))
    views = [effect for effect in EFFECTS if effect in frame]
    heads = frame["head"].nunique()
    figure = Figure(
        title="Effect of each head",
        views={view: figures.heads_map(frame, view, words.unit(attrs)) for view in views},
        caption=_caption(
            "Mean effect of each attention head. The maps share one colour scale, centred at 0, "
            "and empty cells are heads that cannot be patched.",
            attrs,
            frame,
            "the head",
        ),
        alt=f"Map of layers and heads. {findings.joined(findings.effect_points({'heads': frame}))}",
        data=frame,
        width=max(360, 26 * heads + 150),
        widest=max(560, 80 * heads + 200),
        switch="Effect",
    )
    return Section("Heads", [figure])


def layers_section(results: xr.DataTree, effects: dict[str, pd.DataFrame]) -> Section | None:
    """Bars of total and direct effect of attention and MLPs by layer."""
    kinds = [kind for kind in _TITLES if kind in effects]
    if not kinds:
        return None
    frames = {_TITLES[kind]: effects[kind] for kind in kinds}
    attrs = reading.attributes(results, reading.group(results, f"effects/{kinds[0]}"))
    points = findings.effect_points({kind: effects[kind] for kind in kinds})
    data = pd.concat(
        [frame.assign(component=title) for title, frame in frames.items()], ignore_index=True
    )
    figure = Figure(
        title="Effect of each layer's attention and MLP",
        views={"effects": figures.layer_bars(frames, words.unit(attrs))},
        caption=_caption(
            "Mean total and direct effect by layer; whiskers are intervals. Effects of different "
            "layers overlap, so their sum can exceed the effect of patching them together.",
            attrs,
            data,
            "the layer",
        ),
        alt=findings.joined(points),
        data=data[["component", *data.columns.drop("component")]],
        width=560,
    )
    return Section("Attention and MLPs by layer", [figure])


def _caption(text: str, attrs: Mapping[str, Any], frame: pd.DataFrame, what: str) -> Caption:
    return Caption(
        text=text,
        estimand=words.sentence(words.effect_estimand(attrs, what)),
        n=words.count_range(frame["n"], "pairs"),
        interval=INTERVAL_WORDS,
        null="0: the value does not matter, or does not differ from what it is replaced by",
    )
