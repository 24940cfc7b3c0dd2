"""Variables of steps' results, for readings."""

from __future__ import annotations

import xarray as xr


def values(results: xr.DataTree, group: str, name: str) -> xr.DataArray:
    """The variable `name` of a group of results."""
    return results[group].to_dataset()[name]
