"""The figures of Nanda et al. 2023, read from what `measure_grokking` gives."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from mechnum.circuits.running.values import values


def n_keys(results: xr.DataTree) -> float:
    """How many key frequencies there are."""
    return float(results["progress"].sizes["key"])


def value(results: xr.DataTree, name: str) -> float:
    """A progress measure that is one number."""
    found = results["progress"].to_dataset()
    return float(found[name]) if name in found else np.nan


def over_pairs(results: xr.DataTree, name: str) -> float:
    """A progress measure of the test pairs; of all pairs where the split is not known."""
    progress = results["progress"].to_dataset()
    return float(progress[name].sel(part="test" if "test" in progress["part"] else "all"))


def over_all(results: xr.DataTree, name: str) -> float:
    """A progress measure of all pairs."""
    return float(values(results, "progress", name).sel(part="all"))


def least(results: xr.DataTree, name: str) -> float:
    """The smallest of a measure of several parts of the net."""
    return float(values(results, "progress", name).min())


def most(results: xr.DataTree, name: str) -> float:
    """The largest of a measure of several parts of the net."""
    return float(values(results, "progress", name).max())


def phase_end(results: xr.DataTree, phase: str) -> float:
    """The step at which a phase of training ends; NaN without checkpoints."""
    if "over" not in results.children:
        return np.nan
    step = json.loads(results["over"].attrs.get("phases", "{}")).get(phase)
    return np.nan if step is None else float(step)
