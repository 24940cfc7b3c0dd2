"""Where numbers lie: the helix in three dimensions, the circle that closes, the line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import xarray as xr

from mechnum.report import theme, words
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    canvas,
    panel_place,
    panels,
    series,
    values,
)

_TURNS = 24  # Points of the drawn curve for each turn.


def helix_in_space(frame: pd.DataFrame, period: float) -> go.Figure:
    """One plane of the helix with the linear coordinate as height, and the fitted curve through it.

    `frame` comes from `planes_frame` and has `linear`; the curve is where the fit puts numbers.
    """
    rows = frame[frame["period"] == period]
    number = rows["number"].to_numpy(dtype=float)
    count = max(200, int(_TURNS * np.ptp(number) / period))
    curve = np.linspace(number.min(), number.max(), min(count, 4000))
    angle = 2 * np.pi * curve / period
    figure = canvas(520)
    figure.add_scatter3d(
        x=values(np.cos(angle)),
        y=values(np.sin(angle)),
        z=values(curve),
        mode="lines",
        line={"color": theme.EDGE, "width": 2},
        hoverinfo="skip",
        name="fitted helix",
    )
    figure.add_scatter3d(
        x=values(rows["cos"]),
        y=values(rows["sin"]),
        z=values(rows["linear"]),
        mode="markers",
        marker={"size": 4, "color": values(number), "coloraxis": "coloraxis"},
        hovertext=[f"n = {int(n)}" for n in number],
        hoverinfo="text",
        name="mean states",
    )
    axis = {"showbackground": False, "gridcolor": theme.EDGE, "color": theme.EDGE}
    figure.update_layout(
        scene={
            "xaxis": {"title": {"text": "cos"}, **axis},
            "yaxis": {"title": {"text": "sin"}, **axis},
            "zaxis": {"title": {"text": "linear"}, **axis},
            "aspectmode": "manual",
            "aspectratio": {"x": 1, "y": 1, "z": 1.1},
            "camera": {"eye": {"x": 1.7, "y": 1.3, "z": 0.6}, "center": {"z": -0.15}},
            "dragmode": "turntable",
        },
        coloraxis={"colorscale": theme.POINTS, "colorbar": {"title": {"text": "n", "side": "top"}}},
        showlegend=False,
        margin={"l": 0, "r": 0, "t": 8, "b": 8},
    )
    return figure


def continuity_loop(dataset: xr.Dataset) -> go.Figure:
    """Where numbers lie on the circle that was fitted without some of them."""
    held = dataset["held_out"].values.astype(bool)
    number, points = dataset["number"].values, dataset["coordinates"].values
    figure = canvas(440)
    figure.add_shape(
        type="circle", x0=-1, x1=1, y0=-1, y1=1, line={"color": theme.EDGE, "width": 1}
    )
    for name, rows, index in (("fitted", ~held, 5), ("held out", held, 1)):
        look = series(index)
        outside = name == "held out"
        # The held-out numbers in their order, joined, so that a wrong order crosses the circle.
        figure.add_scatter(
            x=values(points[rows, 0]),
            y=values(points[rows, 1]),
            mode="lines+markers+text" if outside else "markers",
            line={"color": look["colour"], "width": 1, "dash": "dot"},
            marker={"symbol": look["symbol"], "size": 9 if outside else 6, "color": look["colour"]},
            text=[f"{int(n)}" for n in number[rows]] if outside else None,
            textposition="top center",
            hovertext=[f"n = {int(n)}" for n in number[rows]],
            hoverinfo="text",
            name=name,
        )
    figure.update_layout(
        xaxis={"title": {"text": "cos"}, "constrain": "domain"},
        yaxis={"title": {"text": "sin"}, "scaleanchor": "x", "constrain": "domain"},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )
    return figure


def structure_of_numbers(dataset: xr.Dataset) -> go.Figure:
    """The first principal component against n, and mean distances by how far numbers differ."""
    titles = ("first principal component", "Euclidean distance", "1 \N{MINUS SIGN} cosine")
    figure = panels(titles, 340, 3, horizontal_spacing=0.08)
    number, difference = dataset["number"].values, dataset["difference"].values
    figure.add_scatter(
        x=values(number),
        y=values(dataset["pc1"].values),
        mode="markers",
        marker={"size": 5, "color": theme.SERIES[0]},
        hovertext=[f"n = {int(n)}" for n in number],
        hoverinfo="text",
        showlegend=False,
        **panel_place(0, 3),
    )
    for panel, name in enumerate(("euclidean", "cosine"), 1):
        figure.add_scatter(
            x=values(difference),
            y=values(dataset[name].values),
            mode="lines",
            line={"color": theme.SERIES[0], "width": 2},
            hovertext=[
                f"difference {int(d)}<br>{words.number(float(y))}"
                for d, y in zip(difference, dataset[name].values, strict=True)
            ],
            hoverinfo="text",
            showlegend=False,
            **panel_place(panel, 3),
        )
        figure.update_xaxes(title="difference", dtick=10, **panel_place(panel, 3))
    figure.update_xaxes(title="n", row=1, col=1)
    return figure
