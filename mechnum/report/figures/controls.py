"""Figures of the helix's controls: ablated subspaces, and a linear code of numbers."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go
import xarray as xr

from mechnum.report import theme, words
from mechnum.report.figures.style import LEGEND_ABOVE, canvas, marked_line, series, values, whiskers

SUBSPACES = {
    "whole": "whole state",
    "helix": "helix",
    "pca": "PCA",
    "random_components": "random, among components",
    "random": "random",
}


def ablation_bars(frame: pd.DataFrame, unit: str = "logits") -> go.Figure:
    """Bars of the effect of ablating each subspace, layer by layer, with intervals.

    `frame` is a `score_frame` whose methods are names of subspaces.
    """
    figure = canvas(380)
    present = [name for name in SUBSPACES if name in set(frame["method"])]
    for index, name in enumerate(present):
        rows = frame[frame["method"] == name]
        ends = rows[["score", "score_low", "score_high"]].to_numpy(dtype=float)
        figure.add_bar(
            x=["emb" if layer == -1 else str(layer) for layer in rows["layer"]],
            y=values(rows["score"]),
            error_y=whiskers(rows, "score"),
            marker={"color": series(index)["colour"]},
            name=SUBSPACES[name],
            hovertext=[
                f"<b>{SUBSPACES[name]}</b>, {words.after_layer(int(layer))}<br>"
                f"{words.interval(*three)} {unit}"
                for layer, three in zip(rows["layer"], ends, strict=True)
            ],
            hoverinfo="text",
        )
    figure.update_layout(
        barmode="group",
        bargap=0.25,
        bargroupgap=0.05,
        xaxis={"title": {"text": "layer"}, "type": "category", "showgrid": False},
        yaxis={"title": {"text": f"effect ({unit})"}},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )
    return figure


def linear_lines(dataset: xr.Dataset, layer: int) -> go.Figure:
    """Share of right sums by the range of the operands: the model's and a linear code's."""
    at = dataset["right"].sel(layer=layer)
    lines = {"the model": dataset["model"].values}
    lines |= {f"linear code, {fit}": at.sel(fit=fit).values for fit in at["fit"].values}
    figure = canvas(340)
    for index, (name, shares) in enumerate(lines.items()):
        look = series(index)
        figure.add_scatter(
            x=values(dataset["range"].values),
            y=values(shares),
            **marked_line(look),
            name=name,
            hovertext=[
                f"<b>{name}</b>, below {int(bound)}<br>"
                f"{'not available' if share != share else words.percent(float(share))}"
                for bound, share in zip(dataset["range"].values, shares, strict=True)
            ],
            hoverinfo="text",
        )
    figure.update_layout(
        xaxis={"title": {"text": "operands below"}},
        yaxis={"title": {"text": "right answers"}, "range": [0, 1.03], "tickformat": ".0%"},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
        shapes=[],
    )
    figure.update_traces(marker_line={"width": 0.5, "color": theme.EDGE})
    return figure
