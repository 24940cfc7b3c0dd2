"""Figures of the clock: the circuit in four steps, classes of heads, curves and stages."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from mechnum.report import theme, words
from mechnum.report.clock_frames import CLASSES, COLUMNS, column_of
from mechnum.report.figures.circuit import draw_edges, edge_legend, node_words, strongest
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    band,
    canvas,
    label_ticks,
    panel_place,
    panels,
    series,
    values,
    whiskers,
    whole_ticks,
)

_POINTS = 24  # Of each curve.
_COLOURS = {name: series(index)["colour"] for index, name in enumerate(CLASSES[:3])} | {
    "unclear": theme.EDGE
}
_RATIOS = {
    "direct_share": "DE / TE",
    "helix_share": "TE of helix(a+b) / TE",
    "mean_share": "TE of the mean output / TE",
}
_HALF = 0.5
_LEVELS = (0.5, 0.7, 0.8, 0.9)
_KINDS = {"heads": "heads", "mlps": "MLPs"}


def clock_picture(
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    heads: pd.DataFrame,
    mlps: pd.DataFrame | None,
    unit: str = "logits",
) -> go.Figure:
    """The circuit from left to right: embed, move, compute, read out, logits.

    `nodes` and `edges` as in `circuit_picture`; `heads` and `mlps` from `heads_frame` and
    `mlps_frame` say which column a node stands in, its colour, and how sure its class is.
    """
    classes = dict(zip(heads["node"], heads["class"], strict=True))
    stages = {} if mlps is None else dict(zip(mlps["node"], mlps["stage"], strict=True))
    sure = dict(zip(heads["node"], heads["sure"], strict=True))
    places = _places(nodes, classes, stages)
    tallest = max(np.unique([x for x, _ in places.values()], return_counts=True)[1])
    figure = canvas(max(150 + 66 * int(tallest), 380))

    def curve(sender: str, reader: str, receiver: str) -> tuple[np.ndarray, np.ndarray]:
        return _curve(places[sender], places[reader])

    drawn = pd.concat([strongest(edges[~edges["link"]]), edges[edges["link"]]])
    draw_edges(figure, drawn.iloc[::-1], curve, unit)
    edge_legend(figure, drawn)
    for row in nodes.to_dict("records"):
        _node(figure, row, places, classes, stages, sure, edges, unit)
    _node_legend(figure, set(classes.values()) | {"unclear"} & set(stages.values()))
    reach = tallest / 2 + 0.2
    figure.update_layout(
        xaxis={"tickvals": list(range(len(COLUMNS))),
               "ticktext": [f"<b>{name}</b>" for name in COLUMNS], "ticks": "", "side": "top",
               "showgrid": False, "zeroline": False, "range": [-0.35, len(COLUMNS) - 0.65]},
        yaxis={"visible": False, "range": [reach, -reach]},
        legend={"orientation": "h", "x": 0, "y": -0.02, "yanchor": "top"},
        margin={"t": 40},
        hoverdistance=12,
    )  # fmt: skip
    return figure


def _places(
    nodes: pd.DataFrame, classes: Mapping[str, str], stages: Mapping[str, str]
) -> dict[str, tuple[float, float]]:
    """Nodes of a column below each other, those of early layers first."""
    order = nodes.sort_values(["layer", "index"], na_position="first", kind="stable")
    columns: dict[str, list[str]] = {name: [] for name in COLUMNS}
    for name in order["name"]:
        columns[column_of(str(name), dict(classes), dict(stages))].append(str(name))
    return {
        name: (float(x), row - (len(names) - 1) / 2)
        for x, names in enumerate(columns.values())
        for row, name in enumerate(names)
    }


def _curve(start: tuple[float, float], end: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Leaves to the right and arrives from the left, beside the nodes of its own column."""
    (x0, y0), (x1, y1) = start, end
    bow = 0.5 * (x1 - x0) if x1 > x0 else 0.45
    t = np.linspace(0, 1, _POINTS)
    weights = np.stack(((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3), axis=1)
    # Within a column the curve leaves and arrives on the right.
    inner = (x0 + bow, x1 - bow) if x1 != x0 else (x0 + bow, x1 + bow)
    return weights @ np.array([x0, *inner, x1]), weights @ np.array([y0, y0, y1, y1])


def _node(
    figure: go.Figure,
    row: dict,
    places: Mapping[str, tuple[float, float]],
    classes: Mapping[str, str],
    stages: Mapping[str, str],
    sure: Mapping[str, float],
    edges: pd.DataFrame,
    unit: str,
) -> None:
    name = str(row["name"])
    x, y = places[name]
    kind = str(row["kind"])
    what = classes.get(name, stages.get(name, ""))
    said = what
    if name in sure:
        said = f"{what} {words.percent(sure[name])}"
    colour = _COLOURS.get(what, theme.NODE)
    symbol = {"head": "circle", "kv": "diamond"}.get(kind, "square")
    size = 44 if name in ("embed", "logits") else 32
    figure.add_scatter(
        x=[x],
        y=[y],
        mode="markers+text",
        marker={"symbol": symbol, "size": size, "color": colour,
                "line": {"width": 1, "color": theme.EDGE}},
        text=[name.removeprefix("head ").replace("mlp ", "MLP ")],
        textfont={"size": 10, "color": theme.ON_NODE},
        hovertext=[node_words(name, edges, unit) + (f"<br>class: {said}" if said else "")],
        hoverinfo="text",
        showlegend=False,
    )  # fmt: skip
    if said:
        figure.add_annotation(x=x, y=y, yshift=-24, text=said, showarrow=False, font={"size": 10})


def _node_legend(figure: go.Figure, there: set[str]) -> None:
    for name in CLASSES:
        if name in there:
            marker = {"symbol": "circle", "size": 11, "color": _COLOURS[name]}
            figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)


def class_bars(heads: pd.DataFrame) -> go.Figure:
    """c_ab and c_sum of each head with intervals, and how often resampled pairs give each class."""
    figure = panels(
        ["c_ab and c_sum", "class over resamples"],
        110 + max(30 * len(heads), 90),
        2,
        shared_yaxes=True,
        horizontal_spacing=0.04,
    )
    rows = list(range(len(heads)))
    for name, class_ in (("c_ab", "a,b"), ("c_sum", "a+b")):
        figure.add_bar(
            orientation="h",
            x=values(heads[name]),
            y=rows,
            # By hand: the panels share an axis, and so would their bars the room.
            offset=-0.36 if name == "c_ab" else 0.0,
            width=0.36,
            error_x=whiskers(heads, name),
            marker={"color": _COLOURS[class_]},
            name=f"{name} ({class_})",
            showlegend=False,
            hovertext=[
                f"<b>{row['node']}</b><br>{name} "
                f"{words.interval(row[name], row[f'{name}_low'], row[f'{name}_high'], sign=False)}"
                if np.isfinite(row[name]) else f"<b>{row['node']}</b><br>{row['status']}"
                for row in heads.to_dict("records")
            ],
            hoverinfo="text",
            **panel_place(index=0, columns=2),
        )  # fmt: skip
    before = np.zeros(len(heads))
    for class_ in CLASSES:
        share = heads[f"share {class_}"]
        figure.add_bar(
            orientation="h",
            x=values(share),
            y=rows,
            base=values(before),
            offset=-0.3,
            width=0.6,
            marker={"color": _COLOURS[class_]},
            name=class_,
            hovertext=[f"<b>{node}</b><br>{class_} in {words.percent(own)} of resamples"
                       for node, own in zip(heads["node"], share, strict=True)],
            hoverinfo="text",
            **panel_place(index=1, columns=2),
        )  # fmt: skip
        before = before + share.to_numpy()
    figure.update_yaxes(
        autorange="reversed", showgrid=False, zeroline=False, **label_ticks(list(heads["node"]), 80)
    )
    figure.update_xaxes(title="part of the effect", rangemode="tozero", row=1, col=1)
    figure.update_xaxes(title="share of resamples", range=[0, 1], tickformat="~%", row=1, col=2)
    legend = LEGEND_ABOVE | {"y": 1, "yref": "container", "yanchor": "top"}
    figure.update_layout(barmode="overlay", margin={"t": 84}, legend=legend)
    return figure


def cumulative_lines(frames: Mapping[str, pd.DataFrame]) -> go.Figure:
    """Share of the whole effect by number of best nodes, one panel for heads and one for MLPs."""
    figure = panels(
        [_KINDS[kind] for kind in frames], 340, max(len(frames), 1), shared_yaxes=True,
        horizontal_spacing=0.05,
    )  # fmt: skip
    for panel, (kind, frame) in enumerate(frames.items()):
        place, look = panel_place(panel, len(frames)), series(panel)
        k = values(frame["k"])
        if frame["low"].notna().all():
            band(figure, k, frame["low"], frame["high"], theme.band(look["colour"]), **place)
        figure.add_scatter(
            x=k,
            y=values(frame["share"]),
            mode="lines+markers",
            line={"color": look["colour"], "width": 2},
            marker={"symbol": look["symbol"], "size": 6, "color": look["colour"]},
            showlegend=False,
            hovertext=[
                f"<b>the best {int(row['k'])}</b> (last: {row['added']})<br>"
                f"{words.interval(row['share'], row['low'], row['high'], sign=False)}"
                for row in frame.to_dict("records")
            ],
            hoverinfo="text",
            **place,
        )
        for level in _LEVELS:
            line = {"color": theme.EDGE, "width": 1, "dash": "dot"}
            figure.add_hline(y=level, line=line, **place)
        most = int(frame["k"].max())
        figure.update_xaxes(title=f"best {_KINDS[kind]}", **whole_ticks(most + 1), **place)
    figure.update_yaxes(title="share of their joint effect", tickformat="~%", row=1, col=1)
    figure.update_layout(margin={"t": 48})
    return figure


def stage_lines(mlps: pd.DataFrame) -> go.Figure:
    """DE/TE and TE of helix(a+b) / TE by layer, with intervals."""
    figure = canvas(360)
    for index, (name, label) in enumerate(_RATIOS.items()):
        look = series(index)
        faint = name == "mean_share"
        colour = theme.EDGE if faint else look["colour"]
        figure.add_scatter(
            x=values(mlps["layer"] + 0.06 * (index - 1)),
            y=values(mlps[name]),
            mode="lines+markers",
            line={"color": colour, "width": 1 if faint else 2, "dash": look["dash"]},
            marker={"symbol": look["symbol"], "size": 7, "color": colour},
            error_y=whiskers(mlps, name),
            name=label,
            hovertext=[
                f"<b>{row['node']}</b> ({row['stage']})<br>{label} "
                f"{words.interval(row[name], row[f'{name}_low'], row[f'{name}_high'], sign=False)}"
                for row in mlps.to_dict("records")
            ],
            hoverinfo="text",
        )
    figure.add_hline(y=_HALF, line={"color": theme.EDGE, "width": 1, "dash": "dot"})
    figure.update_layout(
        xaxis={"title": {"text": "layer"}, "zeroline": False,
               **whole_ticks(int(mlps["layer"].max()) + 1),
               "range": [mlps["layer"].min() - 0.4, mlps["layer"].max() + 0.4]},
        yaxis={"title": {"text": "share of TE"}},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )  # fmt: skip
    return figure
