"""The figures of Zhou et al. 2024, read from what the lens and the filters give."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechnum.circuits.running.values import values


def unfiltered(results: xr.DataTree, measure: str) -> float:
    """A measure of the drawn prompts with nothing removed."""
    table = values(results, "table", "mean")
    row = _row(table, "nothing", "nothing", "nothing")
    return np.nan if row is None else float(table.sel(measure=measure)[row])


def without(results: xr.DataTree, modules: str, removed: str, measure: str) -> float:
    """A measure where "low" or "high" components are removed from modules; NaN where these take all
    directions of the residual stream, so that the modules write nothing."""
    table = values(results, "table", "mean")
    row = _row(table, modules, f"{removed} removed", "filter")
    if row is None or int(table["rank"][row]) >= int(results.attrs["d_model"]):
        return np.nan
    return float(table.sel(measure=measure)[row])


def _row(table: xr.DataArray, modules: str, band: str, projection: str) -> int | None:
    """The first condition of these modules whose band is called so."""
    names = ("modules", "band", "projection")
    conditions = zip(*(table[name].values for name in names), strict=True)
    for row, (own_modules, own_band, own_projection) in enumerate(conditions):
        of_band = str(own_band).split(",")[0] == band
        if of_band and (own_modules, own_projection) == (modules, projection):
            return row
    return None
