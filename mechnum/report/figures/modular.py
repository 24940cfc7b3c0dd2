"""Figures of nets that add modulo a prime: phases, frequencies, circles, square maps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import xarray as xr

from mechnum.report import theme, words
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    canvas,
    marked_line,
    panel_place,
    panels,
    series,
    values,
)

_COLUMNS = 3


def step_lines(
    frame: pd.DataFrame,
    title: str,
    phases: Sequence[tuple[str, float, float]] = (),
    logarithmic: bool = False,
) -> go.Figure:
    """Lines over steps, one for each column of the frame but `step`.

    Args:
        title: of the axis up.
        phases: name, first and last step of spans that are shaded and named.
        logarithmic: whether the axis is, on which 0 has no place.
    """
    figure = canvas(430)
    for index, name in enumerate(frame.columns.drop("step")):
        look, column = series(index), frame[name]
        if logarithmic:
            column = column.where(column > 0)
        figure.add_scatter(
            x=values(frame["step"]),
            y=values(column),
            name=str(name),
            **marked_line(look, 5),
            hovertext=[
                f"<b>step {step:,}</b><br>{name}: {words.number(float(value))}"
                for step, value in zip(frame["step"], column, strict=True)
            ],
            hoverinfo="text",
        )
    for index, (name, first, last) in enumerate(phases):
        figure.add_vrect(
            x0=first,
            x1=last,
            fillcolor=theme.EDGE,
            # Neighbours are told apart.
            opacity=0.16 if index % 2 else 0.07,
            line_width=0,
            layer="below",
            # Above the plot and in turn on two lines, since a short span's name is wider than it.
            annotation={"text": name, "font": {"size": 11}, "yshift": 30 - 14 * (index % 2)},
            annotation_position="top left",
        )
    axis = {"title": {"text": title}}
    if logarithmic:
        axis |= {"type": "log", "exponentformat": "power"}
    figure.update_layout(
        xaxis={"title": {"text": "step"}}, yaxis=axis, legend=LEGEND_ABOVE, margin={"t": 72}
    )
    return figure


def frequency_bars(
    shares: xr.DataArray, keys: Sequence[int], names: Mapping[str, str]
) -> go.Figure:
    """Shares over (table, frequency), one panel for each table, key frequencies in colour.

    Args:
        names: table → title of its panel.
    """
    tables = [str(name) for name in shares["table"].values]
    columns = min(2, len(tables))
    rows = math.ceil(len(tables) / columns)
    figure = panels(
        [names.get(name, name) for name in tables],
        60 + 220 * rows,
        columns,
        vertical_spacing=0.3 / rows,
        horizontal_spacing=0.09,
    )
    frequency = shares["frequency"].values
    colours = [series(0)["colour"] if k in keys else theme.EDGE for k in frequency]
    for panel, name in enumerate(tables):
        own, place = shares.sel(table=name).values, panel_place(panel, columns)
        figure.add_bar(
            x=values(frequency),
            y=values(own),
            marker={"color": colours},
            showlegend=False,
            hovertext=[
                f"<b>k = {k}</b>{', a key' if k in keys else ''}<br>{words.percent(float(share))}"
                for k, share in zip(frequency, own, strict=True)
            ],
            hoverinfo="text",
            **place,
        )
        figure.update_yaxes(tickformat="~%", rangemode="tozero", **place)
        if panel // columns == rows - 1:
            figure.update_xaxes(title="frequency k", **place)
    return figure


def circle_panels(circles: xr.Dataset) -> go.Figure:
    """The numbers in the plane of each frequency, coloured by their phase k·n/p.

    Args:
        circles: of `mechnum.grokking.circle_planes`.
    """
    frequency, p = circles["frequency"].values, int(circles.attrs["p"])
    columns = 2 if len(frequency) == 4 else min(_COLUMNS, len(frequency))
    rows = math.ceil(len(frequency) / columns)
    figure = panels(
        [
            f"k = {k}: {words.percent(float(power))} of the variance"
            for k, power in zip(frequency, circles["power"].values, strict=True)
        ],
        70 + 290 * rows,
        columns,
        horizontal_spacing=0.08,
        vertical_spacing=0.2 / rows,
    )
    number = circles["number"].values
    for panel, k in enumerate(frequency):
        place = panel_place(panel, columns)
        points = circles["coordinates"].sel(frequency=k).transpose("number", "axis").values
        phase = k * number % p / p
        figure.add_scatter(
            x=values(points[:, 0]),
            y=values(points[:, 1]),
            mode="markers",
            marker={
                "size": 7,
                "color": values(phase),
                "coloraxis": "coloraxis",
                "line": {"width": 0.5, "color": theme.EDGE},
            },
            showlegend=False,
            hovertext=[
                f"n = {n}<br>k·n/p = {turn:.2f} turns"
                for n, turn in zip(number, phase, strict=True)
            ],
            hoverinfo="text",
            **place,
        )
        line = {"color": theme.EDGE, "width": 1}
        figure.add_shape(type="circle", x0=-1, x1=1, y0=-1, y1=1, line=line, layer="below", **place)
        axis = figure.data[-1].xaxis
        figure.update_xaxes(constrain="domain", **place)
        figure.update_yaxes(scaleanchor=axis, constrain="domain", **place)
    figure.update_layout(
        coloraxis={
            "colorscale": theme.PHASES,
            "cmin": 0,
            "cmax": 1,
            "colorbar": {"title": {"text": "k·n/p mod 1", "side": "top"}},
        }
    )
    return figure


def square_map(
    table: xr.DataArray, titles: tuple[str, str], unit: str, scale: bool = True
) -> go.Figure:
    """A map over two axes of numbers, the first down and the second across, centred at 0.

    Args:
        titles: of the axis down and the axis across.
        scale: whether its colours are explained beside it; those of counts need not be.
    """
    down, across = (table[dim].values for dim in table.dims)
    z = table.values.astype(float)
    end = float(np.nanmax(np.abs(z), initial=0.0)) or 1.0
    figure = canvas(470)
    figure.add_heatmap(
        z=[values(row) for row in z],
        x=values(across),
        y=values(down),
        coloraxis="coloraxis",
        hovertemplate=f"{titles[0]} %{{y}}, {titles[1]} %{{x}}<br>%{{z:.4g}} {unit}<extra></extra>",
    )
    figure.update_layout(
        coloraxis={
            "cmin": -end,
            "cmax": end,
            "cmid": 0,
            "showscale": scale,
            "colorbar": {"title": {"text": unit, "side": "top"}},
        },
        xaxis={"title": {"text": titles[1]}, "showgrid": False, "zeroline": False,
               "constrain": "domain"},
        yaxis={"title": {"text": titles[0]}, "showgrid": False, "zeroline": False,
               "autorange": "reversed", "scaleanchor": "x", "constrain": "domain"},
    )  # fmt: skip
    return figure


def along_lines(lines: Mapping[str, xr.DataArray], titles: tuple[str, str]) -> go.Figure:
    """Values along one axis of numbers, one line for each name.

    Args:
        titles: of the axis along and the axis up.
    """
    figure = canvas(340)
    for index, (name, line) in enumerate(lines.items()):
        look = series(index)
        figure.add_scatter(
            x=values(line[line.dims[0]].values),
            y=values(line.values),
            mode="lines",
            name=name,
            line={"color": look["colour"], "dash": look["dash"], "width": 2},
        )
    figure.update_layout(
        xaxis={"title": {"text": titles[0]}},
        yaxis={"title": {"text": titles[1]}},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )
    return figure


def formula_bars(frame: pd.DataFrame, formulas: Sequence[str]) -> go.Figure:
    """Share of the logits that each formula explains, by `circle`, one series for each formula."""
    figure = canvas(330, barmode="group")
    for index, formula in enumerate(formulas):
        figure.add_bar(
            x=[str(circle) for circle in frame["circle"]],
            y=values(frame[formula]),
            name=formula,
            marker={"color": series(index)["colour"]},
            hovertext=[
                f"<b>circle {circle}</b>, {formula}<br>{words.percent(float(share))}"
                for circle, share in frame[["circle", formula]].to_numpy()
            ],
            hoverinfo="text",
        )
    figure.update_layout(
        xaxis={"title": {"text": "frequency of the circle"}, "type": "category"},
        yaxis={"title": {"text": "explained"}, "tickformat": "~%", "range": [-1.05, 1.05]},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )
    return figure
