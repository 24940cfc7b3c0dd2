"""Figures of patching effects: heads as a map, attention and MLPs as bars by layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from mechnum.report import words
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    canvas,
    panel_place,
    panels,
    series,
    values,
    whiskers,
    whole_ticks,
)
from mechnum.report.frames import EFFECTS

# Not colour alone: the second series is hatched as well.
_PATTERNS = ({}, {"shape": "/", "fillmode": "overlay", "fgopacity": 0.6, "size": 6})
_WRITTEN = 160  # Up to this many cells carry their number.


def heads_map(frame: pd.DataFrame, effect: str = "total", unit: str = "logits") -> go.Figure:
    """Map of layer x head: the mean `effect` ("total", "direct", "indirect") over pairs as colour.

    `frame` comes from `effect_frame`. The colour scale is centred at 0 and spans the largest mean
    of all three effects, so that the three maps can be compared. Nodes that do not exist (NaN)
    stay empty.
    """
    layers = sorted(frame["layer"].unique())
    heads = sorted(frame["head"].unique())
    cells = frame.set_index(["layer", "head"])
    grid = frame.pivot(index="layer", columns="head", values=effect).loc[layers, heads]
    hover = [
        [
            f"<b>head {layer}.{head}</b><br>{_hover(cells.loc[(layer, head)], unit)}"
            for head in heads
        ]
        for layer in layers
    ]
    present = [name for name in EFFECTS if name in frame]
    largest = float(np.nanmax(np.abs(frame[present].to_numpy(dtype=float)), initial=0.0)) or 1.0
    heat = go.Heatmap(
        x=values(heads),
        y=values(layers),
        z=[values(row) for row in grid.to_numpy()],
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hovertext=hover,
        hoverinfo="text",
    )
    if grid.size <= _WRITTEN:
        heat.update(
            text=[[words.number(cell, 2) if np.isfinite(cell) else "" for cell in row]
                  for row in grid.to_numpy()],
            texttemplate="%{text}",
            textfont={"size": 11},
        )  # fmt: skip
    # Rows of a readable height, and never so flat a map that its colour bar loses its title.
    row = min(max(180 / len(layers), 24), 44)
    figure = canvas(max(110 + round(row * len(layers)), 240))
    figure.add_trace(heat)
    figure.update_layout(
        coloraxis={"cmin": -largest, "cmax": largest, "cmid": 0,
                   "colorbar": {"title": {"text": f"{effect} effect ({unit})"}}},
        xaxis={"title": {"text": "head"}, "showgrid": False, "zeroline": False,
               **whole_ticks(len(heads), 32)},
        yaxis={"title": {"text": "layer"}, "showgrid": False, "zeroline": False,
               "autorange": "reversed", **whole_ticks(len(layers), 32)},
    )  # fmt: skip
    return figure


def layer_bars(frames: Mapping[str, pd.DataFrame], unit: str = "logits") -> go.Figure:
    """Bars of total and direct effect by layer with intervals, one panel for each kind of node.

    `frames` maps the panel's title ("Attention", "MLPs") to its `effect_frame`.
    """
    columns = len(frames)
    figure = panels(list(frames), 330, columns, shared_yaxes=True, horizontal_spacing=0.04)
    for panel, (title, frame) in enumerate(frames.items()):
        place = panel_place(panel, columns)
        for index, effect in enumerate(name for name in ("total", "direct") if name in frame):
            figure.add_bar(
                x=values(frame["layer"]),
                y=values(frame[effect]),
                error_y=whiskers(frame, effect),
                marker={"color": series(index)["colour"], "pattern": _PATTERNS[index]},
                name=f"{effect} effect",
                legendgroup=effect,
                showlegend=panel == 0,
                hovertext=[
                    f"<b>{title}, layer {int(row['layer'])}</b><br>{_hover(row, unit)}"
                    for _, row in frame.iterrows()
                ],
                hoverinfo="text",
                **place,
            )
        figure.update_xaxes(
            title="layer", showgrid=False, zeroline=False, **whole_ticks(len(frame)), **place
        )
    figure.update_yaxes(title=f"effect ({unit})", row=1, col=1)
    figure.update_layout(
        barmode="group", bargap=0.3, bargroupgap=0.05, legend=LEGEND_ABOVE, margin={"t": 72}
    )
    return figure


def _hover(row: pd.Series, unit: str) -> str:
    lines = []
    for effect in EFFECTS:
        if effect in row.index:
            low, high = float(row[f"{effect}_low"]), float(row[f"{effect}_high"])
            lines.append(f"{effect}: {words.interval(float(row[effect]), low, high)} {unit}")
    return "<br>".join(lines)
