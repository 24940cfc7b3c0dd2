"""Files of results: netCDF, CSV, Parquet and JSON, each written whole or not at all."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechnum.errors import MechnumError
from mechnum.files import replacing
from mechnum.report.plain import columns, plain

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import xarray as xr


def write_netcdf(results: xr.DataTree, path: str | Path) -> Path:
    """Write a tree of results as netCDF-4.

    Values keep their type, apart from half-precision floats, which become float32. Attributes that
    netCDF cannot hold (None, booleans, mappings, nested lists) become JSON text.
    """
    import xarray as xr

    safe = xr.DataTree.from_dict(
        # Inherited coordinates would be written once more in each child.
        {node.path: _safe_dataset(node.to_dataset(inherit=False)) for node in results.subtree}
    )
    with replacing(path) as temporary:
        safe.to_netcdf(temporary, engine="netcdf4")
    return Path(path)


def read_netcdf(path: str | Path) -> xr.DataTree:
    """Read a tree of results into memory and close the file."""
    import xarray as xr

    try:
        with xr.open_datatree(path, engine="netcdf4") as tree:
            # `DataTree.load` leaves out a variable that has the name of a node (xarray 2026.9).
            return xr.DataTree.from_dict(
                {node.path: node.to_dataset(inherit=False).load() for node in tree.subtree},
                name=tree.name,
            )
    except FileNotFoundError as error:
        raise MechnumError(f"there is no file {path}: give the path of a results.nc") from error
    except (OSError, ValueError) as error:
        raise MechnumError(
            f"{path} is not a netCDF file of results: give a results.nc that mechnum wrote"
        ) from error


def write_csv(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write a table as CSV with all digits of every number; missing values are empty cells."""
    content = columns(frame)
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(content)
        writer.writerows(zip(*content.values(), strict=True))
    return Path(path)


def write_parquet(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write a table as Parquet: columns keep their types, missing values are null."""
    with replacing(path) as temporary:
        frame.to_parquet(temporary, engine="pyarrow", index=False)
    return Path(path)


def write_json(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write a table as JSON {column: [values]} with all digits; missing values are null."""
    with replacing(path) as temporary:
        text = json.dumps(columns(frame), allow_nan=False, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")
    return Path(path)


def safe_attribute(value: Any) -> str | int | float | list[Any]:
    """An attribute that netCDF can hold: text and numbers as they are, others as JSON text."""
    content = plain(value)
    if isinstance(content, (str, float)) or type(content) is int:
        return content
    if isinstance(content, list) and content and _alike(content):
        return content
    if content is None and isinstance(value, float):
        return value  # NaN and infinities are numbers to netCDF.
    return json.dumps(content, ensure_ascii=False)


def _alike(items: list[Any]) -> bool:
    return all(type(item) is float for item in items) or all(type(item) is int for item in items)


def _safe_dataset(dataset: xr.Dataset) -> xr.Dataset:
    import xarray as xr

    variables = {}
    for name, variable in dataset.variables.items():
        content = variable.copy(deep=False, data=_safe_values(variable.data))
        content.attrs = {str(key): safe_attribute(item) for key, item in variable.attrs.items()}
        # What a file that was read before said of its encoding need not suit this one.
        content.encoding = {}
        variables[name] = content
    safe = xr.Dataset(
        {name: variables[name] for name in dataset.data_vars},
        coords={name: variables[name] for name in dataset.coords},
    )
    return safe.assign_attrs({str(k): safe_attribute(v) for k, v in dataset.attrs.items()})


def _safe_values(data: Any) -> np.ndarray:
    import numpy as np

    values = np.asarray(data)
    if values.dtype.kind in "iub":
        return values
    if values.dtype.kind == "f" and values.dtype.itemsize >= 4:
        return values
    # Half precision floats; those of ml_dtypes (bfloat16) are of kind "V" or "f".
    if values.dtype.kind == "f" or "float" in values.dtype.name:
        return values.astype(np.float32)
    return np.array([str(plain(item) or "") for item in values.ravel()], dtype=object).reshape(
        values.shape
    )
