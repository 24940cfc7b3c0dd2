"""Sections about the beliefs in a net: side by side, controls, layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, words
from mechnum.report.belief_frames import (
    LAST,
    PLACES,
    also_read,
    best_norm,
    colours_of,
    control_frame,
    drawn_states,
    hover_texts,
    layer_frame,
    plane_of,
    position_frame,
    positions_words,
    some,
)
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.page import Section

SHUFFLED = "shuffled beliefs"
_INTERVAL = "95 % percentile bootstrap over whole strings"
ESTIMAND = "mean squared error over coordinates of the belief, of strings that are held out"


def side_by_side(results: xr.DataTree) -> Section:
    """True beliefs beside those that are read from the last and from all residuals."""
    geometry, norm = results["geometry"].to_dataset(), best_norm(results)
    truth, weights = geometry["belief"].values, geometry["weight"].values
    rows = some(len(truth))
    titles = {layer: f"from {name}" for layer, name in PLACES.items()}
    read = {
        title: geometry["predicted"].sel(layer=layer, norm=norm).values[rows]
        for layer, title in titles.items()
    }
    names = [str(name) for name in geometry["coordinate"].values]
    drawn = drawn_states(results)
    hover = hover_texts(geometry, rows, names)
    views = _views(truth, truth[rows], read, weights, names, drawn, hover)
    errors = geometry["mse"].sel(norm=norm, predictor="states")
    dealt = float(geometry["spread"].sel(layer=LAST, norm=norm, predictor=SHUFFLED))
    said = words.listed(
        [f"{words.number(float(errors.sel(layer=layer)))} from {PLACES[layer]}" for layer in PLACES]
    )
    data = pd.DataFrame(truth[rows], columns=pd.Index([f"true {name}" for name in names]))
    for layer in PLACES:
        own = read[titles[layer]]
        data = data.assign(**{f"{layer} {name}": own[:, i] for i, name in enumerate(names)})
    return Section(
        "Beliefs, true and read from the net",
        [
            Figure(
                title="True and regressed beliefs",
                views=views,
                caption=Caption(
                    text="Each point is a string that came before. Its colour is that of its true "
                    "belief, in all pictures: each hidden state has a colour, and a belief is "
                    f"their mixture. The mean squared error is {said}, {norm} the norm that "
                    "reads them.",
                    estimand="Beliefs as an affine function of residuals, of strings that the "
                    "regression has not seen",
                    n=f"{len(rows):,} of {len(truth):,} prefixes",
                    interval="none: each point is one prefix; that of the error is among the "
                    "controls",
                    null=f"of beliefs dealt anew to the prefixes, {words.percent(dealt)} of the "
                    "variance is left"
                    if dealt == dealt
                    else "none: all prefixes leave the same belief",
                ),
                alt=f"Points of true beliefs, and of beliefs read from the net. MSE {said}.",
                data=data,
                width=900,
                switch="Read from",
            )
        ],
    )


def controls_section(results: xr.DataTree) -> Section:
    """The verdict, and what the regression is compared with."""
    blocks: list[Block] = [_controls(results, layer) for layer in PLACES]
    for name, node in also_read(results).items():
        blocks += [_controls(node, layer, f" at the {name}") for layer in PLACES]
    return Section("Controls", blocks)


def _controls(results: xr.DataTree, layer: str, where: str = "") -> Table:
    geometry = results["geometry"].to_dataset()
    at = geometry.sel(layer=layer, norm=best_norm(results))
    return Table(
        title=f"Controls, {PLACES[layer]}{where}",
        frame=_controls_shown(control_frame(results, layer)),
        caption=Caption(
            text=f"Verdict: {at['verdict'].values}, {at['reason'].values}. Gain: how much less the "
            "error of the residuals is. Spread: variance of what is predicted, as a share of that "
            "of the beliefs.",
            estimand=f"{ESTIMAND}; {positions_words(results)}",
            n=f"{geometry.sizes['prefix']:,} prefixes of {geometry.attrs['n_strings']:,} strings, "
            "weighted by probability",
            interval=_INTERVAL,
            null="shuffled beliefs, and the best affine prediction from less: the current token, "
            "the exact distribution of the next token, both, an untrained net",
        ),
    )


def layers_section(results: xr.DataTree) -> Section:
    """The error by layer, beside the controls that depend on it."""
    frame, norm = layer_frame(results), best_norm(results)
    geometry = results["geometry"].to_dataset()
    layers = [str(layer) for layer in geometry["layer"].values]
    curves = {}
    for own in geometry["norm"].values:
        curves[f"{own} the norm"] = frame[frame["norm"] == own].reset_index(drop=True)
    # Shuffled beliefs, which the tables have, are all at the variance.
    for name in geometry["control"].drop_sel(control=SHUFFLED).values:
        at = geometry.sel(norm=norm, predictor=name)
        ends = {key: at[key].values for key in ("mse", "mse_low", "mse_high")}
        curves[name] = pd.DataFrame(ends)
    figure = Figure(
        title="Error by layer",
        views={"layers": figures.layer_errors(curves, layers)},
        caption=Caption(
            text="Layer k is the residual that block k reads, last the one after all blocks, all "
            "these joined. Lines of controls are flat where they do not depend on the net; one "
            "that makes no error at all has no place on this axis.",
            estimand=ESTIMAND,
            n=f"{geometry.sizes['prefix']:,} prefixes",
            interval=_INTERVAL,
            null=f"{words.number(float(geometry['variance']))}: the variance of the beliefs",
        ),
        alt="Lines of error by layer, for the net and for the controls.",
        data=frame,
        width=460,
    )
    blocks = [figure, _positions(results), _distances(geometry, norm), *_future(geometry, norm)]
    return Section("Layers", blocks)


def _views(
    truth: np.ndarray,
    shown: np.ndarray,
    read: dict[str, np.ndarray],
    weights: np.ndarray,
    names: list[str],
    drawn: list[str] | None,
    hover: Sequence[str],
) -> dict[str, object]:
    """The true simplex and the regressed ones; of two states, one against the other."""
    colours = colours_of(shown)
    if len(names) <= 2:
        return {
            title.removeprefix("from "): figures.belief_scatter(
                shown[:, -1], own[:, -1], colours, hover, names[-1]
            )
            for title, own in read.items()
        }
    plane = plane_of(truth, weights, names, drawn)
    panels = {"true beliefs": shown, **read}
    return {"simplices": figures.simplices(panels, plane, colours, hover, size=3.0)}


def _positions(results: xr.DataTree) -> Table:
    """Where in the strings the error comes from: mostly from where prefixes are few."""
    frame = position_frame(results)
    return Table(
        title="Error by position",
        frame=frame,
        caption=Caption(
            text="The first positions have few prefixes, each of which counts much; where one of "
            "them is held out, the regression knows next to nothing of its position.",
            estimand=ESTIMAND,
            n=f"{int(frame['prefixes'].sum()):,} prefixes, of each position as many as its row "
            "says, weighted by probability",
            interval="none: not resampled by position; that of all together is among the controls",
            null="the mean belief: the error of one belief for all prefixes, whatever the net says",
        ),
    )


def _distances(geometry: xr.Dataset, norm: str) -> Table:
    at = geometry["distance_r2"].sel(norm=norm)
    frame = pd.DataFrame({"layer": [str(layer) for layer in geometry["layer"].values]})
    for space in at["space"].values:
        for target in at["target"].values:
            name = f"{space}: {str(target).removesuffix(' distributions')}"
            frame[name] = at.sel(space=space, target=target).values
    text = (
        "Do prefixes lie as far from each other as their beliefs do, or only as what they predict "
        "next? Of the residuals themselves, and of the beliefs read from them."
    )
    if frame.isna().any(axis=None):
        text += " Empty where all prefixes predict the same, so that there is no distance."
    return Table(
        title="Distances",
        frame=frame,
        caption=Caption(
            text=text,
            estimand="squared correlation of the Euclidean distances of pairs of prefixes: of "
            "residuals (states) or of the beliefs read from them (predicted), with those of true "
            "beliefs and of exact next-token distributions",
            n=f"pairs of the {geometry.sizes['prefix']:,} prefixes, drawn by their probability",
            interval="none: not resampled, unlike the error by layer",
            null="0: distances that have nothing to do with each other. Beliefs that the next "
            "token tells much of have both columns alike: what counts is their difference",
        ),
    )


def _future(geometry: xr.Dataset, norm: str) -> list[Figure]:
    """How much of what comes is in what is read; nothing where that is always the same,
    and of a single token, which the other figures show."""
    future = geometry["future_r2"].sel(norm=norm)
    frame = pd.DataFrame({"horizon": geometry["horizon"].values})
    for layer, place in PLACES.items():
        frame[place] = future.sel(layer=layer, predictor="states").values
    for name in ("next-token distribution", "current token"):
        frame[name] = future.sel(layer=LAST, predictor=name).values
    if len(frame) < 2 or frame.drop(columns="horizon").isna().to_numpy().all():
        return []
    return [
        Figure(
            title="How far ahead beliefs help",
            views={"future": figures.horizon_lines(frame)},
            caption=Caption(
                text="The joint distribution of the next tokens, predicted from what is read. "
                "A belief tells more of it than the distribution of the next token alone, where "
                "different beliefs predict the same next token.",
                estimand="R² of the exact distribution of strings of so many tokens, out of fold",
                n=f"{geometry.sizes['prefix']:,} prefixes",
                interval="none: not resampled, unlike the error by layer",
                null="0: the mean distribution",
            ),
            alt="Lines of R² by the number of tokens ahead.",
            data=frame,
            width=420,
            widest=720,
        )
    ]


def _controls_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Intervals in words, so that a row can be read."""
    rows = []
    for row in frame.to_dict("records"):
        gain = "" if row["gain"] != row["gain"] else words.interval(
            row["gain"], row["gain_low"], row["gain_high"]
        )  # fmt: skip
        rows.append(
            {
                "predictor": row["predictor"],
                "MSE": words.number(row["mse"]),
                "interval": f"{words.number(row['mse_low'])} to {words.number(row['mse_high'])}",
                "R²": row["r2"],
                "spread": row["spread"],
                "gain": gain,
            }
        )
    return pd.DataFrame(rows)
