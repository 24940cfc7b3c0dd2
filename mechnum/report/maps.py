"""Small pictures in a table: one map over two axes for each row, which opens on a click."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int8

from mechnum.errors import MechnumError
from mechnum.report.plain import plain

_STEPS = 127  # On either side of zero: what a signed byte holds.
_MISSING = -128


@dataclass(frozen=True)
class Maps:
    """A map for each row of a table, drawn small in a column of its own.

    A page keeps a map as one byte for each value, in 127 steps from 0 to the map's largest.

    Attributes:
        column: heading of the column.
        names: what is shown when a row's map is opened, one for each row.
        views: name → values over rows and the two axes; NaN where there is none. Opened maps show
            all views side by side, rows the first one.
        x, y: what the axes count, the labels along them in order.
        titles: of the axes x and y.
    """

    column: str
    names: Sequence[str]
    views: Mapping[str, Float[np.ndarray, "row y x"]]
    x: Sequence[int]
    y: Sequence[int]
    titles: tuple[str, str]

    def __post_init__(self) -> None:
        wanted = (len(self.names), len(self.y), len(self.x))
        for name, values in self.views.items():
            if values.shape != wanted:
                raise MechnumError(
                    f"maps {name!r} have the shape {values.shape}, not {wanted}: give one map over "
                    "y and x for each row"
                )

    @property
    def payload(self) -> dict[str, Any]:
        """The maps as plain JSON: bytes in base64, and what the largest byte stands for."""
        return {
            "column": self.column,
            "names": list(self.names),
            "x": plain(list(self.x)),
            "y": plain(list(self.y)),
            "titles": list(self.titles),
            "steps": _STEPS,
            "missing": _MISSING,
            "views": {
                name: [_packed(one) for one in np.asarray(values, dtype=np.float64)]
                for name, values in self.views.items()
            },
        }


def _packed(values: Float[np.ndarray, "y x"]) -> dict[str, Any]:
    finite = np.isfinite(values)
    end = float(np.abs(values[finite]).max(initial=0.0))
    codes: Int8[np.ndarray, "y x"] = np.full(values.shape, _MISSING, dtype=np.int8)
    codes[finite] = np.round(values[finite] / (end or 1.0) * _STEPS).astype(np.int8)
    return {"end": plain(end, 6), "codes": base64.b64encode(codes.tobytes()).decode("ascii")}
