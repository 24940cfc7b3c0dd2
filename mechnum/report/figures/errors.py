"""Figures of the model's answers: which errors it makes and for which numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from mechnum.report import theme
from mechnum.report.figures.style import canvas, series, values

_SPAN = 60  # Up to this width of the error range, every whole number is a bar of its own.


def error_histogram(errors: pd.DataFrame) -> go.Figure:
    """Bars of how often each `error` (predicted - answer) occurs, from its `count`."""
    error = errors["error"].to_numpy()
    total = errors["count"].sum()
    figure = canvas(280)
    figure.add_bar(
        x=values(error),
        y=values(errors["count"]),
        # Bars of width 1 become hairlines where errors spread over hundreds of numbers.
        width=max(0.8, np.ptp(error) / 200) if len(error) else 0.8,
        marker={"color": series(0)["colour"]},
        hovertext=[
            f"error {int(value):+d}: {int(count):,} of {int(total):,}"
            for value, count in zip(error, errors["count"], strict=True)
        ],
        hoverinfo="text",
    )
    figure.update_layout(
        xaxis={"title": {"text": "predicted \N{MINUS SIGN} answer"}, "zeroline": True,
               "showgrid": False, "dtick": _tick(float(np.ptp(error))) if len(error) else None},
        yaxis={"title": {"text": "prompts"}, "rangemode": "tozero", "tickformat": "d"},
        bargap=0,
    )  # fmt: skip
    return figure


def _tick(span: float) -> int | None:
    """Errors between two ticks; None where there is no room for every ten."""
    if span > 400:
        return None
    return 10 if span > _SPAN else 5 if span > _SPAN / 4 else 1


def answer_map(prompts: pd.DataFrame) -> go.Figure:
    """Map of a x b: right answers empty, wrong ones coloured by predicted - answer.

    `prompts` has the columns `a`, `b`, `answer`, `predicted` (a number, NaN if the predicted token
    is none) and `correct`. Wrong answers that are not numbers are marked with a cross.
    """
    wrong = prompts[~prompts["correct"].astype(bool)]
    numeric = wrong[wrong["predicted"].notna()]
    other = wrong[wrong["predicted"].isna()]
    error = (numeric["predicted"] - numeric["answer"]).astype(float)
    # A few far-off answers would leave the common ±1 and ±10 colourless.
    largest = float(np.nanquantile(error.abs(), 0.95)) if len(error) else 1.0
    size = 5 if prompts["a"].nunique() > 40 else 9
    figure = canvas(460)
    figure.add_scatter(
        x=values(numeric["b"]),
        y=values(numeric["a"]),
        mode="markers",
        marker={"symbol": "square", "size": size, "color": values(error), "coloraxis": "coloraxis",
                "line": {"width": 0.5, "color": theme.EDGE}},
        hovertext=[
            f"{int(a)} and {int(b)}: answer {int(answer)}, predicted {int(predicted)}"
            for a, b, answer, predicted in numeric[["a", "b", "answer", "predicted"]].to_numpy()
        ],
        hoverinfo="text",
        name="wrong number",
        showlegend=False,
    )  # fmt: skip
    if len(other):
        figure.add_scatter(
            x=values(other["b"]),
            y=values(other["a"]),
            mode="markers",
            marker={
                "symbol": "x-thin",
                "size": size + 2,
                "line": {"width": 1.5, "color": theme.EDGE},
            },
            hovertext=[
                f"{int(a)} and {int(b)}: answer {int(answer)}, predicted no number"
                for a, b, answer in other[["a", "b", "answer"]].to_numpy()
            ],
            hoverinfo="text",
            name="no number",
        )
    figure.update_layout(
        coloraxis={"cmin": -largest, "cmax": largest, "cmid": 0,
                   "colorbar": {"title": {"text": "predicted \N{MINUS SIGN} answer"}}},
        xaxis={"title": {"text": "b"}, "constrain": "domain", "zeroline": False,
               "range": _ends(prompts["b"])},
        yaxis={"title": {"text": "a"}, "scaleanchor": "x", "constrain": "domain",
               "zeroline": False,
               "range": _ends(prompts["a"])[::-1]},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )  # fmt: skip
    return figure


def _ends(numbers: pd.Series) -> list[float]:
    # Room for the marks of the first and the last number.
    low, high = float(numbers.min()), float(numbers.max())
    room = max(0.5, (high - low) / 50)
    return [low - room, high + room]
