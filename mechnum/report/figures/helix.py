"""Figures of the helix: how well it explains the states, what it causes, and how it looks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import xarray as xr

from mechnum.report import theme, words
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    band,
    marked_line,
    panel_place,
    panels,
    series,
    values,
    whiskers,
    whole_ticks,
)

# Fixed order, so that a method has one colour on all pages.
METHODS = ("helix", "full", "pca", "circle", "polynomial", "permuted")
_METHOD_NAMES = {
    "full": "full state",
    "pca": "PCA",
    "helix": "helix",
    "circle": "circle",
    "polynomial": "polynomial",
    "permuted": "helix of shuffled numbers",
}
R2_FLOOR = -0.25  # Held-out fits can be arbitrarily bad; the axis need not follow them.


def method_name(method: str) -> str:
    """A method's name as figures write it."""
    return _METHOD_NAMES.get(method, method)


def by_layer(
    frames: Mapping[str, pd.DataFrame], value: str, axis_title: str, floor: float | None = None
) -> go.Figure:
    """Lines of `value` by layer, one line for each method, one panel for each site.

    `frames` maps the panel's title to its `score_frame`; `value` is "score" (with the band of its
    interval) or "r2". Values below `floor` are cut off by the axis.
    """
    titles = [title for title, frame in frames.items() if value in frame]
    columns = max(len(titles), 1)
    figure = panels(titles, 350, columns, shared_yaxes=True, horizontal_spacing=0.04)
    shown: set[str] = set()
    order = _ordered({method for title in titles for method in frames[title]["method"]})
    # Known methods have one colour on all pages; lists with others have one for each of theirs.
    places = METHODS if set(order) <= set(METHODS) else _ordered({*order, "full"})
    for panel, title in enumerate(titles):
        place = panel_place(panel, columns)
        frame = frames[title]
        single = frame["layer"].nunique() == 1
        for method in _ordered(frame["method"].unique()):
            rows = frame[(frame["method"] == method) & frame[value].notna()]
            if not rows.empty:
                look = series(places.index(method))
                _line(figure, rows, value, method, look, method not in shown, single, place)
                shown.add(method)
        _layer_axis(figure, frame, place)
    figure.update_yaxes(title=axis_title, row=1, col=1)
    figure.update_layout(legend=LEGEND_ABOVE, margin={"t": 72})
    drawn = pd.concat([frames[title][value] for title in titles]) if titles else pd.Series([0.0])
    if floor is not None and drawn.min() < floor:
        figure.update_yaxes(range=[floor, max(float(drawn.max()), 0.0) + 0.08])
    return figure


def r2_by_layer(frames: Mapping[str, pd.DataFrame]) -> go.Figure:
    """R² by layer, method and site; the axis ends at -0.25.

    The full state is left out: it explains itself.
    """
    fits = {site: frame[frame["method"] != "full"] for site, frame in frames.items()}
    return by_layer(fits, "r2", "R²", floor=R2_FLOOR)


def scores_by_layer(frames: Mapping[str, pd.DataFrame], unit: str = "logits") -> go.Figure:
    """Causal score by layer, method and site, with 95 % bands over pairs."""
    return by_layer(frames, "score", f"causal score ({unit})")


def planes_frame(planes: xr.Dataset) -> pd.DataFrame:
    """One row for each number and period: `number`, `period`, `cos`, `sin` coordinate, `linear`."""
    coordinates = planes["coordinates"].transpose("period", "number", "axis")
    rows = [
        pd.DataFrame(
            {
                "number": coordinates["number"].values,
                "period": float(period),
                "cos": plane[:, 0],
                "sin": plane[:, 1],
            }
        )
        for period, plane in zip(coordinates["period"].values, coordinates.values, strict=True)
    ]
    frame = pd.concat(rows, ignore_index=True)
    if "linear" in planes:
        frame["linear"] = np.tile(planes["linear"].values, coordinates.sizes["period"])
    return frame


def planes(frame: pd.DataFrame, colour: str = "number") -> go.Figure:
    """The helix in its planes: one panel for each period, and the linear coordinate against n.

    `frame` comes from `planes_frame`. `colour` is "number" or "phase" (n mod T as a share of T).
    A plane whose second coordinate does not exist (sin of T = 2 is 0 on whole numbers) shows the
    first coordinate against n.
    """
    periods = list(dict.fromkeys(frame["period"]))
    shown: list[float | None] = [*periods, *([None] if "linear" in frame else [])]
    columns = min(len(shown), 3)
    rows = math.ceil(len(shown) / columns)
    titles = ["linear" if period is None else f"T = {words.number(period, 4)}" for period in shown]
    figure = panels(
        titles, 70 + 280 * rows, columns, horizontal_spacing=0.1, vertical_spacing=0.3 / rows
    )
    for panel, period in enumerate(shown):
        _plane(figure, frame, period, colour, panel_place(panel, columns))
    figure.update_layout(
        coloraxis={
            "colorscale": theme.POINTS if colour == "number" else theme.PHASES,
            "colorbar": {
                "title": {"text": "n" if colour == "number" else "(n mod T) / T", "side": "top"}
            },
            **({"cmin": 0, "cmax": 1} if colour == "phase" else {}),
        },
        showlegend=False,
    )
    return figure


def _plane(
    figure: go.Figure,
    frame: pd.DataFrame,
    period: float | None,
    colour: str,
    place: dict[str, int],
) -> None:
    rows = frame[frame["period"] == (frame["period"].iloc[0] if period is None else period)]
    number = rows["number"].to_numpy(dtype=float)
    phase = colour == "phase" and period is not None
    shade = (number % period) / period if phase else number
    x, y, x_title, y_title = rows["cos"], rows["sin"], "cos", "sin"
    if period is None:
        x, y, x_title, y_title = number, rows["linear"], "n", "linear"
    elif not np.nanmax(np.abs(y.to_numpy(dtype=float)), initial=0.0) > 1e-9:
        x, y, x_title, y_title = number, rows["cos"], "n", "cos"
    marker = {"size": 7, "line": {"width": 0.5, "color": theme.EDGE}}
    # The linear coordinate has no phase, so it stays grey there.
    if colour == "phase" and period is None:
        marker["color"] = theme.EDGE
    else:
        marker |= {"color": values(shade), "coloraxis": "coloraxis"}
    figure.add_scatter(
        x=values(x),
        y=values(y),
        mode="markers",
        marker=marker,
        hovertext=[f"n = {int(n)}" for n in number],
        hoverinfo="text",
        **place,
    )
    figure.update_xaxes(title=x_title, constrain="domain", **place)
    figure.update_yaxes(title=y_title, **place)
    line = {"color": theme.EDGE, "width": 1}
    if x_title == "cos":
        trace = figure.data[-1]
        figure.update_yaxes(scaleanchor=trace.xaxis, constrain="domain", **place)
        figure.add_shape(type="circle", x0=-1, x1=1, y0=-1, y1=1, line=line, layer="below", **place)
    elif period is None:
        ends = {"x0": number.min(), "y0": number.min(), "x1": number.max(), "y1": number.max()}
        figure.add_shape(type="line", **ends, line=line, layer="below", **place)


def _layer_axis(figure: go.Figure, frame: pd.DataFrame, place: dict[str, int]) -> None:
    count = frame["layer"].nunique()
    first = int(frame["layer"].min())
    if count == 1:
        # All methods would stand on one spot, so they stand beside each other under their names.
        figure.update_xaxes(title=words.after_layer(first), type="category", **place)
        return
    ticks = whole_ticks(count)
    if first == -1:
        shown = [-1, *range(0, int(frame["layer"].max()) + 1, ticks["dtick"])]
        ticks = {"tickvals": shown, "ticktext": ["emb", *map(str, shown[1:])]}
    figure.update_xaxes(title="layer", zeroline=False, **ticks, **place)


def _line(
    figure: go.Figure,
    rows: pd.DataFrame,
    value: str,
    method: str,
    look: Mapping[str, str],
    first: bool,
    single: bool,
    place: dict[str, int],
) -> None:
    """One method's line with its band; where there is one layer only, a point with whiskers."""
    name = method_name(method)
    banded = f"{value}_low" in rows and rows[f"{value}_low"].notna().all()
    layers = values(rows["layer"])
    if banded and not single:
        ends = rows[f"{value}_low"], rows[f"{value}_high"]
        fill = theme.band(look["colour"])
        band(figure, layers, *ends, fill, legendgroup=method, **place)
    hover = []
    for _, row in rows.iterrows():
        text = words.number(float(row[value]))
        if banded:
            ends = float(row[f"{value}_low"]), float(row[f"{value}_high"])
            text = words.interval(float(row[value]), *ends, sign=False)
        hover.append(f"<b>{name}</b>, {words.after_layer(int(row['layer']))}<br>{text}")
    figure.add_scatter(
        x=[name] if single else layers,
        y=values(rows[value]),
        error_y=whiskers(rows, value) if banded and single else None,
        name=name,
        legendgroup=method,
        showlegend=first,
        **marked_line(look),
        hovertext=hover,
        hoverinfo="text",
        **place,
    )


def _ordered(methods: Iterable[str]) -> list[str]:
    names = [str(method) for method in methods]
    return [m for m in METHODS if m in names] + sorted(m for m in names if m not in METHODS)
