"""The picture of a circuit: its nodes by layer, its edges as wide as their effect."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from mechnum.report import theme, words
from mechnum.report.circuit_layout import CircuitLayout, layout
from mechnum.report.figures.style import canvas, values

# Sender, the node that reads, and its input → x and y of points on the way.
Curve = Callable[[str, str, str], tuple[np.ndarray, np.ndarray]]

MOST_EDGES = 200
_WIDEST, _THINNEST = 8.0, 0.8
_NAMES = {"head": "heads", "kv": "key-value groups", "attn": "attention layers", "mlp": "MLPs",
          "neuron": "neurons", "embed": "embedding", "logits": "logits"}  # fmt: skip
_SHAPES = {"head": "circle", "kv": "diamond", "attn": "circle", "mlp": "square",
           "neuron": "hexagon", "embed": "square", "logits": "square"}  # fmt: skip
_SIZES = {"embed": 44, "logits": 44}


def circuit_picture(
    nodes: pd.DataFrame, edges: pd.DataFrame, unit: str = "logits", most: int = MOST_EDGES
) -> go.Figure:
    """A layered graph from the embedding (below) to the logits (above).

    `nodes` has the columns `name`, `kind`, `layer`, `index`; `edges` has `sender`, `receiver` (as
    `q 2.0`), `reader` (the node that it is an input of), `effect`, `low`, `high` and `link` (true
    from shared keys and values to their heads). Width is |effect|, colour and dash its sign. Edges
    without an effect (NaN) are drawn thin and grey. Of more than `most` edges the strongest are
    drawn; every node and link stays.
    """
    where = layout(nodes)
    figure = canvas(max(140 + 108 * len(where.layers), 320))
    drawn = pd.concat([strongest(edges[~edges["link"]], most), edges[edges["link"]]])
    # The strongest last, so that they lie on top.
    draw_edges(figure, drawn.iloc[::-1], where.curve, unit)
    edge_legend(figure, drawn)
    _nodes(figure, nodes, edges, where, unit)
    columns, layers = where.columns, where.layers
    figure.update_layout(
        xaxis={"tickvals": list(columns), "ticktext": list(columns.values()), "ticks": "",
               "showgrid": False, "zeroline": False,
               "range": [-0.9, max(len(columns) - 1, 0) + 0.9]},
        yaxis={"tickvals": list(layers), "ticktext": list(layers.values()), "ticks": "",
               "zeroline": False, "range": [-0.45, max(layers) + 0.45]},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        margin={"t": 56},
        hoverdistance=12,
    )  # fmt: skip
    return figure


def strongest(edges: pd.DataFrame, most: int = MOST_EDGES) -> pd.DataFrame:
    """At most `most` edges, in falling order of |effect|; those without one come last."""
    order = edges["effect"].abs().sort_values(ascending=False, kind="stable", na_position="last")
    return edges.loc[order.index[:most]]


def draw_edges(figure: go.Figure, drawn: pd.DataFrame, curve: Curve, unit: str) -> None:
    """Draw edges along `curve`, as wide as their effect is large, with their interval on hover."""
    largest = float(drawn["effect"].abs().max())
    x_hover: list[float] = []
    y_hover: list[float] = []
    hover: list[str] = []
    for row in drawn.to_dict("records"):
        x, y = curve(row["sender"], row["reader"], row["receiver"])
        look, opacity = _edge_look(row["effect"], largest)
        figure.add_scatter(
            x=values(x),
            y=values(y),
            mode="lines",
            line=look,
            opacity=opacity,
            hoverinfo="skip",
            showlegend=False,
        )
        # Away from the ends, where the pointer means the node.
        inner = slice(len(x) // 5, -(len(x) // 5), 2)
        x_hover += values(x[inner])
        y_hover += values(y[inner])
        hover += [_edge_words(row, unit)] * len(x[inner])
    figure.add_scatter(
        x=x_hover,
        y=y_hover,
        mode="markers",
        marker={"size": 9, "opacity": 0},
        hovertext=hover,
        hoverinfo="text",
        name="edges",
        showlegend=False,
    )


def _edge_look(effect: float, largest: float) -> tuple[dict[str, object], float]:
    """Line and opacity; many weak edges must not hide the strong ones."""
    if np.isnan(effect):
        return {"color": theme.EDGE, "width": _THINNEST, "dash": "dot"}, 0.75
    share = abs(effect) / largest if largest else 0.0
    width = _THINNEST + (_WIDEST - _THINNEST) * share
    return _sign_look(effect > 0) | {"width": width}, 0.4 + 0.45 * share


def _edge_words(row: dict, unit: str) -> str:
    name = f"<b>{row['sender']} → {row['receiver']}</b>"
    if row["link"]:
        return f"{name}<br>reads these keys and values"
    if np.isnan(row["effect"]):
        return f"{name}<br>no effect was measured"
    return f"{name}<br>{words.interval(row['effect'], row['low'], row['high'])} {unit}"


def _sign_look(positive: bool) -> dict[str, object]:
    # As in the maps: blue is negative. Not colour alone: negative edges are dashed as well.
    if positive:
        return {"color": theme.SERIES[1], "dash": "solid"}
    return {"color": theme.SERIES[0], "dash": "dash"}


def edge_legend(figure: go.Figure, drawn: pd.DataFrame) -> None:
    """What colour and dash of edges mean."""
    for name, positive, there in (
        ("positive effect", True, (drawn["effect"] > 0).any()),
        ("negative effect", False, (drawn["effect"] <= 0).any()),
    ):
        if there:
            look = _sign_look(positive) | {"width": 3}
            figure.add_scatter(x=[None], y=[None], mode="lines", line=look, name=name)


def _nodes(
    figure: go.Figure, nodes: pd.DataFrame, edges: pd.DataFrame, where: CircuitLayout, unit: str
) -> None:
    for kind, rows in nodes.groupby("kind", sort=False):
        names = [str(name) for name in rows["name"]]
        places = [where.places[name] for name in names]
        figure.add_scatter(
            x=[x for x, _ in places],
            y=[y for _, y in places],
            mode="markers+text",
            marker={
                "symbol": _SHAPES[str(kind)],
                "size": _SIZES.get(str(kind), 30),
                "color": theme.NODE,
                "line": {"width": 1, "color": theme.EDGE},
            },
            text=[name.removeprefix(f"{kind} ") for name in names],
            textfont={"size": 10, "color": theme.ON_NODE},
            hovertext=[node_words(name, edges, unit) for name in names],
            hoverinfo="text",
            name=_NAMES[str(kind)],
            showlegend=False,
        )  # fmt: skip


def node_words(name: str, edges: pd.DataFrame, unit: str) -> str:
    """A node's name, and its strongest edges in and out."""
    known = edges[edges["effect"].notna()]
    lines = [f"<b>{name}</b>"]
    for label, side, other in (
        ("in", "reader", "sender"),
        ("out", "sender", "receiver"),
    ):
        own = strongest(known[known[side] == name])
        if len(own):
            best = own.iloc[0]
            effect = words.number(float(best["effect"]), sign=True)
            edge = "edge" if len(own) == 1 else "edges"
            end = best[other] if label == "out" else f"{best[other]} at {best['receiver']}"
            lines.append(f"{len(own)} {edge} {label}, strongest: {end} ({effect} {unit})")
    return "<br>".join(lines)
