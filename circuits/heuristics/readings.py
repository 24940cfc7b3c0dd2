"""The figures of Nikankin et al. 2025, read from what `measure_neurons` and `trace` give."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechnum.circuits.running.values import values


def accuracy(results: xr.DataTree) -> float:
    """The share of all prompts that are answered correctly."""
    return float(results.attrs["accuracy"])


def classified(results: xr.DataTree) -> float:
    """The share of the described neurons that match a heuristic of some kind."""
    matched = np.asarray(values(results, "heuristics", "match").values, dtype=bool)
    return float(matched.any(axis=1).mean())


def knocked_out(results: xr.DataTree, prompts: str) -> float:
    """Accuracy without the neurons of a kind of heuristic, mean over kinds: of prompts that are
    "related" to the heuristics, or "unrelated"."""
    if "knock_out" not in results.children:
        return np.nan
    table = values(results, "knock_out", "accuracy").sel(prompts=prompts, ablated="heuristic")
    return float(table.mean("kind"))
