"""Figures of neurons: where the top ones are, how many are needed, and what describes them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from jaxtyping import Float

from mechnum.report import theme, words
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    band,
    canvas,
    label_ticks,
    marked_line,
    series,
    values,
    whiskers,
    whole_ticks,
)

VERDICTS = ("waves", "heuristics", "undecided", "neither", "constant")


def layer_share_bars(frame: pd.DataFrame, named: Mapping[str, str]) -> go.Figure:
    """Bars of shares by `layer`, one series for each column of `named` under its name there."""
    figure = canvas(320, barmode="group")
    for index, (column, name) in enumerate(named.items()):
        figure.add_bar(
            x=values(frame["layer"]),
            y=values(frame[column]),
            name=name,
            marker={"color": series(index)["colour"]},
            hovertext=[
                f"<b>layer {int(layer)}</b>, {name}<br>{words.percent(float(share))}"
                for layer, share in frame[["layer", column]].to_numpy()
            ],
            hoverinfo="text",
        )
    figure.update_layout(
        xaxis={"title": {"text": "layer"}, **whole_ticks(len(frame))},
        yaxis={"title": {"text": "share of the top neurons"}, "tickformat": ".0%"},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )
    return figure


def accuracy_curves(frame: pd.DataFrame) -> go.Figure:
    """Accuracy by `k` (log axis), one line with its band for each `curve`.

    `frame` has the columns `curve`, `k`, `accuracy`, `accuracy_low` and `accuracy_high`; a k of 0
    has no place on the axis.
    """
    figure = canvas(380)
    for index, (name, rows) in enumerate(frame[frame["k"] > 0].groupby("curve", sort=False)):
        look = series(index)
        ends = rows["accuracy_low"], rows["accuracy_high"]
        band(figure, rows["k"], *ends, theme.band(look["colour"]), legendgroup=name)
        figure.add_scatter(
            x=values(rows["k"]),
            y=values(rows["accuracy"]),
            name=str(name),
            legendgroup=name,
            **marked_line(look),
            hovertext=[
                f"<b>{int(row['k']):,} neurons</b>, {name}<br>{words.percent(row['accuracy'])} "
                f"[{words.percent(row['accuracy_low'])}, {words.percent(row['accuracy_high'])}]"
                for row in rows.to_dict("records")
            ],
            hoverinfo="text",
        )
    figure.update_layout(
        xaxis={"title": {"text": "neurons kept"}, "type": "log", "dtick": 1},
        yaxis={"title": {"text": "accuracy"}, "tickformat": ".0%", "range": [-0.03, 1.03]},
        legend=LEGEND_ABOVE,
        margin={"t": 96},
    )
    return figure


def ecdf_lines(
    samples: Mapping[str, Float[np.ndarray, " neuron"]], axis_title: str, floor: float
) -> go.Figure:
    """Share of each sample that lies above a value: one falling line for each.

    The axis begins at 0, or further left where there is something, but not before `floor`.
    """
    figure = canvas(340)
    least = [np.nanmin(sample, initial=0.0) for sample in samples.values()]
    floor = max(floor, min(0.0, *least))
    for index, (name, sample) in enumerate(samples.items()):
        ordered = np.sort(np.asarray(sample, dtype=float))
        ordered = ordered[np.isfinite(ordered)]
        if not len(ordered):
            continue
        # Some hundred points draw any number of neurons.
        places = np.unique(np.linspace(0, len(ordered) - 1, 400).round().astype(int))
        above = 1 - places / len(ordered)
        look = series(index)
        figure.add_scatter(
            x=values(np.maximum(ordered[places], floor)),
            y=values(above),
            mode="lines",
            name=f"{name} ({len(ordered):,})",
            line={"color": look["colour"], "dash": look["dash"], "width": 2},
            hovertemplate=f"<b>{name}</b><br>%{{y:.1%}} above %{{x:.2f}}<extra></extra>",
        )
    figure.update_layout(
        xaxis={"title": {"text": axis_title}, "range": [floor - 0.02, 1.02]},
        yaxis={"title": {"text": "share of neurons above"}, "tickformat": ".0%",
               "range": [-0.02, 1.03]},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )  # fmt: skip
    return figure


def period_map(counts: pd.DataFrame, inside: str, outside: str) -> go.Figure:
    """Map of how many neurons read with one period (rows) and write with another (columns).

    `counts` has the periods as text in its index and columns.
    """
    rows, columns = [str(name) for name in counts.index], [str(name) for name in counts.columns]
    z = counts.to_numpy(dtype=float)
    figure = canvas(150 + 44 * len(rows))
    figure.add_heatmap(
        z=values(z.tolist()),
        x=list(range(len(columns))),
        y=list(range(len(rows))),
        text=[[f"{int(count):,}" if count else "" for count in row] for row in z],
        texttemplate="%{text}",
        coloraxis="coloraxis",
        hovertext=[
            [
                f"reads T = {rows[i]}, writes T = {columns[j]}: {int(z[i, j]):,} neurons"
                for j in range(len(columns))
            ]
            for i in range(len(rows))
        ],
        hoverinfo="text",
        xgap=2,
        ygap=2,
    )
    end = float(z.max(initial=1.0))
    figure.update_layout(
        coloraxis={"cmin": -end, "cmax": end, "showscale": False},
        xaxis={"title": {"text": outside}, "showgrid": False, **label_ticks(columns, 40)},
        yaxis={"title": {"text": inside}, "showgrid": False, "autorange": "reversed",
               **label_ticks(rows, 40)},
    )  # fmt: skip
    return figure


def mlp_scatter(frame: pd.DataFrame) -> go.Figure:
    """MLPs by the a+b share of their top neurons and DE/TE, with whiskers.

    `frame` has the columns `layer`, `sum_share`, `direct_share`, `direct_share_low`, and
    `direct_share_high`; rows without a ratio are left out.
    """
    rows = frame.dropna(subset=["sum_share", "direct_share"])
    figure = canvas(380)
    figure.add_scatter(
        x=values(rows["sum_share"]),
        y=values(rows["direct_share"]),
        error_y=whiskers(rows, "direct_share"),
        mode="markers+text",
        text=[str(int(layer)) for layer in rows["layer"]],
        textposition="top right",
        marker={"size": 9, "color": series(0)["colour"]},
        hovertext=[
            f"<b>MLP {int(row['layer'])}</b><br>a+b share {words.number(row['sum_share'])}<br>"
            f"DE/TE {words.interval(*(row['direct_share' + end] for end in ('', '_low', '_high')))}"
            for row in rows.to_dict("records")
        ],
        hoverinfo="text",
    )
    figure.update_layout(
        xaxis={"title": {"text": "mean a+b share of the top neurons"}},
        yaxis={"title": {"text": "DE / TE of the MLP"}},
    )
    return figure


def knock_out_bars(frame: pd.DataFrame) -> go.Figure:
    """Bars of accuracy by `kind`, one series for each `prompts`, with whiskers.

    `frame` has the columns `kind`, `prompts`, `accuracy`, `accuracy_low` and `accuracy_high`.
    """
    figure = canvas(360, barmode="group")
    for index, (name, rows) in enumerate(frame.groupby("prompts", sort=False)):
        figure.add_bar(
            x=[str(kind) for kind in rows["kind"]],
            y=values(rows["accuracy"]),
            name=str(name),
            marker={"color": series(index)["colour"]},
            error_y=whiskers(rows, "accuracy"),
            hovertext=[
                f"<b>{row['kind']}</b>, {name}<br>{words.percent(row['accuracy'])}"
                for row in rows.to_dict("records")
            ],
            hoverinfo="text",
        )
    figure.update_layout(
        xaxis={"title": {"text": "heuristics whose neurons are set to 0"}},
        yaxis={"title": {"text": "accuracy"}, "tickformat": ".0%", "range": [0, 1.05]},
        legend=LEGEND_ABOVE,
        margin={"t": 96},
    )
    return figure


def kind_bars(frame: pd.DataFrame) -> go.Figure:
    """Bars of how many neurons have a heuristic of each `kind`, from `neurons` and `share`."""
    figure = canvas(300)
    figure.add_bar(
        x=values(frame["neurons"]),
        y=[str(kind) for kind in frame["kind"]],
        orientation="h",
        marker={"color": series(0)["colour"]},
        hovertext=[
            f"<b>{row['kind']}</b><br>{int(row['neurons']):,} neurons "
            f"({words.percent(row['share'])})"
            for row in frame.to_dict("records")
        ],
        hoverinfo="text",
    )
    figure.update_layout(
        xaxis={"title": {"text": "neurons"}, "rangemode": "tozero"},
        yaxis={"autorange": "reversed"},
    )
    return figure


def verdict_scatter(frame: pd.DataFrame, floor: float = -0.25) -> go.Figure:
    """Neurons by held-out R² of waves and of heuristics, in the look of their verdict.

    `frame` has the columns `node`, `r2_waves`, `r2_heuristics` and `verdict`; values below `floor`
    stand at it.
    """
    figure = canvas(440)
    for index, verdict in enumerate(VERDICTS):
        rows = frame[frame["verdict"] == verdict].dropna(subset=["r2_waves", "r2_heuristics"])
        if rows.empty:
            continue
        look = series(index) if verdict != "neither" else {"colour": theme.EDGE, "symbol": "x"}
        figure.add_scatter(
            x=values(rows["r2_waves"].clip(lower=floor)),
            y=values(rows["r2_heuristics"].clip(lower=floor)),
            mode="markers",
            name=f"{verdict} ({len(rows):,})",
            marker={"symbol": look["symbol"], "size": 7, "color": look["colour"]},
            hovertext=[
                f"<b>{row['node']}</b><br>waves {words.number(row['r2_waves'])}, heuristics "
                f"{words.number(row['r2_heuristics'])}<br>{verdict}"
                for row in rows.to_dict("records")
            ],
            hoverinfo="text",
        )
    line = {"color": theme.EDGE, "width": 1, "dash": "dot"}
    figure.add_shape(type="line", x0=floor, y0=floor, x1=1, y1=1, line=line, layer="below")
    ends = [floor - 0.03, 1.03]
    figure.update_layout(
        xaxis={"title": {"text": "R² of waves"}, "range": ends, "constrain": "domain"},
        yaxis={"title": {"text": "R² of heuristics"}, "range": ends, "scaleanchor": "x"},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )
    return figure
