"""The section about neurons of nets that add modulo p: one frequency each, and their phases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import figures, reading, words
from mechnum.report.blocks import Block, Caption, Figure
from mechnum.report.page import Section

ONE_FREQUENCY = 0.85  # Nanda et al. 2023: a neuron is one of a frequency from this share on.
_STRONG = 0.8


def modular_section(results: xr.DataTree) -> Section | None:
    """How much one frequency explains of each neuron, and whether phases add up."""
    shares, phases = reading.group(results, "frequencies"), reading.group(results, "phases")
    blocks: list[Block] = []
    if shares is not None:
        blocks.append(_shares(shares))
    if phases is not None and bool(phases["difference"].notnull().any()):
        blocks.append(_phases(phases))
    return Section("Modular neurons", blocks) if blocks else None


def _shares(shares: xr.Dataset) -> Figure:
    p = int(shares.attrs["modulus"])
    explained = shares["explained"].values.ravel()
    known = explained[np.isfinite(explained)]
    counts = shares["n_neurons"].sum("layer").to_series().rename("neurons")
    keys = counts[counts > 0].sort_values(ascending=False)
    named = [f"{int(k)} ({int(n):,})" for k, n in keys.head(6).items()]
    share = float(np.mean(known >= ONE_FREQUENCY)) if len(known) else float("nan")
    text = (
        f"{words.percent(share)} of the neurons are explained to {words.percent(ONE_FREQUENCY)} "
        f"or more by one frequency. Dominant frequencies, with neurons: {words.listed(named)}."
    )
    return Figure(
        title="One frequency for each neuron",
        views={"share": figures.ecdf_lines({"neurons": known}, "share of one frequency", 0.0)},
        caption=Caption(
            text=text,
            estimand="Power of the activations over all pairs in the products of 1, cos and sin of "
            "one frequency in a and in b, as a share of all but the mean",
            n=f"{len(known):,} neurons",
            interval="none: exact over all pairs; the line is the neurons themselves",
            # cos and sin in a, in b, and their four products, of p² − 1 directions in all.
            null=f"{words.percent(8 / (p**2 - 1))} at each frequency of values at random, somewhat "
            f"more at the best of {shares.sizes['frequency']}",
        ),
        alt=text,
        data=counts.reset_index(),
        width=420,
    )


def _phases(phases: xr.Dataset) -> Figure:
    strong = phases["power"].sel(profile="a") >= _STRONG
    size = np.abs(phases["difference"].where(strong).values.ravel())
    size = size[np.isfinite(size)]
    median = float(np.median(size)) if len(size) else float("nan")
    text = (
        f"|φ_a + φ_b − φ_out| is {words.number(median)} rad in the median: what a neuron writes "
        "has the sum of the phases that it reads."
        if len(size)
        else "No neuron has a profile of one frequency."
    )
    return Figure(
        title="Phases add up",
        views={
            "difference": figures.ecdf_lines(
                {"neurons": 1 - size / np.pi}, "1 − |φ_a + φ_b − φ_out| / π", 0.0
            )
        },
        caption=Caption(
            text=text,
            estimand="Phases of the strongest wave of the mean over b, of the mean over a, and of "
            "W_out · W_U over the classes",
            n=f"{len(size):,} neurons whose three profiles share one frequency that holds "
            f"{words.percent(_STRONG)} of the profile of a or more",
            interval="none: exact means over all pairs; the line is the neurons themselves",
            null="0.5: phases that have nothing to do with each other",
        ),
        alt=text,
        data=pd.DataFrame({"difference": size}),
        width=420,
    )
