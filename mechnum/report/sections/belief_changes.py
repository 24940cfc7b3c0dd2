"""Sections on how beliefs come about along training, and on what replacing them does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.intervals import mean_interval
from mechnum.report import figures, reading, words
from mechnum.report.belief_frames import (
    PLACES,
    colours_of,
    drawn_states,
    followed_frame,
    hover_texts,
    patched_place,
    plane_of,
    shown_steps,
    some,
)
from mechnum.report.blocks import Caption, Figure, Table
from mechnum.report.intervals import INTERVAL_WORDS
from mechnum.report.page import Section
from mechnum.report.sections.beliefs import ESTIMAND

_PANEL_POINTS = 800


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
            estimand=f"divergence from the exact next-token distribution; {ESTIMAND}",
            n=f"{found.attrs['n_prefixes']:,} prefixes of {found.attrs['n_strings']:,} strings",
            interval="none: one training run; the same strings and folds at every step",
            null=f"{words.number(float(found['variance']))}: the variance of the beliefs",
        ),
        alt="Falling lines of loss and of error by step.",
        data=frame,
        width=460,
    )
    # What is kept with a bundled net has no predictions of single prefixes.
    sequence = [_sequence(results, found, norm)] if "predicted" in found else []
    return Section("Along training", [curve, *sequence])


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
        views[patched_place(found, int(layer))] = figures.patching_lines(frame)
        rows.append(frame.assign(layer=int(layer)))
    shown = followed_frame(found)
    if len(shown):
        shown["layer"] = [patched_place(found, layer) for layer in shown["layer"]]
        shown = shown.rename(columns={"layer": "patched"})
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
                    text="1: as the target's own run; 0: as though nothing was replaced; below 0: "
                    "away from it. Patches: belief moves the residual as it changes with the "
                    "belief, by a regression on beliefs; readout replaces its part along the "
                    "directions that beliefs are read from; state replaces all of it. The next "
                    "token is predicted at the patched position itself; later ones still read the "
                    "base history by attention, which a patch of one residual does not change. "
                    "Tokens are left out where both histories predict alike.",
                    estimand=f"share of the way from no patch to the target's run, of the sum over "
                    f"tokens and pairs of the {estimand}",
                    n=f"{n:,} pairs of histories",
                    interval="none: shares of sums, whose intervals the figure above has",
                    null="0: nothing was replaced; “random”: the other history's part in as many "
                    "random directions",
                ),
            ),
        ],
    )


def _sequence(results: xr.DataTree, found: xr.Dataset, norm: str) -> Figure:
    """The regressed simplex at some steps, from the untrained net on."""
    steps = shown_steps(results)
    truth, names = found["belief"].values, [str(name) for name in found["coordinate"].values]
    rows = some(len(truth), _PANEL_POINTS)
    hover = hover_texts(found, rows, names)
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
            plane = plane._replace(axes=(f"true, {names[-1]}", "read"))
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
            interval="none: each point is one prefix; the error by step is above",
            null="what cannot be read at all falls near one point, the mean belief",
        ),
        alt="Points of regressed beliefs at several steps of training.",
        data=pd.DataFrame({"step": steps}),
        width=900,
        switch="Read from",
    )
