"""Sections about the beliefs in a net: side by side, controls, layers, training, causal test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.intervals import mean_interval
from mechnum.report import figures, reading, words
from mechnum.report.belief_frames import (
    best_norm,
    colours_of,
    control_frame,
    drawn_states,
    layer_frame,
    plane_of,
    shown_steps,
    some,
)
from mechnum.report.blocks import Block, Caption, Figure, Table
from mechnum.report.intervals import INTERVAL_WORDS
from mechnum.report.page import Section

LAST, ALL = "last", "all"
PLACES = {LAST: "the last residual", ALL: "all residuals joined"}
_INTERVAL = "95 % percentile bootstrap over whole strings"
_ESTIMAND = "mean squared error over coordinates of the belief, of strings that are held out"
_PANEL_POINTS = 800


def side_by_side(results: xr.DataTree) -> Section:
    """True beliefs beside those that are read from the last and from all residuals."""
    geometry, norm = results["geometry"].to_dataset(), best_norm(results)
    truth, weights = geometry["belief"].values, geometry["weight"].values
    rows = some(len(truth))
    titles = {layer: f"read from {name}" for layer, name in PLACES.items()}
    read = {
        title: geometry["predicted"].sel(layer=layer, norm=norm).values[rows]
        for layer, title in titles.items()
    }
    names = [str(name) for name in geometry["coordinate"].values]
    drawn = drawn_states(results)
    hover = _hover(geometry, rows, names)
    views = _views(truth, truth[rows], read, weights, names, drawn, hover)
    errors = geometry["mse"].sel(norm=norm, predictor="states")
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
                    null="shuffled beliefs collapse to one point",
                ),
                alt=f"Points of true beliefs, and of beliefs read from the net. MSE {said}.",
                data=data,
                width=640,
                switch="Read from",
            )
        ],
    )


def controls_section(results: xr.DataTree) -> Section:
    """The verdict, and what the regression is compared with."""
    blocks: list[Block] = []
    geometry = results["geometry"].to_dataset()
    for layer, place in PLACES.items():
        frame = control_frame(results, layer)
        at = geometry.sel(layer=layer, norm=best_norm(results))
        blocks.append(
            Table(
                title=f"Controls, {place}",
                frame=_controls_shown(frame),
                caption=Caption(
                    text=f"Verdict: {at['verdict'].values}, {at['reason'].values}. Gain: how much "
                    "less the error of the residuals is. Spread: variance of what is predicted, as "
                    "a share of that of the beliefs.",
                    estimand=_ESTIMAND,
                    n=f"{geometry.sizes['prefix']:,} prefixes of "
                    f"{geometry.attrs['n_strings']:,} strings, weighted by probability",
                    interval=_INTERVAL,
                    null="shuffled beliefs, and the best affine prediction from less: the current "
                    "token, the exact distribution of the next token, an untrained net",
                ),
            )
        )
    return Section("Controls", blocks)


def layers_section(results: xr.DataTree) -> Section:
    """The error by layer, beside the controls that depend on it."""
    frame, norm = layer_frame(results), best_norm(results)
    geometry = results["geometry"].to_dataset()
    layers = [str(layer) for layer in geometry["layer"].values]
    curves = {}
    for own in geometry["norm"].values:
        curves[f"{own} the norm"] = frame[frame["norm"] == own].reset_index(drop=True)
    for name in ("untrained net", "current token", "next-token distribution", "shuffled beliefs"):
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
            estimand=_ESTIMAND,
            n=f"{geometry.sizes['prefix']:,} prefixes",
            interval=_INTERVAL,
            null=f"{words.number(float(geometry['variance']))}: the variance of the beliefs",
        ),
        alt="Lines of error by layer, for the net and for the controls.",
        data=frame,
        width=460,
    )
    return Section("Layers", [figure, _distances(geometry, norm), *_future(geometry, norm)])


def training_section(results: xr.DataTree) -> Section | None:
    """How the geometry came about, beside the loss."""
    found = reading.group(results, "snapshots")
    if found is None:
        return None
    norm = str(found["norm"].values[-1])
    frame = pd.DataFrame(
        {
            "step": found["step"].values,
            "excess": found["heldout_loss"].values - found["bound"].values,
            **{layer: found["mse"].sel(layer=layer, norm=norm).values for layer in PLACES},
        }
    )
    curve = Figure(
        title="Loss and error of the beliefs by step",
        views={"curves": figures.training_errors(frame, {key: PLACES[key] for key in PLACES})},
        caption=Caption(
            text="Above, how far the loss is from the best there is; below, how far the beliefs "
            f"that are read from the net are from the true ones ({norm} the norm).",
            estimand=f"divergence from the exact next-token distribution; {_ESTIMAND}",
            n=f"{found.sizes['prefix']:,} prefixes of {found.attrs['n_strings']:,} strings",
            null=f"{words.number(float(found['variance']))}: the variance of the beliefs",
        ),
        alt="Falling lines of loss and of error by step.",
        data=frame,
        width=460,
    )
    return Section("Along training", [curve, _sequence(results, found, norm)])


def patching_section(results: xr.DataTree) -> Section | None:
    """Do predictions follow where a belief is replaced?"""
    found = reading.group(results, "patching")
    if found is None:
        return None
    spread = mean_interval(
        found["kl"].transpose("pair", "layer", "patch", "step"), seed=reading.seed(results)
    )
    views, rows = {}, []
    for layer in found["layer"].values:
        at = spread.sel(layer=layer)
        frame = pd.DataFrame(
            {
                "step": np.tile(found["step"].values, found.sizes["patch"]),
                "patch": np.repeat(found["patch"].values, found.sizes["step"]),
                **{
                    name: at[own].transpose("patch", "step").values.ravel()
                    for name, own in (("kl", "mean"), ("kl_low", "low"), ("kl_high", "high"))
                },
            }
        )
        last = int(layer) == int(found["layer"].values[-1])
        views["last residual" if last else f"input of block {layer}"] = figures.patching_lines(
            frame
        )
        rows.append(frame.assign(layer=int(layer)))
    followed = found["followed"].mean("step").to_pandas()
    shown = followed.drop(columns=["none", "target run"]).reset_index()
    at, n = int(found.attrs["position"]), int(found.attrs["n_pairs"])
    estimand = "KL of the exact next-token distribution after the target's history, from the net's"
    return Section(
        "Causal test",
        [
            Figure(
                title="Predictions after a belief is replaced",
                views=views,
                caption=Caption(
                    text=f"At position {at} of a string the part of the residual that says the "
                    "belief is replaced by that of another history; both go on with the same "
                    "tokens. Where the patch is the belief and the line falls to that of the "
                    "target's own run, predictions have followed.",
                    estimand=estimand,
                    n=f"{n:,} pairs of histories",
                    interval=INTERVAL_WORDS,
                    null="none: nothing is replaced; random: the other history's part in as many "
                    "random directions",
                ),
                alt="Lines of divergence by tokens after the patch.",
                data=pd.concat(rows, ignore_index=True),
                width=460,
                switch="Patched",
            ),
            Table(
                title="How far predictions follow",
                frame=shown,
                caption=Caption(
                    text="1: as the target's own run; 0: as though nothing was replaced. Later "
                    "tokens still read the base history by attention, which a patch of one "
                    "residual does not change.",
                    estimand=f"share of the way from no patch to the target's run, of the mean "
                    f"{estimand}, mean over the tokens that follow",
                    n=f"{n:,} pairs of histories",
                ),
            ),
        ],
    )


def _views(
    truth: np.ndarray,
    shown: np.ndarray,
    read: dict[str, np.ndarray],
    weights: np.ndarray,
    names: list[str],
    drawn: list[str] | None,
    hover: Sequence[str],
) -> dict[str, object]:
    """The true and a regressed simplex for each reading; of two states, one against the other."""
    colours = colours_of(shown)
    if len(names) <= 2:
        return {
            title.removeprefix("read from "): figures.belief_scatter(
                shown[:, -1], own[:, -1], colours, hover, names[-1]
            )
            for title, own in read.items()
        }
    plane = plane_of(truth, weights, names, drawn)
    return {
        title.removeprefix("read from "): figures.simplices(
            {"true beliefs": shown, title: own}, plane, colours, hover
        )
        for title, own in read.items()
    }


def _sequence(results: xr.DataTree, found: xr.Dataset, norm: str) -> Figure:
    """The regressed simplex at some steps, from the untrained net on."""
    steps = shown_steps(results)
    truth, names = found["belief"].values, [str(name) for name in found["coordinate"].values]
    rows = some(len(truth), _PANEL_POINTS)
    hover = _hover(found, rows, names)
    views = {}
    for layer, place in PLACES.items():
        read = {
            f"step {step:,}": found["predicted"].sel(step=step, layer=layer, norm=norm).values[rows]
            for step in steps
        }
        plane = plane_of(truth, found["weight"].values, names, drawn_states(results))
        if len(names) <= 2:
            # One probability: what is true across, what is read upwards.
            read = {
                title: np.column_stack([truth[rows][:, -1], own[:, -1]])
                for title, own in read.items()
            }
            plane = plane_of(read[next(iter(read))], np.ones(len(rows)), ["true", "read"], None)
        views[place] = figures.simplices(read, plane, colours_of(truth[rows]), hover, size=2.5)
    return Figure(
        title="The regressed beliefs along training",
        views=views,
        caption=Caption(
            text="The same strings at some steps, step 0 being the untrained net; colours are "
            "those of the true beliefs.",
            estimand="Beliefs as an affine function of residuals, out of fold, fitted anew at each "
            "step",
            n=f"{len(rows):,} of {len(truth):,} prefixes",
        ),
        alt="Points of regressed beliefs at several steps of training.",
        data=pd.DataFrame({"step": steps}),
        width=900,
        switch="Read from",
    )


def _distances(geometry: xr.Dataset, norm: str) -> Table:
    at = geometry["distance_r2"].sel(norm=norm)
    frame = pd.DataFrame({"layer": [str(layer) for layer in geometry["layer"].values]})
    for space in at["space"].values:
        for target in at["target"].values:
            frame[f"{space}, {target}"] = at.sel(space=space, target=target).values
    return Table(
        title="Distances",
        frame=frame,
        caption=Caption(
            text="Do prefixes lie as far from each other as their beliefs do, or only as what they "
            "predict next? Of the residuals themselves, and of the beliefs read from them.",
            estimand="squared correlation of the distances of pairs of prefixes",
        ),
    )


def _future(geometry: xr.Dataset, norm: str) -> list[Figure]:
    """How much of what comes is in what is read; nothing where that is always the same."""
    future = geometry["future_r2"].sel(norm=norm)
    frame = pd.DataFrame({"horizon": geometry["horizon"].values})
    for layer, place in PLACES.items():
        frame[place] = future.sel(layer=layer, predictor="states").values
    for name in ("next-token distribution", "current token"):
        frame[name] = future.sel(layer=LAST, predictor=name).values
    if frame.drop(columns="horizon").isna().to_numpy().all():
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


def _hover(found: xr.Dataset, rows: np.ndarray, names: list[str]) -> list[str]:
    """What is said of a prefix: how long it is, and its true belief."""
    return [
        f"{int(position) + 1} tokens<br>true: "
        + ", ".join(f"{name} {words.number(float(p))}" for name, p in zip(names, own, strict=True))
        for position, own in zip(
            found["position"].values[rows], found["belief"].values[rows], strict=True
        )
    ]
