"""Figures of steering: shares by layer and strength, and what probes read."""

from __future__ import annotations

import pandas as pd
import plotly.graph_objects as go

from mechnum.report import words
from mechnum.report.figures.style import (
    LEGEND_ABOVE,
    canvas,
    label_ticks,
    marked_line,
    panel_place,
    panels,
    series,
    values,
    whole_ticks,
)

_COLUMNS = 4


def steering_maps(frame: pd.DataFrame, share: str) -> go.Figure:
    """Layer (rows) x strength (columns) of a share, a panel for each kind of vector.

    `frame` comes from `steering_frame`; all panels have one colour scale, from 0 to 1.
    """
    kinds = list(dict.fromkeys(frame["vector"]))
    layers = sorted(frame["layer"].unique())
    rows = -(-len(kinds) // _COLUMNS)
    height = 110 + rows * (90 + min(max(14 * len(layers), 90), 320))
    figure = panels(
        kinds, height, _COLUMNS, horizontal_spacing=0.035, vertical_spacing=0.5 / (2 * rows)
    )
    for index, kind in enumerate(kinds):
        own = frame[frame["vector"] == kind]
        grid = own.pivot(index="layer", columns="alpha", values=share).loc[layers]
        hover = own.assign(text=_hover(own, share)).pivot(
            index="layer", columns="alpha", values="text"
        )
        place = panel_place(index, _COLUMNS)
        figure.add_heatmap(
            z=[values(row) for row in grid.to_numpy()],
            coloraxis="coloraxis",
            xgap=1,
            ygap=1,
            hovertext=hover.loc[layers].to_numpy().tolist(),
            hoverinfo="text",
            **place,
        )
        last = index >= len(kinds) - _COLUMNS
        strengths = [f"{alpha:g}" for alpha in grid.columns]
        figure.update_xaxes(
            title="α" if last else "", showgrid=False, zeroline=False, tickangle=0,
            **label_ticks(strengths, 4), **place,
        )  # fmt: skip
        figure.update_yaxes(
            title="layer" if index % _COLUMNS == 0 else "",
            showgrid=False, zeroline=False, autorange="reversed",
            **label_ticks([str(layer) for layer in layers], 12), **place,
        )  # fmt: skip
    bar = {"title": {"text": share, "side": "top"}, "tickformat": ".0%"}
    figure.update_layout(coloraxis={"autocolorscale": True, "cmin": 0, "cmax": 1, "colorbar": bar})
    return figure


def reading_lines(frame: pd.DataFrame, chance: float) -> go.Figure:
    """How often the probe reads the right answer by layer, where the model is right and wrong.

    `frame` comes from `reading_frame`.
    """
    figure = canvas(320, legend=LEGEND_ABOVE, margin={"t": 84})
    for index, name in enumerate(("right answers", "wrong answers")):
        figure.add_scatter(
            x=values(frame["layer"]),
            y=values(frame[name]),
            name=f"prompts with {name}",
            **marked_line(series(index)),
            hovertext=[
                f"<b>layer {layer}</b>, {name}: {words.percent(share)}"
                for layer, share in zip(frame["layer"], frame[name], strict=True)
            ],
            hoverinfo="text",
        )
    figure.add_hline(y=chance, line={"dash": "dot", "width": 1}, annotation_text="chance")
    figure.update_layout(
        xaxis={
            "title": {"text": "layer"},
            "zeroline": False,
            **whole_ticks(int(frame["layer"].max()) + 1),
        },
        yaxis={"title": {"text": "right answer read"}, "tickformat": ".0%", "range": [0, 1.02]},
    )
    return figure


def _hover(frame: pd.DataFrame, share: str) -> list[str]:
    texts = []
    for row in frame.to_dict("records"):
        ends = words.interval(row[share], row[f"{share}_low"], row[f"{share}_high"], sign=False)
        texts.append(
            f"<b>{row['vector']}</b>, {words.after_layer(int(row['layer']))}, "
            f"α = {row['alpha']:g}<br>{share} {ends}"
        )
    return texts
