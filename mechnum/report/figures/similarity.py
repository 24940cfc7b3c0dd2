"""Figures of how alike tables of numbers are, and of probes that are read on other models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import xarray as xr

from mechnum.report import theme, words
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    band,
    canvas,
    effect_scale,
    label_ticks,
    series,
    share_scale,
    values,
)

_WRITTEN = 12  # Cells along an axis up to which their values are written.
_OFFSET = 0.2  # Between the nulls of one value, in places along the axis.


def labelled_map(
    table: xr.DataArray, title: str, titles: tuple[str, str], signed: bool = True
) -> go.Figure:
    """A map over two axes of names, the first down and the second across, of values up to 1.

    Args:
        title: of the colours.
        titles: of the axis down and the axis across.
        signed: whether values may be below 0, as far as -1.
    """
    down, across = ([str(name) for name in table[dim].values] for dim in table.dims)
    z = table.values.astype(float)
    figure = canvas(200 + min(max(18 * len(down), 160), 700))
    figure.add_heatmap(
        z=[values(row) for row in z],
        coloraxis="coloraxis",
        hovertext=[
            [
                f"<b>{row}</b><br>{column}<br>{title}: {words.number(float(cell))}"
                for column, cell in zip(across, cells, strict=True)
            ]
            for row, cells in zip(down, z, strict=True)
        ],
        hoverinfo="text",
        xgap=1 if len(across) <= _WRITTEN else 0,
        ygap=1 if len(down) <= _WRITTEN else 0,
    )
    if max(z.shape) <= _WRITTEN:
        figure.update_traces(
            text=[[words.fixed(cell, 2) if np.isfinite(cell) else "" for cell in row] for row in z],
            texttemplate="%{text}",
            textfont={"size": 11},
        )
    grid = {"showgrid": False, "zeroline": False}
    figure.update_layout(
        coloraxis=effect_scale(1.0, title) if signed else share_scale(title),
        xaxis={"title": {"text": titles[1]}, "tickangle": -60, **grid, **label_ticks(across, 40)},
        yaxis={"title": {"text": titles[0]}, "autorange": "reversed", **grid,
               **label_ticks(down, 40)},
    )  # fmt: skip
    return figure


def chance_ranges(frame: pd.DataFrame, nulls: Mapping[str, str]) -> go.Figure:
    """Values one below the other, each with the central 95 % of every null.

    Args:
        frame: `name` and `value`, and for each null its `mean`, `low` and `high`, as `NULL_mean`.
        nulls: null → how it is called.
    """
    figure = canvas(150 + max(26 * len(frame), 130))
    places = np.arange(len(frame))
    for index, (null, name) in enumerate(nulls.items()):
        mean, low, high = (
            frame[f"{null}_{end}"].to_numpy(float) for end in ("mean", "low", "high")
        )
        colour = series(index + 1)["colour"]
        figure.add_scatter(
            x=values(mean),
            y=values(places + _OFFSET * (index - (len(nulls) - 1) / 2)),
            mode="markers",
            marker={"symbol": "square", "size": 5, "color": colour},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": values(high - mean),
                "arrayminus": values(mean - low),
                "thickness": 4,
                "width": 0,
                "color": colour,
            },
            name=name,
            hoverinfo="skip",
        )
    figure.add_scatter(
        x=values(frame["value"]),
        y=values(places),
        mode="markers",
        marker={"symbol": "diamond", "size": 10, "color": series(0)["colour"]},
        name="measured",
        hovertext=[
            f"<b>{name}</b><br>{words.number(float(value))}"
            for name, value in zip(frame["name"], frame["value"], strict=True)
        ],
        hoverinfo="text",
    )
    figure.update_layout(
        xaxis={"title": {"text": "similarity"}},
        yaxis={"range": [len(frame) - 0.5, -0.5], "zeroline": False,
               **label_ticks([str(name) for name in frame["name"]], 40)},
        legend={**LEGEND_ABOVE, "y": 1.02},
        margin={"t": 72},
    )  # fmt: skip
    return figure


def match_lines(
    frame: pd.DataFrame, nulls: Mapping[str, str], chosen: int | None = None
) -> go.Figure:
    """The match of the strongest frequencies by how many are compared, over the bands of chance.

    Args:
        frame: `n_top` and `match`, and for each null `NULL_low` and `NULL_high`.
        nulls: null → how it is called.
        chosen: how many frequencies are compared elsewhere, drawn as a line.
    """
    figure = canvas(380)
    for index, (null, name) in enumerate(nulls.items()):
        colour = series(index + 1)["colour"]
        low, high = (frame[f"{null}_{end}"] for end in ("low", "high"))
        band(figure, frame["n_top"], low, high, theme.band(colour, 0.3), name=name)
    figure.add_scatter(
        x=values(frame["n_top"]),
        y=values(frame["match"]),
        mode="lines",
        name="measured",
        line={"color": series(0)["colour"], "width": 2.5},
    )
    if chosen is not None and chosen <= frame["n_top"].max():
        figure.add_vline(x=chosen, line={"color": theme.EDGE, "dash": "dot", "width": 1})
    figure.update_layout(
        xaxis={"title": {"text": "strongest frequencies compared"}},
        yaxis={"title": {"text": "shared / all of both"}, "range": [0, 1.03]},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )
    return figure
