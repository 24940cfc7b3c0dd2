"""The figure of path effects: a map of sender x receiver in which impossible edges are hatched."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from jaxtyping import Bool

from mechnum.report import theme, words
from mechnum.report.figures.style import canvas, effect_scale, label_ticks, values

_IMPOSSIBLE = theme.band(theme.EDGE, 0.3)
_LABELS = 80  # Up to this many rows or columns carry their name.


def path_map(frame: pd.DataFrame, unit: str = "logits", largest: float | None = None) -> go.Figure:
    """Map of sender (rows) x receiver (columns): the mean effect over pairs as colour.

    `frame` comes from `edge_frame`, for one position; senders and receivers are drawn in the order
    in which they first come. Edges that are impossible (NaN) are hatched. The colour scale is
    centred at 0 and ends at `largest`, by default the largest absolute effect.
    """
    senders, receivers = (list(dict.fromkeys(frame[side])) for side in ("sender", "receiver"))
    shaped = frame.assign(hover=_hover(frame, unit)).set_index(["sender", "receiver"])
    grid = shaped["effect"].unstack().loc[senders, receivers].to_numpy(dtype=float)
    texts = shaped["hover"].unstack().loc[senders, receivers].to_numpy()
    if largest is None:
        largest = float(np.nanmax(np.abs(grid), initial=0.0))
    rows, columns = list(range(len(senders))), list(range(len(receivers)))
    gap = 1 if grid.size <= 4000 else 0
    figure = canvas(max(170 + round(min(max(300 / len(rows), 14), 32) * len(rows)), 280))
    missing = np.isnan(grid)
    if missing.any():
        figure.add_heatmap(
            x=columns,
            y=rows,
            z=[[1 if gone else None for gone in line] for line in missing],
            colorscale=[[0, _IMPOSSIBLE], [1, _IMPOSSIBLE]],
            showscale=False,
            xgap=0,
            ygap=0,
            hovertext=texts.tolist(),
            hoverinfo="text",
            name="impossible",
        )
    figure.add_heatmap(
        x=columns,
        y=rows,
        z=[values(line) for line in grid],
        coloraxis="coloraxis",
        xgap=gap,
        ygap=gap,
        hovertext=np.where(missing, "", texts).tolist(),
        hoverinfo="text",
        hoverongaps=False,
        name="effect",
    )
    x, y = _hatching(missing)
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": theme.band(theme.EDGE, 0.7), "width": 1},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.update_layout(
        coloraxis=effect_scale(largest, unit),
        xaxis={"title": {"text": "receiver"}, "tickangle": -90, "showgrid": False,
               "zeroline": False, "range": [-0.5, len(columns) - 0.5],
               **label_ticks(receivers, _LABELS)},
        yaxis={"title": {"text": "sender"}, "showgrid": False, "zeroline": False,
               "range": [len(rows) - 0.5, -0.5], **label_ticks(senders, _LABELS)},
    )  # fmt: skip
    return figure


def _hover(frame: pd.DataFrame, unit: str) -> list[str]:
    texts = []
    for row in frame.to_dict("records"):
        name = f"<b>{row['sender']} → {row['receiver']}</b>"
        if np.isnan(row["effect"]):
            texts.append(f"{name}<br>impossible: it reads before the sender writes")
            continue
        text = words.interval(row["effect"], row["effect_low"], row["effect_high"])
        texts.append(f"{name}<br>{text} {unit}, q {words.q_value(row['effect_q'])}")
    return texts


def _hatching(
    cells: Bool[np.ndarray, "row column"],
) -> tuple[list[float | None], list[float | None]]:
    """Diagonal lines through the cells; cells that touch at a corner share one line."""
    x: list[float | None] = []
    y: list[float | None] = []
    for row, first, last in _diagonal_runs(cells):
        # Upwards to the right, through cells (row, first), (row - 1, first + 1), ...
        x += [first - 0.5, last + 0.5, None]
        y += [row + 0.5, row - (last - first) - 0.5, None]
    return x, y


def _diagonal_runs(cells: Bool[np.ndarray, "row column"]) -> Iterator[tuple[int, int, int]]:
    """Runs along the rising diagonals, as row of the first cell, first and last column."""
    n_rows, n_columns = cells.shape
    for total in range(n_rows + n_columns - 1):
        first = None
        for column in range(max(0, total - n_rows + 1), min(total, n_columns - 1) + 1):
            if cells[total - column, column]:
                first = column if first is None else first
            elif first is not None:
                yield total - first, first, column - 1
                first = None
        if first is not None:
            yield total - first, first, min(total, n_columns - 1)
