"""The figures of Shai et al. 2024, read from what `measure_beliefs` gives."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechnum.circuits.running.values import values


def score(results: xr.DataTree, name: str, layer: str, norm: str) -> float:
    """A score of the regression on one layer: `mse`, `rmse` or `r2`."""
    table = results["geometry"].to_dataset()
    if norm not in table["norm"].values or layer not in table["layer"].values:
        return np.nan
    return float(table[name].sel(layer=layer, norm=norm, predictor="states"))


def distances(results: xr.DataTree, target: str) -> float:
    """Squared correlation of distances among all layers' states with those among a target."""
    table = values(results, "geometry", "distance_r2")
    norm = "after" if "after" in table["norm"] else "before"
    return float(table.sel(layer="all", norm=norm, space="states", target=target))


def n_beliefs(results: xr.DataTree) -> float:
    """How many different beliefs the mixed-state tree has."""
    return float(results["mixed_states"].sizes["mixed_state"])
