"""Plain Python types: what may be written to JSON, CSV, HTML and netCDF attributes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeAlias

from mechnum.errors import MechnumError

if TYPE_CHECKING:
    import pandas as pd

Plain: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None


def plain(value: object, digits: int | None = None) -> Plain:
    """`value` in types that JSON knows: None, bool, int, float, str, list, dict.

    NumPy scalars and arrays, torch tensors (bfloat16 too) and pandas columns become Python
    numbers and lists. NaN, infinities and pandas' NA become None, since JSON has no word for them.
    `digits` rounds floats to that many significant digits. Raises MechnumError for other objects.
    """
    if value is None or type(value) in (bool, int, str):
        return value  # type: ignore[return-value]
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item, digits) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, digits) for item in value]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return _float(float(value), digits)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, PurePath):
        return str(value)
    listed = getattr(value, "tolist", None)
    if callable(listed):
        content = listed()
        # bfloat16 scalars of ml_dtypes list themselves as themselves.
        if content is not value:
            return plain(content, digits)
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, SupportsFloat):
        return _float(float(value), digits)
    raise MechnumError(
        f"a {type(value).__name__} cannot be written as plain data: "
        "give numbers, strings, lists, mappings or arrays"
    )


def columns(frame: pd.DataFrame, digits: int | None = None) -> dict[str, list[Any]]:
    """The columns of `frame` as lists of plain values, by name."""
    return {
        str(name): [plain(item, digits) for item in frame[name].tolist()] for name in frame.columns
    }


def _float(value: float, digits: int | None) -> float | None:
    if not math.isfinite(value):
        return None
    return value if digits is None else float(f"{value:.{digits}g}")
