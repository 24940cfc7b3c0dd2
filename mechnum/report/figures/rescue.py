"""Figures that compare kinds of nets over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from mechnum.report import words
from mechnum.report.figures.style import LEGEND_ABOVE, canvas, series, values


def arm_lines(frame: pd.DataFrame, x: str, y: str, **axes: Any) -> go.Figure:
    """One thin line for each seed and a thick one for their mean, in the look of the arm.

    Args:
        frame: with the columns `arm`, `seed`, x and y.
        axes: layout of plotly's axes.
    """
    figure = canvas(400)
    for index, (arm, own) in enumerate(frame.groupby("arm", sort=False)):
        look = series(index)
        seeds = list(own.groupby("seed", sort=False))
        if len(seeds) > 1:
            for seed, rows in seeds:
                figure.add_scatter(
                    x=values(rows[x]),
                    y=values(rows[y]),
                    mode="lines",
                    line={"color": look["colour"], "width": 1},
                    opacity=0.4,
                    legendgroup=str(arm),
                    showlegend=False,
                    hovertemplate=f"<b>{arm}, seed {seed}</b><br>%{{y:.4g}}<extra></extra>",
                )
        mean = own.groupby(x, sort=False)[y].mean()
        figure.add_scatter(
            x=values(mean.index),
            y=values(mean),
            mode="lines",
            name=str(arm),
            legendgroup=str(arm),
            line={"color": look["colour"], "dash": look["dash"], "width": 2.5},
            hovertemplate=f"<b>{arm}</b><br>%{{y:.4g}}<extra></extra>",
        )
    figure.update_layout(legend=LEGEND_ABOVE, margin={"t": 72}, **axes)
    return figure


def arm_bars(frame: pd.DataFrame, x: str, y: str, order: Sequence[str], **axes: Any) -> go.Figure:
    """Bars of the mean over seeds by `x`, one series for each arm, with a mark for each seed.

    Args:
        frame: with the columns `arm`, `seed`, x and y.
        order: of the values of x.
        axes: layout of plotly's axes.
    """
    figure = canvas(360, barmode="group", scattermode="group")
    several = frame["seed"].nunique() > 1
    for index, (arm, own) in enumerate(frame.groupby("arm", sort=False)):
        look = series(index)
        mean = own.groupby(x)[y].mean().reindex(order)
        figure.add_bar(
            x=list(order),
            y=values(mean),
            name=str(arm),
            offsetgroup=str(arm),
            marker={"color": look["colour"]},
            hovertext=[
                f"<b>{arm}</b>, {name}<br>{words.percent(value) if value == value else 'none'}"
                for name, value in mean.items()
            ],
            hoverinfo="text",
        )
        if several:
            figure.add_scatter(
                x=[str(name) for name in own[x]],
                y=values(own[y]),
                mode="markers",
                offsetgroup=str(arm),
                showlegend=False,
                marker={"symbol": "line-ew-open", "size": 12, "color": "#59636e"},
                hoverinfo="skip",
            )
    figure.update_layout(legend=LEGEND_ABOVE, margin={"t": 72}, **axes)
    return figure
