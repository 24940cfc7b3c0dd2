"""The section about the helix: fit and causal score by layer and site, and its planes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, findings, reading, words
from mechnum.report.blocks import Block, Caption, Figure
from mechnum.report.intervals import INTERVAL_WORDS, ONE_FIT
from mechnum.report.page import Section


def helix_section(results: xr.DataTree, sites: dict[str, pd.DataFrame]) -> Section | None:
    """Held-out R² and causal score by layer, one panel for each site, and the helix's planes."""
    blocks: list[Block] = []
    if sites:
        datasets = reading.helix_sites(results)
        attrs = reading.attributes(results, next(iter(datasets.values())))
        fit = fit_words(datasets)
        data = pd.concat(
            [frame.assign(site=site) for site, frame in sites.items()], ignore_index=True
        )
        data = data[["site", *data.columns.drop("site")]]
        if "r2" in data:
            blocks.append(_fits(sites, data, fit))
        if "score" in data:
            blocks.append(_scores(sites, data, fit, attrs))
    planes = reading.group(results, "helix/planes")
    if planes is not None and "coordinates" in planes:
        blocks.append(_planes(planes))
    return Section("Helix", blocks) if blocks else None


def _fits(sites: dict[str, pd.DataFrame], data: pd.DataFrame, fit: str) -> Figure:
    cut = " Values below the axis are in the table." if data["r2"].min() < figures.R2_FLOOR else ""
    return Figure(
        title="How well each fit explains the states",
        views={"r2": figures.r2_by_layer(_titled(sites))},
        caption=Caption(
            text="R² of what each fit predicts for the clean states of the pairs, by layer; emb is "
            f"the embedding.{cut}",
            estimand=f"Share of the variance of the states over pairs that the fit explains{fit}",
            n=words.count_range(data["n"], "pairs")
            if "n" in data
            else "the pairs that are patched; how many is not in the results",
            interval=ONE_FIT,
            null="0 or less: the fit predicts no better than the mean state",
        ),
        alt=f"Lines of R² by layer. {findings.joined(findings.helix_points(sites))}",
        data=data[["site", "layer", "method", "r2"]],
        width=_width(sites),
    )


def _scores(
    sites: dict[str, pd.DataFrame], data: pd.DataFrame, fit: str, attrs: Mapping[str, Any]
) -> Figure:
    return Figure(
        title="What each fit causes",
        views={"score": figures.scores_by_layer(_titled(sites), words.unit(attrs))},
        caption=Caption(
            text="The state after a layer is overwritten, at one position of the corrupt run, by "
            "the clean state (full state) or by a fit of it. Bands are intervals.",
            estimand=f"Change of {words.metric(attrs)} in the corrupt run{fit}",
            n=words.count_range(data["n"], "pairs"),
            interval=INTERVAL_WORDS,
            null=f"{score_null(data)} The full state is what a perfect fit would reach.",
        ),
        alt=f"Lines of causal score by layer. {findings.joined(findings.helix_points(sites))}",
        data=data.drop(columns="r2", errors="ignore"),
        width=_width(sites),
    )


def score_null(frame: pd.DataFrame) -> str:
    """What a causal score is to be compared with, in a sentence or two."""
    null = "0: what was written does not move the answer."
    if "permuted" in set(frame["method"]):
        # Any state in place of the corrupt one removes the corrupt number, and so scores.
        null += " The helix of shuffled numbers: what any state of this kind does."
    return null


IN_PLANES = (
    "Least-squares coordinates of each number's mean state on the directions of the fitted helix, "
    "which was fitted to these states too: how well it predicts others is not seen here"
)
NOT_DRAWN = "none: each point is one number's mean state"
OFF_THE_CURVE = (
    "states dealt to the numbers at random: points scattered widely about the curve, which is "
    "fitted to them even then"
)


def _planes(dataset: xr.Dataset) -> Figure:
    frame = figures.planes_frame(dataset)
    attrs = dataset.attrs
    where = f" at {attrs['site']}" if "site" in attrs else ""
    where += f" {words.after_layer(int(attrs['layer']))}" if "layer" in attrs else ""
    flat = frame.groupby("period")["sin"].apply(lambda sin: not sin.abs().max() > 1e-9)
    text = (
        f"The mean state of each number{where}, projected on the fitted helix: one panel for each "
        "period T, and the linear coordinate against the number. A number that is where the helix "
        "says lies on the unit circle, at the angle 2πn/T, and on the diagonal."
    )
    if "r2" in attrs:
        text += f" The helix explains R² = {words.number(float(attrs['r2']))} of these states."
    for period in flat.index[flat]:
        name = words.number(float(period), 4)
        text += f" sin is 0 for T = {name} on whole numbers, so that panel shows cos against n."
    periods = [words.number(float(period), 4) for period in dict.fromkeys(frame["period"])]
    return Figure(
        title="The helix in its planes",
        views={view: figures.planes(frame, view) for view in ("number", "phase")},
        switch="Colour",
        caption=Caption(
            text=text,
            estimand=IN_PLANES,
            n=f"{frame['number'].nunique():,} numbers",
            interval=NOT_DRAWN,
            null=OFF_THE_CURVE,
        ),
        alt="Scatter plots of the states of numbers in the planes of the periods "
        f"{words.listed(periods)}.",
        data=frame,
        width=640,
    )


def _titled(sites: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    return {f"at {site}": frame for site, frame in sites.items()}


def _width(sites: dict[str, pd.DataFrame]) -> int:
    return 120 + 200 * len(sites)


def fit_words(datasets: Mapping[str, xr.Dataset]) -> str:
    """How the fits were made, in brackets; all but the variables is the same at every site."""
    attrs = next(iter(datasets.values())).attrs
    parts = []
    periods = reading.structured(attrs.get("periods"))
    if periods is not None:
        named = [words.number(float(period), 4) for period in np.ravel(periods)]
        parts.append(f"periods {words.listed(named)}")
    variables = [
        f"{dataset.attrs['features']} at {site}"
        for site, dataset in datasets.items()
        if "features" in dataset.attrs
    ]
    if variables:
        parts.append(f"of {words.listed(variables)}")
    if "components" in attrs:
        parts.append(f"within {attrs['components']} principal components")
    if attrs.get("folds") == "in sample":
        parts.append("in sample: the fits have seen the pairs' numbers")
    elif "folds" in attrs:
        parts.append(f"out of sample: {attrs['folds']} folds of numbers")
    return f" ({'; '.join(parts)})" if parts else ""
