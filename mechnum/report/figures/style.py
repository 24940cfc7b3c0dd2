"""What all figures share: the empty canvas and small helpers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mechnum.report import theme
from mechnum.report.plain import plain

DIGITS = 6  # Significant digits of the numbers in pages; results.nc keeps all of them.


@cache
def _template() -> go.layout.Template:
    # plotly checks a template value by value, which takes longer than all else in a figure.
    # Pages have grounds of their own; in a dark notebook, dark ink needs its light one.
    return go.layout.Template(theme.template("light"), layout_paper_bgcolor=theme.GROUND["light"])


def canvas(height: int, **layout: Any) -> go.Figure:
    """An empty figure in the light theme; pages change the theme with the reader's."""
    figure = go.Figure()
    figure.update_layout(template=_template(), height=height, **layout)
    return figure


def panels(titles: Sequence[str], height: int, columns: int, **spacing: Any) -> go.Figure:
    """An empty figure with one titled panel for each title, `columns` in a row.

    Panel i is at `panel_place(i, columns)`. `spacing` goes to plotly's make_subplots.
    """
    rows = max(1, -(-len(titles) // columns))
    figure = make_subplots(
        rows=rows, cols=columns, subplot_titles=[f"<b>{title}</b>" for title in titles], **spacing
    )
    figure.update_layout(template=_template(), height=height)
    figure.update_annotations(font={"size": 13}, yshift=4)
    return figure


def panel_place(index: int, columns: int) -> dict[str, int]:
    """Row and column of the `index`-th panel, as plotly counts them (from 1)."""
    return {"row": index // columns + 1, "col": index % columns + 1}


LEGEND_ABOVE = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.12, "yanchor": "bottom"}


def series(index: int) -> dict[str, str]:
    """Colour, dash and marker of the `index`-th series."""
    return {
        "colour": theme.SERIES[index % len(theme.SERIES)],
        "dash": theme.DASHES[index % len(theme.DASHES)],
        "symbol": theme.SYMBOLS[index % len(theme.SYMBOLS)],
    }


def marked_line(look: Mapping[str, str], size: int = 7) -> dict[str, Any]:
    """A line with markers in the look of a `series`, for plotly; `size` is that of the markers."""
    return {
        "mode": "lines+markers",
        "line": {"color": look["colour"], "dash": look["dash"], "width": 2},
        "marker": {"symbol": look["symbol"], "size": size, "color": look["colour"]},
    }


def band(
    figure: go.Figure,
    x: Iterable[Any],
    low: Iterable[Any],
    high: Iterable[Any],
    fill: str,
    **trace: Any,
) -> None:
    """Fill the space between two lines, such as the ends of intervals; it answers no pointer.

    `trace` goes to plotly: the panel, or a name for the legend, which has none otherwise.
    """
    along = values(x)
    figure.add_scatter(
        x=along + along[::-1],
        y=values(high) + values(low)[::-1],
        fill="toself",
        mode="lines",
        line={"width": 0},
        fillcolor=fill,
        hoverinfo="skip",
        **{"showlegend": "name" in trace, **trace},
    )


def values(items: Iterable[Any]) -> list[Any]:
    """Plain numbers with NaN as None, which plotly draws as a gap."""
    return plain(list(items), DIGITS)  # type: ignore[return-value]


def whole_ticks(count: int, most: int = 16) -> dict[str, Any]:
    """Axis settings that label whole numbers 0 ... count - 1, thinned to at most `most` labels."""
    return {"tickmode": "linear", "tick0": 0, "dtick": max(1, math.ceil(count / most))}


def label_ticks(labels: Sequence[str], most: int = 16) -> dict[str, Any]:
    """Axis settings that write the labels at 0, 1, ..., thinned to at most `most`."""
    step = max(1, math.ceil(len(labels) / most))
    places = list(range(0, len(labels), step))
    return {"tickvals": places, "ticktext": [labels[place] for place in places], "ticks": ""}


def effect_scale(largest: float, unit: str) -> dict[str, Any]:
    """The colour axis of effects: centred at 0, as far as `largest` on both sides."""
    end = largest or 1.0
    bar = {"title": {"text": unit, "side": "top"}}
    return {"cmin": -end, "cmax": end, "cmid": 0, "colorbar": bar}


def share_scale(title: str, side: str = "top") -> dict[str, Any]:
    """The colour axis of shares, from 0 to 1; `side` is where the bar has its title."""
    bar = {"title": {"text": title, "side": side}, "tickformat": ".0%"}
    return {"autocolorscale": True, "cmin": 0, "cmax": 1, "colorbar": bar}


def whiskers(frame: pd.DataFrame, value: str) -> dict[str, Any]:
    """Error bars from `value` to the ends of its interval; none where there is no interval."""
    mean, low, high = (
        frame[name].to_numpy(dtype=float) for name in (value, f"{value}_low", f"{value}_high")
    )
    return {
        "type": "data",
        "symmetric": False,
        "array": values(high - mean),
        "arrayminus": values(mean - low),
        "thickness": 1.2,
        "width": 3,
        "color": theme.EDGE,
    }
