"""Figures of node effects: maps and bars of total, direct and indirect effect, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from mechnum.report import words
from mechnum.report.figures.style import (
    effect_scale,
    label_ticks,
    panel_place,
    panels,
    series,
    values,
    whiskers,
)
from mechnum.report.measured import estimands

SHOWN = ("total", "direct", "indirect")
_WRITTEN_COLUMNS = 6  # Up to this many columns a panel's cells have room for their number.
NAMES = {"direct_frozen": "direct (norm frozen)"}


def node_maps(
    frame: pd.DataFrame,
    row: str,
    column: str,
    unit: str = "logits",
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
) -> go.Figure:
    """Maps of the mean total, direct and indirect effect, side by side on one colour scale.

    `frame` comes from `node_frame`; `row` and `column` name two of its columns, whose values are
    shown in the order in which they first come, under their labels. The scale is centred at 0.
    """
    shown = _shown(frame)
    rows, columns = list(dict.fromkeys(frame[row])), list(dict.fromkeys(frame[column]))
    figure = panels(
        [NAMES.get(name, name) for name in shown],
        _height(len(rows)),
        len(shown),
        shared_yaxes=True,
        horizontal_spacing=0.03,
    )
    largest = float(np.nanmax(np.abs(frame[shown].to_numpy(dtype=float)), initial=0.0))
    # Three digits of the largest; what is small beside it need not show its own.
    places = max(2 - math.floor(math.log10(largest)), 0) if largest else 0
    hover = _hover(frame, unit)
    texts = frame.assign(hover=hover).pivot(index=row, columns=column, values="hover")
    for panel, name in enumerate(shown):
        grid = frame.pivot(index=row, columns=column, values=name).loc[rows, columns].to_numpy()
        heat = go.Heatmap(
            x=list(range(len(columns))),
            y=list(range(len(rows))),
            z=[values(line) for line in grid],
            coloraxis="coloraxis",
            xgap=1,
            ygap=1,
            hovertext=texts.loc[rows, columns].to_numpy().tolist(),
            hoverinfo="text",
        )
        if len(columns) <= _WRITTEN_COLUMNS:
            heat.update(
                text=[[words.fixed(cell, places) if np.isfinite(cell) else "" for cell in line]
                      for line in grid],
                texttemplate="%{text}",
                textfont={"size": 10},
            )  # fmt: skip
        place = panel_place(panel, len(shown))
        figure.add_trace(heat, **place)
        figure.update_xaxes(
            title=column,
            showgrid=False,
            zeroline=False,
            **label_ticks(column_labels or [str(label) for label in columns]),
            **place,
        )
        figure.update_yaxes(
            showgrid=False,
            zeroline=False,
            autorange="reversed",
            **label_ticks(row_labels or [str(label) for label in rows], 48),
            **place,
        )
    figure.update_yaxes(title=row if row != "node" else "", row=1, col=1)
    figure.update_layout(coloraxis=effect_scale(largest, unit), margin={"t": 48})
    return figure


def node_bars(frame: pd.DataFrame, unit: str = "logits") -> go.Figure:
    """Bars of the mean total, direct and indirect effect with intervals, one row for each node.

    `frame` comes from `node_frame`; its rows are drawn from the top down.
    """
    shown = _shown(frame)
    figure = panels(
        [NAMES.get(name, name) for name in shown],
        90 + max(22 * len(frame), 60),
        len(shown),
        shared_yaxes=True,
        shared_xaxes="all",
        horizontal_spacing=0.03,
    )
    places = list(range(len(frame)))
    for panel, name in enumerate(shown):
        place = panel_place(panel, len(shown))
        figure.add_bar(
            orientation="h",
            x=values(frame[name]),
            y=places,
            error_x=whiskers(frame, name),
            marker={"color": series(panel)["colour"]},
            showlegend=False,
            hovertext=_hover(frame, unit),
            hoverinfo="text",
            **place,
        )
        figure.update_xaxes(title=f"effect ({unit})", **place)
        figure.update_yaxes(
            showgrid=False,
            zeroline=False,
            autorange="reversed",
            **label_ticks([str(label) for label in frame["node"]], 80),
            **place,
        )
    figure.update_layout(bargap=0.3, margin={"t": 48})
    return figure


def _shown(frame: pd.DataFrame) -> list[str]:
    return [name for name in SHOWN if name in frame]


def _height(rows: int) -> int:
    # Rows of a readable height, and never so flat a map that its colour bar loses its title.
    return max(120 + round(min(max(200 / rows, 18), 44) * rows), 240)


def _hover(frame: pd.DataFrame, unit: str) -> list[str]:
    names = estimands(frame)
    texts = []
    for row in frame.to_dict("records"):
        place = f", position {words.number(int(row['position']))}" if "position" in row else ""
        lines = [f"<b>{row['node']}</b>{place}"]
        for name in names:
            text = words.interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
            q = words.q_value(row[f"{name}_q"])
            lines.append(f"{NAMES.get(name, name)}: {text} {unit}, q {q}")
        texts.append("<br>".join(lines))
    return texts
