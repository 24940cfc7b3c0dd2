"""Figures of a training run: losses and accuracies by step."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from mechnum.report import words
from mechnum.report.figures.style import LEGEND_ABOVE, canvas, panel_place, panels, series, values

PARTS = {"train": "trained on", "heldout": "held out"}


def training_lines(curves: pd.DataFrame) -> go.Figure:
    """Loss (log axis) above accuracy, of the prompts that are trained on and those held out.

    `curves` has the columns `step`, `train_loss`, `heldout_loss`, `train_accuracy` and
    `heldout_accuracy`. A loss of 0 has no place on the axis.
    """
    figure = panels(["Loss", "Accuracy"], 560, 1, shared_xaxes=True, vertical_spacing=0.12)
    written = {"loss": lambda value: f"{words.number(value)} nats", "accuracy": words.percent}
    for panel, (measure, write) in enumerate(written.items()):
        for index, (part, name) in enumerate(PARTS.items()):
            column, look = curves[f"{part}_{measure}"], series(index)
            if measure == "loss":
                column = column.where(column > 0)
            figure.add_scatter(
                x=values(curves["step"]),
                y=values(column),
                mode="lines",
                line={"color": look["colour"], "dash": look["dash"], "width": 2},
                name=name,
                legendgroup=part,
                showlegend=panel == 0,
                hovertext=[
                    f"<b>step {step:,}</b><br>{name}: {write(value)}"
                    for step, value in zip(curves["step"], column, strict=True)
                ],
                hoverinfo="text",
                **panel_place(panel, 1),
            )
    figure.update_yaxes(type="log", title="nats", exponentformat="power", row=1, col=1)
    figure.update_yaxes(tickformat="~%", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title="step", row=2, col=1)
    figure.update_layout(legend=LEGEND_ABOVE, margin={"t": 84})
    return figure


def excess_line(step: pd.Series, excess: pd.Series) -> go.Figure:
    """How far the loss is above the least possible one (log axis); 0 has no place on the axis."""
    figure, look = canvas(320), series(0)
    figure.add_scatter(
        x=values(step),
        y=values(excess.where(excess > 0)),
        mode="lines",
        line={"color": look["colour"], "width": 2},
        hovertext=[
            f"<b>step {own:,}</b><br>{words.number(value)} nats above the least possible loss"
            for own, value in zip(step, excess, strict=True)
        ],
        hoverinfo="text",
        showlegend=False,
    )
    figure.update_yaxes(type="log", title="nats above the least", exponentformat="power")
    figure.update_xaxes(title="step")
    return figure
