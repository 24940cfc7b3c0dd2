"""Figures of beliefs: the simplex, the mixed-state tree, layers, training, and the causal test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from mechnum.report import theme, words
from mechnum.report.belief_frames import Plane
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    band,
    canvas,
    marked_line,
    panel_place,
    panels,
    series,
    values,
)

LOG_AXIS = {"type": "log", "exponentformat": "power"}


def simplices(
    panel_beliefs: Mapping[str, np.ndarray],
    plane: Plane,
    colours: Sequence[str],
    hover: Sequence[str],
    size: float,
) -> go.Figure:
    """The same prefixes in one panel after the other, coloured by their true belief.

    Args:
        panel_beliefs: beliefs [prefix, coordinate] by the title of the panel.
        size: of the points, in pixels.
    """
    count = len(panel_beliefs)
    figure = panels(list(panel_beliefs), 400 if count < 3 else 300, count, horizontal_spacing=0.04)
    for index, beliefs in enumerate(panel_beliefs.values()):
        place = panel_place(index, count)
        points = plane.points(beliefs)
        if len(plane.corners):
            outline = np.vstack([plane.corners, plane.corners[:1]])
            figure.add_scatter(
                x=values(outline[:, 0]),
                y=values(outline[:, 1]),
                mode="lines",
                line={"color": theme.EDGE, "width": 1},
                hoverinfo="skip",
                **place,
            )
        figure.add_scatter(
            x=values(points[:, 0]),
            y=values(points[:, 1]),
            mode="markers",
            marker={"size": size, "color": list(colours)},
            hovertext=list(hover),
            hoverinfo="text",
            **place,
        )
        _frame_simplex(figure, plane, place, index)
    figure.update_layout(showlegend=False, margin={"l": 16 if len(plane.corners) else 56, "t": 40})
    return figure


def _frame_simplex(figure: go.Figure, plane: Plane, place: Mapping[str, int], index: int) -> None:
    """Corners with names in place of axes, or axes with titles."""
    if not len(plane.corners):
        # One scale for all panels.
        figure.update_xaxes(title=plane.axes[0], matches="x", **place)
        figure.update_yaxes(title=plane.axes[1] if index == 0 else "", matches="y", **place)
        return
    hidden = {"visible": False, "constrain": "domain"}
    figure.update_xaxes(range=[-0.12, 1.12], **hidden, **place)
    figure.update_yaxes(
        range=[-0.12, 1.0], scaleanchor=f"x{index + 1 if index else ''}", **hidden, **place
    )
    shifts = ((-8, -8), (8, -8), (0, 10))
    for corner, name, (right, up) in zip(plane.corners, plane.names, shifts, strict=True):
        figure.add_annotation(
            x=corner[0], y=corner[1], text=name, showarrow=False, xshift=right, yshift=up, **place
        )


def belief_scatter(
    true: np.ndarray, read: np.ndarray, colours: Sequence[str], hover: Sequence[str], title: str
) -> go.Figure:
    """A single probability: what is read against what is true, with the diagonal."""
    figure = canvas(400, showlegend=False)
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": theme.EDGE, "width": 1, "dash": "dot"},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=values(true),
        y=values(read),
        mode="markers",
        marker={"size": 3.5, "color": list(colours)},
        hovertext=list(hover),
        hoverinfo="text",
    )
    figure.update_layout(
        xaxis={"title": {"text": f"true probability of {title}"}},
        yaxis={"title": {"text": "read from the net"}},
    )
    return figure


def tree_picture(nodes: pd.DataFrame, edges: pd.DataFrame) -> go.Figure:
    """The mixed-state tree from its root on the left.

    `nodes` has `depth`, `height`, `colour` and `hover`; `edges` has `x0`, `y0`, `x1` and `y1`.
    """
    figure = canvas(460, showlegend=False)
    gap = [None] * len(edges)
    figure.add_scatter(
        x=[own for row in zip(edges["x0"], edges["x1"], gap, strict=True) for own in row],
        y=[own for row in zip(edges["y0"], edges["y1"], gap, strict=True) for own in row],
        mode="lines",
        line={"color": theme.EDGE, "width": 0.7},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=values(nodes["depth"]),
        y=values(nodes["height"]),
        mode="markers",
        marker={"size": 7, "color": list(nodes["colour"])},
        hovertext=list(nodes["hover"]),
        hoverinfo="text",
    )
    figure.update_layout(
        xaxis={"title": {"text": "tokens seen"}, "dtick": 1, "showgrid": False, "zeroline": False},
        yaxis={"visible": False},
    )
    return figure


def entropy_line(frame: pd.DataFrame, rate: float) -> go.Figure:
    """Entropy of the next token by the tokens seen, and the entropy rate below it."""
    figure, look = canvas(320), series(0)
    figure.add_scatter(
        x=values(frame["depth"]),
        y=values(frame["entropy"]),
        mode="lines+markers",
        line={"color": look["colour"], "width": 2},
        hovertext=[
            f"after {row.depth} tokens: {words.number(row.entropy)} nats"
            for row in frame.itertuples()
        ],
        hoverinfo="text",
        showlegend=False,
    )
    if rate == rate:
        figure.add_hline(
            y=rate,
            line={"color": theme.EDGE, "dash": "dot"},
            annotation_text=f"entropy rate {words.number(rate)}",
            annotation_position="bottom right",
        )
    figure.update_layout(
        xaxis={"title": {"text": "tokens seen"}, "dtick": max(1, len(frame) // 12)},
        yaxis={"title": {"text": "entropy of the next token, nats"}},
    )
    return figure


def layer_errors(curves: Mapping[str, pd.DataFrame], layers: Sequence[str]) -> go.Figure:
    """MSE by layer on a log axis: one line for each predictor, with its interval.

    Each frame has `mse`, `mse_low` and `mse_high`, one row for each layer.
    """
    figure = canvas(380, legend=LEGEND_ABOVE, margin={"t": 96})
    x = list(range(len(layers)))
    for index, (name, frame) in enumerate(curves.items()):
        look = series(index)
        shown = {key: frame[key].where(frame[key] > 0) for key in ("mse", "mse_low", "mse_high")}
        if frame["mse"].max() < 1e-12:
            continue  # No place on the axis.
        if shown["mse_low"].notna().all():
            band(figure, x, shown["mse_low"], shown["mse_high"], theme.band(look["colour"]))
        figure.add_scatter(
            x=x,
            y=values(shown["mse"]),
            name=name,
            **marked_line(look),
            hovertext=[
                f"<b>{name}</b><br>layer {layer}: MSE {words.number(value)}"
                for layer, value in zip(layers, frame["mse"], strict=True)
            ],
            hoverinfo="text",
        )
    figure.update_xaxes(title="layer", zeroline=False, tickvals=x, ticktext=list(layers))
    figure.update_yaxes(title="mean squared error", **LOG_AXIS)
    return figure


def training_errors(frame: pd.DataFrame, lines: Mapping[str, str]) -> go.Figure:
    """The loss above the least one, and below it the errors of beliefs, by step.

    `frame` has `step`, `excess` and the columns that `lines` names; both axes are logarithmic.
    """
    titles = ["Loss above the least possible", "Error of the beliefs"]
    figure = panels(titles, 560, 1, shared_xaxes=True, vertical_spacing=0.12)
    drawn = {"excess": ("loss", 0, 5), **{
        column: (name, 1, index) for index, (column, name) in enumerate(lines.items())
    }}  # fmt: skip
    for column, (name, panel, index) in drawn.items():
        look = series(index)
        figure.add_scatter(
            x=values(frame["step"]),
            y=values(frame[column].where(frame[column] > 0)),
            name=name,
            showlegend=panel == 1,
            **marked_line(look, 6),
            hovertext=[
                f"<b>step {step:,}</b><br>{name}: {words.number(value)}"
                for step, value in zip(frame["step"], frame[column], strict=True)
            ],
            hoverinfo="text",
            **panel_place(panel, 1),
        )
    figure.update_yaxes(title="nats", **LOG_AXIS, row=1, col=1)
    figure.update_yaxes(title="mean squared error", **LOG_AXIS, row=2, col=1)
    figure.update_xaxes(title="step", row=2, col=1)
    figure.update_layout(legend={"orientation": "h", "y": -0.14, "x": 0}, margin={"t": 56})
    return figure


def horizon_lines(frame: pd.DataFrame) -> go.Figure:
    """R² of the joint distribution of the next tokens, by how many they are.

    `frame` has `horizon`, and one column for each predictor.
    """
    figure = canvas(340, legend=LEGEND_ABOVE, margin={"t": 84})
    for index, name in enumerate(column for column in frame if column != "horizon"):
        look = series(index)
        figure.add_scatter(
            x=values(frame["horizon"]),
            y=values(frame[name]),
            name=name,
            **marked_line(look),
            hovertext=[f"<b>{name}</b><br>R² {words.number(value)}" for value in frame[name]],
            hoverinfo="text",
        )
    figure.update_layout(
        xaxis={"title": {"text": "tokens ahead, predicted together"}, "dtick": 1},
        yaxis={"title": {"text": "R²"}},
    )
    return figure


def patching_lines(frame: pd.DataFrame) -> go.Figure:
    """Mean divergence from the target's predictions by step, one line for each patch.

    `frame` has `step`, `patch`, `kl`, `kl_low` and `kl_high`.
    """
    figure = canvas(380, legend=LEGEND_ABOVE, margin={"t": 96})
    for index, (name, rows) in enumerate(frame.groupby("patch", sort=False)):
        look = series(index)
        band(figure, rows["step"], rows["kl_low"], rows["kl_high"], theme.band(look["colour"]))
        figure.add_scatter(
            x=values(rows["step"]),
            y=values(rows["kl"]),
            name=str(name),
            **marked_line(look),
            hovertext=[
                f"<b>{name}</b><br>step {row.step}: "
                f"{words.interval(row.kl, row.kl_low, row.kl_high, sign=False)} nats"
                for row in rows.itertuples()
            ],
            hoverinfo="text",
        )
    figure.update_layout(
        xaxis={"title": {"text": "tokens after the patched position"}, "dtick": 1},
        yaxis={"title": {"text": "KL to the target's predictions, nats"}, "rangemode": "tozero"},
    )
    return figure
