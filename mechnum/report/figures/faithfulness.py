"""The figure of a circuit's faithfulness over its size, beside random circuits."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from mechnum.report import theme, words
from mechnum.report.figures.style import LEGEND_ABOVE, band, canvas, series, values


def faithfulness_lines(curve: pd.DataFrame) -> go.Figure:
    """Faithfulness by share of edges (log axis), with its band, and random circuits of equal size.

    `curve` has the columns `fraction`, `n_edges`, `faithfulness`, `low`, `high`, and one column
    `random <draw>` for each draw. A fraction of 0 has no place on the axis.
    """
    rows = curve[curve["fraction"] > 0]
    share, look = values(rows["fraction"]), series(0)
    figure = canvas(360)
    draws = [str(name) for name in rows.columns if str(name).startswith("random ")]
    for index, name in enumerate(draws):
        figure.add_scatter(
            x=share,
            y=values(rows[name]),
            mode="lines+markers",
            line={"color": theme.EDGE, "width": 1, "dash": series(1)["dash"]},
            marker={"symbol": series(1)["symbol"], "size": 5, "color": theme.EDGE},
            name="random edges",
            legendgroup="random",
            showlegend=index == 0,
            hovertext=[f"random, {int(n):,} edges<br>{words.number(value)}"
                       for n, value in rows[["n_edges", name]].to_numpy()],
            hoverinfo="text",
        )  # fmt: skip
    if rows["low"].notna().all():
        band(figure, share, rows["low"], rows["high"], theme.band(look["colour"]))
    figure.add_scatter(
        x=share,
        y=values(rows["faithfulness"]),
        mode="lines+markers",
        line={"color": look["colour"], "width": 2},
        marker={"symbol": look["symbol"], "size": 7, "color": look["colour"]},
        name="best edges",
        hovertext=[
            f"<b>{int(row['n_edges']):,} edges</b> ({words.percent(row['fraction'])})<br>"
            f"{words.interval(row['faithfulness'], row['low'], row['high'], sign=False)}"
            for row in rows.to_dict("records")
        ],
        hoverinfo="text",
    )
    figure.add_hline(y=1, line={"color": theme.EDGE, "width": 1, "dash": "dot"})
    figure.update_layout(
        xaxis={"title": {"text": "share of all edges"}, "type": "log", "tickformat": "~%",
               "dtick": 1},
        yaxis={"title": {"text": "faithfulness"}},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )  # fmt: skip
    return figure
