"""Figures of spectra over numbers: shares with the band of chance, layers × periods, residues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from mechnum.report import theme, words
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    band,
    canvas,
    label_ticks,
    marked_line,
    series,
    values,
)

# Periods that axes name, where the range holds them and there is room.
_NAMED_PERIODS = (500, 200, 100, 50, 20, 10, 7, 5, 4, 3, 2.5, 2)
_ROOM = 0.018  # Least distance of two names, in waves per number (of at most 0.5).
_LABELLED = 6
_WRITTEN = 200
_FLOOR = 1e-5  # Smaller shares are drawn as this much on the logarithmic axis.


def spectrum_lines(frame: pd.DataFrame, baseline: pd.DataFrame | None = None) -> go.Figure:
    """Share of each frequency, over the central 95 % of chance, on a logarithmic axis.

    Args:
        frame: the rows of one layer of `spectrum_frame`.
        baseline: the same for token counts, drawn as a second line.
    """
    figure = canvas(420)
    x = values(_waves(frame))
    low, high = (frame[name].clip(lower=_FLOOR) for name in ("null_low", "null_high"))
    band(figure, x, low, high, theme.band(theme.EDGE, 0.3), name="chance (95 %)")
    if baseline is not None:
        _line(figure, baseline, "log counts", 1)
    _line(figure, frame, "share", 0)
    sure = frame[frame["p_family"] < words.SURE]
    figure.add_scatter(
        x=values(_waves(sure)),
        y=values(sure["share"]),
        mode="markers",
        marker={"symbol": "diamond", "size": 9, "color": series(1)["colour"]},
        name="above all of chance (5 %)",
        hoverinfo="skip",
    )
    for _, row in _peaks(frame, sure).iterrows():
        figure.add_annotation(
            x=float(_waves(row)),
            y=float(np.log10(row["share"])),
            text=f"T = {words.number(float(row['period']), 3)}",
            showarrow=False,
            yshift=14,
            font={"size": 12},
        )
    figure.update_layout(
        xaxis={"title": {"text": "period T"}, "range": [0, 0.515], **_period_ticks(frame)},
        yaxis={
            "title": {"text": "share of power"},
            "type": "log",
            "tickformat": "~%",
            "dtick": 1,
            "exponentformat": "none",
        },
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )
    return figure


def spectrum_map(frame: pd.DataFrame, names: list[str]) -> go.Figure:
    """Layer × period: the share as a multiple of a flat spectrum's, on a logarithmic colour scale.

    Args:
        frame: a `spectrum_frame` with layers.
        names: of the layers, in order.
    """
    grid = frame.pivot(index="layer", columns="frequency", values="flat")
    p = frame.pivot(index="layer", columns="frequency", values="p_family").to_numpy()
    period = frame.drop_duplicates("frequency").sort_values("frequency")
    with np.errstate(divide="ignore"):
        z = np.log10(grid.to_numpy())
    # What is weak is all the same, so that the scale is spent on what is strong.
    end = max(1.0, float(np.nanmax(z, initial=0.0)))
    hover = [
        [
            f"<b>{name}, T = {words.number(float(t), 4)}</b> (k = {int(k)})<br>"
            f"{words.number(float(times), 2)} × flat<br>p (family) = {words.q_value(float(q))}"
            for t, k, times, q in zip(period["period"], grid.columns, row, ps, strict=True)
        ]
        for name, row, ps in zip(names, grid.to_numpy(), p, strict=True)
    ]
    figure = canvas(110 + min(max(14 * len(grid), 160), 620))
    figure.add_heatmap(
        x=values(_waves(period)),
        z=[values(row) for row in z.clip(-end, end)],
        coloraxis="coloraxis",
        hovertext=hover,
        hoverinfo="text",
    )
    marks = list(range(-int(end), int(end) + 1))
    bar = {
        "title": {"text": "× flat", "side": "top"},
        "tickvals": marks,
        "ticktext": [f"1/{10**-mark:,}" if mark < 0 else f"{10**mark:,}" for mark in marks],
    }
    figure.update_layout(
        coloraxis={"cmin": -end, "cmax": end, "cmid": 0, "colorbar": bar},
        xaxis={"title": {"text": "period T"}, "showgrid": False, "zeroline": False,
               **_period_ticks(frame)},
        yaxis={"showgrid": False, "zeroline": False, "autorange": "reversed",
               **label_ticks(names)},
    )  # fmt: skip
    return figure


def residue_map(frame: pd.DataFrame, names: list[str]) -> go.Figure:
    """Layer × modulus: κ of n mod T, centred at 0; empty where it was not read.

    Args:
        frame: a `residue_frame` with layers.
        names: of the layers, in order.
    """
    grid = frame.pivot(index="layer", columns="modulus", values="kappa")
    p = frame.pivot(index="layer", columns="modulus", values="p").to_numpy()
    hover = [
        [
            f"<b>{name}, n mod {modulus}</b><br>κ = {words.number(float(k))}<br>"
            f"p = {words.q_value(float(q))}"
            for modulus, k, q in zip(grid.columns, row, ps, strict=True)
        ]
        for name, row, ps in zip(names, grid.to_numpy(), p, strict=True)
    ]
    figure = canvas(110 + min(max((26 if grid.size <= _WRITTEN else 14) * len(grid), 160), 620))
    figure.add_heatmap(
        x=[str(modulus) for modulus in grid.columns],
        z=[values(row) for row in grid.to_numpy()],
        coloraxis="coloraxis",
        hovertext=hover,
        hoverinfo="text",
        xgap=1,
        ygap=1 if grid.size <= _WRITTEN else 0,
    )
    if grid.size <= _WRITTEN:
        figure.update_traces(
            text=[[words.fixed(cell, 2) if np.isfinite(cell) else "" for cell in row]
                  for row in grid.to_numpy()],
            texttemplate="%{text}",
            textfont={"size": 11},
        )  # fmt: skip
    figure.update_layout(
        coloraxis={"cmin": -1, "cmax": 1, "cmid": 0,
                   "colorbar": {"title": {"text": "κ", "side": "top"}}},
        xaxis={"title": {"text": "T of n mod T"}, "type": "category", "showgrid": False},
        yaxis={"showgrid": False, "zeroline": False, "autorange": "reversed",
               **label_ticks(names)},
    )  # fmt: skip
    return figure


def residue_bars(frame: pd.DataFrame) -> go.Figure:
    """κ of n mod T as bars, with the κ that 5 % of permuted residues exceed as a mark."""
    moduli = [str(modulus) for modulus in frame["modulus"]]
    figure = canvas(320)
    figure.add_bar(
        x=moduli,
        y=values(frame["kappa"]),
        marker={"color": series(0)["colour"]},
        name="κ",
        hovertext=[
            f"<b>n mod {row['modulus']}</b><br>κ = {words.number(row['kappa'])}<br>"
            f"p = {words.q_value(row['p'])}"
            for row in frame.to_dict("records")
        ],
        hoverinfo="text",
    )
    figure.add_scatter(
        x=moduli,
        y=values(frame["null_high"]),
        mode="markers",
        marker={"symbol": "line-ew", "size": 22, "line": {"width": 2, "color": theme.EDGE}},
        name="5 % of permuted residues exceed",
        hoverinfo="skip",
    )
    figure.update_layout(
        xaxis={"title": {"text": "T of n mod T"}, "type": "category", "showgrid": False},
        yaxis={"title": {"text": "κ on held-out numbers"}},
        legend=LEGEND_ABOVE,
        bargap=0.35,
        margin={"t": 72},
    )
    return figure


def wave_lines(frame: pd.DataFrame, names: list[str]) -> go.Figure:
    """Share of variance that each period's wave has for itself, by layer.

    Args:
        frame: a `wave_frame` with layers.
        names: of the layers, in order.
    """
    figure = canvas(330)
    layers = sorted(frame["layer"].unique())
    for index, period in enumerate(dict.fromkeys(frame["period"])):
        rows = frame[frame["period"] == period].sort_values("layer")
        look = series(index)
        figure.add_scatter(
            x=list(range(len(layers))),
            y=values(rows["share"]),
            name=f"T = {words.number(float(period), 4)}",
            **marked_line(look),
        )
    figure.update_layout(
        xaxis={"title": {"text": "layer"}, "zeroline": False, **label_ticks(names)},
        yaxis={"title": {"text": "share of variance"}, "rangemode": "tozero", "tickformat": "~%"},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )
    return figure


def _line(figure: go.Figure, frame: pd.DataFrame, name: str, index: int) -> None:
    look = series(index * 2)
    figure.add_scatter(
        x=values(_waves(frame)),
        y=values(frame["share"].clip(lower=_FLOOR)),
        mode="lines+markers",
        line={"color": look["colour"], "dash": look["dash"], "width": 1.5},
        marker={"size": 4, "color": look["colour"]},
        name=name,
        hovertext=[
            f"<b>T = {words.number(float(row['period']), 4)}</b> (k = {int(row['frequency'])})<br>"
            f"{words.percent(float(row['share']))} of the power<br>"
            f"p = {words.q_value(float(row['p']))}, family {words.q_value(float(row['p_family']))}"
            for row in frame.to_dict("records")
        ],
        hoverinfo="text",
    )


def _waves(frame: Any) -> Any:
    """Waves per number: the place of a period on the axis."""
    return 1 / frame["period"]


def _peaks(frame: pd.DataFrame, sure: pd.DataFrame) -> pd.DataFrame:
    """The largest of the sure frequencies that stand above both their neighbours."""
    share = frame.set_index("frequency")["share"]
    around = np.maximum(share.shift(1, fill_value=0), share.shift(-1, fill_value=0))
    peaks = sure[sure["frequency"].map(share > around).astype(bool)]
    return peaks.sort_values("share", ascending=False).head(_LABELLED)


def _period_ticks(frame: pd.DataFrame) -> dict[str, Any]:
    longest = float(frame["period"].max())
    shown: list[float] = []
    # The short periods first: they are the ones with names of their own in the field.
    for period in sorted(_NAMED_PERIODS):
        if period <= longest and all(abs(1 / period - 1 / other) >= _ROOM for other in shown):
            shown.append(period)
    return {"tickvals": [1 / period for period in shown], "ticktext": [f"{p:g}" for p in shown]}
