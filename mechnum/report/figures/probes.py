"""Figures of probes: accuracy by layer, transfer, and the sines that were fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from mechnum.report import theme, words
from mechnum.report.figures.style import (
    band,
    canvas,
    label_ticks,
    marked_line,
    panel_place,
    panels,
    series,
    share_scale,
    values,
)

Curves = Mapping[str, pd.DataFrame]


def accuracy_panels(
    groups: Mapping[str, Curves],
    layers: Sequence[int],
    title: str = "accuracy",
    marks: Mapping[str, float] | None = None,
) -> go.Figure:
    """Accuracy by layer, a panel for each group, a line with its interval for each curve.

    Args:
        groups: title of the panel → name → `accuracy` (and `low`, `high`), a row for each layer.
        title: of the vertical axis.
        marks: name → height of a dotted line in the first panel.
    """
    figure = panels(list(groups), 330 * len(groups) + 20, 1, vertical_spacing=0.16)
    x = list(range(len(layers)))
    for panel, curves in enumerate(groups.values()):
        place = panel_place(panel, 1)
        for index, (name, frame) in enumerate(curves.items()):
            look = series(index)
            if "low" in frame and frame["low"].notna().all():
                band(figure, x, frame["low"], frame["high"], theme.band(look["colour"]), **place)
            figure.add_scatter(
                x=x,
                y=values(frame["accuracy"]),
                name=name,
                legend=f"legend{panel + 1 if panel else ''}",
                **marked_line(look),
                hovertext=_hover(name, frame, layers),
                hoverinfo="text",
                **place,
            )
        figure.update_yaxes(title=title, range=[-0.03, 1.04], tickformat=".0%", **place)
        figure.update_xaxes(title="layer", **label_ticks(layer_labels(layers), 33), **place)
        top = figure.layout[f"yaxis{panel + 1 if panel else ''}"].domain[1]
        figure.update_layout({f"legend{panel + 1 if panel else ''}": {"y": top, "x": 1.01}})
    for name, height in (marks or {}).items():
        figure.add_hline(
            y=height,
            line={"color": theme.EDGE, "dash": "dot", "width": 1.3},
            annotation_text=name,
            annotation_position="top right",
            row=1,
            col=1,
        )
    return figure


def accuracy_map(
    grid: pd.DataFrame,
    hover: pd.DataFrame,
    axes: tuple[str, str],
    title: str = "accuracy",
) -> go.Figure:
    """A share for each row and column, written into its cell where there is room.

    Args:
        grid: shares, rows and columns in the order in which they are drawn; NaN where there is
            none.
        hover: what is said of each.
        axes: titles of columns and rows.
    """
    rows, columns = [str(own) for own in grid.index], [str(own) for own in grid.columns]
    shares = grid.to_numpy(dtype=float)
    figure = canvas(max(150 + min(max(300 // len(rows), 26), 44) * len(rows), 240))
    written = [["" if own != own else f"{100 * own:.0f}" for own in line] for line in shares]
    figure.add_heatmap(
        x=list(range(len(columns))),
        y=list(range(len(rows))),
        z=[values(line) for line in shares],
        text=written if len(columns) <= 16 else None,
        texttemplate="%{text}" if len(columns) <= 16 else None,
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hovertext=hover.to_numpy().tolist(),
        hoverinfo="text",
        hoverongaps=False,
    )
    figure.update_xaxes(title=axes[0], showgrid=False, zeroline=False, **label_ticks(columns, 33))
    figure.update_yaxes(
        title=axes[1], showgrid=False, zeroline=False, autorange="reversed", **label_ticks(rows, 33)
    )
    figure.update_layout(coloraxis=share_scale(title, "right"), margin={"t": 16})
    return figure


def sine_stems(frame: pd.DataFrame) -> go.Figure:
    """Amplitude by period (log axis), a stem for each sine.

    `frame` has `period`, `amplitude`, `phase` and `frequency`.
    """
    figure, look = canvas(320, showlegend=False), series(0)
    shown = frame[np.isfinite(frame["period"])]
    gap = [None] * len(shown)
    figure.add_scatter(
        x=[own for row in zip(shown["period"], shown["period"], gap, strict=True) for own in row],
        y=[own for height in shown["amplitude"] for own in (0, height, None)],
        mode="lines",
        line={"color": theme.band(look["colour"], 0.6), "width": 1.2},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=values(shown["period"]),
        y=values(shown["amplitude"]),
        mode="markers",
        marker={"color": look["colour"], "size": 5},
        hovertext=[
            f"<b>period {words.number(row.period, 4)}</b><br>frequency "
            f"{words.number(row.frequency, 4)}<br>amplitude {words.number(row.amplitude)}<br>phase "
            f"{words.number(row.phase)} rad"
            for row in shown.itertuples()
        ],
        hoverinfo="text",
    )
    ticks = [2, 2.5, 5, 10, 20, 50, 100, 200, 500, 1000]
    figure.update_xaxes(
        title="period in numbers", type="log", tickvals=ticks, ticktext=[f"{t:g}" for t in ticks]
    )
    figure.update_yaxes(title="amplitude", rangemode="tozero")
    return figure


def layer_labels(layers: Sequence[int]) -> list[str]:
    """Layers as ticks: the embedding is layer −1."""
    return ["emb" if layer == -1 else str(layer) for layer in layers]


def _hover(name: str, frame: pd.DataFrame, layers: Sequence[int]) -> list[str]:
    texts = []
    for layer, row in zip(layers, frame.to_dict("records"), strict=True):
        share = words.interval(
            row["accuracy"], row.get("low", np.nan), row.get("high", np.nan), sign=False
        )
        texts.append(f"<b>{name}</b>, {words.after_layer(layer)}<br>{share}")
    return texts
