"""The figures of Štefánik et al. 2026, read from the results of this circuit's steps."""

from __future__ import annotations

from typing import Literal

import numpy as np
import xarray as xr

from mechnum.circuits.running.values import values

Layer = Literal["best", "first", "last"]


def of_number(
    results: xr.DataTree, variable: str, position: str, probe: str, layer: Layer
) -> float:
    """The share of a number of the task that is read at a position; the first layer is the
    embedding."""
    read = values(results, "task_probes", "accuracy")
    if variable not in read["variable"] or position not in read["position"]:
        return np.nan
    return _at(results, read.sel(variable=variable, position=position, probe=probe), layer)


def in_texts(results: xr.DataTree, probe: str, layer: Layer) -> float:
    """The share of numbers in texts that a probe reads."""
    read = values(results, "probes", "accuracy")
    return _at(results, read.sel(probe=probe), layer) if probe in read["probe"] else np.nan


def of_other_layers(results: xr.DataTree, layer: Layer) -> float:
    """The share that the probe of all other layers reads."""
    if "transfer" not in results.children or "other_layers" not in results["transfer"].children:
        return np.nan
    return _at(results, values(results, "transfer/other_layers", "accuracy"), layer)


def alike(
    results: xr.DataTree, measure: str, first: str = "", second: str = "", tokens: bool = False
) -> float:
    """The median over pairs of different models of a measure of similarity.

    Args:
        first, second: are in the names of the two models.
        tokens: of other tokens in place of the numbers.
    """
    pairs = results["pairs"].to_dataset().sel(measure=measure)
    chosen = [
        place
        for place, (a, b) in enumerate(zip(_models(pairs["a"]), _models(pairs["b"]), strict=True))
        if a != b and ((first in a and second in b) or (first in b and second in a))
    ]
    own = pairs["null_mean"].sel(null="tokens") if tokens else pairs["value"]
    found = own.values[chosen]
    return float(np.median(found)) if len(found) else np.nan


def repaired(results: xr.DataTree) -> float:
    """The share of wrong answers that the probe's vectors of the right ones repair at best."""
    return float(values(results, "best", "repaired").sel(vector="probe"))


def readable(results: xr.DataTree) -> float:
    """The share of wrongly answered prompts in whose state the probe reads the right answer, at the
    best layer."""
    found = results["steering"].to_dataset()
    read = (found["decoded"] == found["answer"]).sel(prompt=~found["right_before"])
    return float(read.mean("prompt").max())


def n_right(results: xr.DataTree, kind: str) -> float:
    """How many words of a kind param-sin reads without having seen them, at the best layer."""
    if kind not in results["ordinals"].children:
        return np.nan
    right = values(results, f"ordinals/{kind}", "n_right")
    return float(right.sel(probe="param-sin").max()) if "param-sin" in right["probe"] else np.nan


def _at(results: xr.DataTree, read: xr.DataArray, layer: Layer) -> float:
    """The value at a layer of the model, NaN where that one was not read."""
    if layer == "best":
        return float(read.max())
    (dim,) = read.dims
    at = -1 if layer == "first" else int(results.attrs["n_layers"]) - 1
    return float(read.sel({dim: at})) if at in read[dim] else np.nan


def _models(labels: xr.DataArray) -> list[str]:
    """Names of models in labels such as "adder-gptj, layer 3"."""
    return [str(label).rpartition(", ")[0] for label in labels.values]
