"""Figures of waves over numbers: the Fourier lens, rebuilt answers, spectra and filters."""

from __future__ import annotations

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
    panel_place,
    panels,
    series,
    values,
    whiskers,
    whole_ticks,
)
from mechnum.report.wave_frames import MODULES, STAGES, state_name

_PERIODS = (2, 2.5, 10 / 3, 5, 10, 20, 50, 100)
_RANKINGS = {
    "prompt": "strongest of each prompt",
    "mean": "strongest on average",
    "random": "at random",
}


def lens_maps(frame: pd.DataFrame, value: str, unit: str) -> go.Figure:
    """Layer × frequency, one panel for each stage on one scale; outliers are framed.

    `frame` comes from `lens_frame`; `value` is "share" or "amplitude".
    """
    stages = [stage for stage in STAGES if stage in set(frame["stage"])]
    counts = [frame.loc[frame["stage"] == stage, "layer"].nunique() for stage in stages]
    heights = [max(22, min(34, 500 // count)) * count for count in counts]
    total = sum(heights)
    figure = panels(
        [STAGES[stage] for stage in stages],
        total + 60 * len(stages) + 80,
        1,
        shared_xaxes=True,
        row_heights=[height / total for height in heights],
        vertical_spacing=52 / (total + 60 * len(stages)),
    )
    for panel, stage in enumerate(stages):
        own = frame[frame["stage"] == stage]
        place = panel_place(panel, 1)
        grid = own.pivot(index="layer", columns="frequency", values=value)
        layers = list(grid.index)
        figure.add_heatmap(
            x=list(grid.columns),
            y=list(range(len(layers))),
            z=[values(line) for line in grid.to_numpy()],
            coloraxis="coloraxis",
            ygap=1,
            hovertext=_hover(own, grid),
            hoverinfo="text",
            **place,
        )
        if "outlier" in own:
            marked = own[own["outlier"].astype(bool)]
            figure.add_scatter(
                x=list(marked["frequency"]),
                y=[layers.index(layer) for layer in marked["layer"]],
                mode="markers",
                marker={"symbol": "circle-open", "size": 8, "color": theme.SERIES[1],
                        "line": {"width": 1.5}},
                hoverinfo="skip",
                showlegend=False,
                **place,
            )  # fmt: skip
        labels = ["emb" if layer == -1 else str(layer) for layer in layers]
        figure.update_yaxes(
            title="layer", showgrid=False, zeroline=False, autorange="reversed",
            **label_ticks(labels), **place,
        )  # fmt: skip
        figure.update_xaxes(showgrid=False, zeroline=False, **_period_ticks(frame), **place)
    figure.update_xaxes(title="period in numbers", row=len(stages), col=1)
    end = float(np.nanmax(frame[value].to_numpy(dtype=float), initial=0.0)) or 1.0
    figure.update_layout(
        coloraxis={"autocolorscale": True, "cmin": 0, "cmax": end,
                   "colorbar": {"title": {"text": unit, "side": "right"}}},
        margin={"t": 48},
    )  # fmt: skip
    return figure


def rebuilt_lines(frame: pd.DataFrame) -> go.Figure:
    """Accuracy by the number of frequencies that are left in the final logits (log axis).

    `frame` comes from `rebuilt_frame`.
    """
    figure = canvas(340)
    for index, (ranking, name) in enumerate(_RANKINGS.items()):
        rows = frame[frame["ranking"] == ranking]
        look, kept = series(index), values(rows["kept"])
        if rows["low"].notna().all():
            band(figure, kept, rows["low"], rows["high"], theme.band(look["colour"]))
        figure.add_scatter(
            x=kept,
            y=values(rows["accuracy"]),
            name=name,
            **marked_line(look, 6),
            hovertext=[
                f"<b>{row['kept']} frequencies, {name}</b><br>accuracy "
                f"{words.interval(row['accuracy'], row['low'], row['high'], sign=False)}"
                for row in rows.to_dict("records")
            ],
            hoverinfo="text",
        )
    most = int(frame["kept"].max())
    ticks = [tick for tick in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500) if tick <= most]
    figure.update_layout(
        xaxis={"title": {"text": "frequencies left"}, "type": "log", "tickvals": ticks,
               "ticktext": [str(tick) for tick in ticks]},
        yaxis={"title": {"text": "accuracy"}, "range": [0, 1.03], "tickformat": ".0%"},
        legend=LEGEND_ABOVE,
        margin={"t": 72},
    )  # fmt: skip
    return figure


def spectrum_bars(frame: pd.DataFrame) -> go.Figure:
    """Mean amplitude of each frequency; `frame` comes from `spectrum_frame`."""
    named = frame.rename(columns={"low": "amplitude_low", "high": "amplitude_high"})
    figure = canvas(300)
    figure.add_bar(
        x=values(frame["frequency"]),
        y=values(frame["amplitude"]),
        error_y=whiskers(named, "amplitude") | {"width": 0},
        marker={"color": series(0)["colour"]},
        hovertext=[
            f"<b>period {words.number(row['period'], 4)}</b> (frequency {row['frequency']})<br>"
            f"{words.interval(row['amplitude'], row['low'], row['high'], sign=False)}"
            for row in frame.to_dict("records")
        ],
        hoverinfo="text",
    )
    figure.update_layout(
        xaxis={"title": {"text": "period in numbers"}, "showgrid": False, **_period_ticks(frame)},
        yaxis={"title": {"text": "amplitude"}, "rangemode": "tozero"},
        bargap=0.1,
    )
    return figure


def filter_bars(frame: pd.DataFrame) -> go.Figure:
    """Accuracy with each band removed, beside as many random directions; one panel for a module.

    `frame` comes from `filter_frame`.
    """
    kinds = [name for name in dict.fromkeys(frame["modules"]) if name != "nothing"]
    bands = [band for band in dict.fromkeys(frame["band"]) if band != "nothing"]
    figure = panels(
        [str(MODULES.get(kind, kind)) for kind in kinds],
        110 + 52 * len(bands),
        len(kinds),
        shared_yaxes=True,
        horizontal_spacing=0.06,
    )
    whole = frame.loc[frame["modules"] == "nothing", "accuracy"]
    for panel, kind in enumerate(kinds):
        place = panel_place(panel, len(kinds))
        for index, (projection, name) in enumerate(
            (("filter", "these waves"), ("random", "random directions"))
        ):
            rows = frame[(frame["modules"] == kind) & (frame["projection"] == projection)]
            figure.add_bar(
                orientation="h",
                x=values(rows["accuracy"]),
                y=[bands.index(band) for band in rows["band"]],
                error_x=whiskers(rows, "accuracy"),
                marker={"color": series(index)["colour"]},
                name=name,
                legendgroup=name,
                showlegend=panel == 0,
                hovertext=[
                    f"<b>{row['band']}</b>, {name} ({row['rank']})<br>accuracy "
                    + words.interval(
                        row["accuracy"], row["accuracy_low"], row["accuracy_high"], sign=False
                    )
                    for row in rows.to_dict("records")
                ],
                hoverinfo="text",
                **place,
            )
        if len(whole):
            line = {"color": theme.EDGE, "width": 1, "dash": "dot"}
            figure.add_vline(x=float(whole.iloc[0]), line=line, **place)
        figure.update_xaxes(title="accuracy", range=[0, 1.03], tickformat=".0%", dtick=0.5, **place)
        figure.update_yaxes(
            showgrid=False, zeroline=False, autorange="reversed",
            **label_ticks(bands, len(bands)), **place,
        )  # fmt: skip
    figure.update_layout(
        bargap=0.3,
        legend={**LEGEND_ABOVE, "y": 1 + 34 / (52 * len(bands)), "traceorder": "normal"},
        margin={"t": 88},
    )
    return figure


def _period_ticks(frame: pd.DataFrame) -> dict:
    """Ticks at the periods that people speak of, where the frequencies reach them."""
    first = frame.iloc[0]
    length = float(first["period"]) * float(first["frequency"])
    most = float(frame["frequency"].max())
    ticks: list[tuple[float, str]] = []
    for period in _PERIODS:
        place = length / period
        crowded = ticks and ticks[-1][0] - place < most / 40
        if 1 <= place <= most + 0.5 and not crowded:
            ticks.append((place, words.number(period, 2 if period < 10 else 4)))
    if not ticks:
        return whole_ticks(int(most) + 1)
    return {"tickvals": [place for place, _ in ticks], "ticktext": [text for _, text in ticks]}


def _hover(own: pd.DataFrame, grid: pd.DataFrame) -> list[list[str]]:
    texts = []
    for row in own.to_dict("records"):
        lines = [
            f"<b>{state_name(row['stage'], int(row['layer']))}</b>",
            f"period {words.number(row['period'], 4)} (frequency {int(row['frequency'])})",
            f"amplitude {words.number(row['amplitude'])} "
            f"(standard error {words.number(row['standard_error'], 2)})",
        ]
        if "share" in row and not np.isnan(row["share"]):
            lines.append(f"{words.percent(row['share'])} of the power, p {words.q_value(row['p'])}")
        texts.append("<br>".join(lines))
    table = own.assign(hover=texts).pivot(index="layer", columns="frequency", values="hover")
    return table.loc[grid.index, grid.columns].to_numpy().tolist()
