"""How often numbers occur in a text: the baseline of every spectrum."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.fourier.tables import NUMBER
from mechnum.tasks.numbers import check_numbers, some


def token_counts(path: str | Path) -> xr.DataArray:
    """How often each number occurs in a text, from a CSV table: (number).

    The spectrum of counts is the baseline of spectra in models: it has peaks at 2, 5 and 10 too
    (Fu et al. 2026), so a peak alone is no sign of a code. Counts fall over orders of magnitude:
    `np.log1p` of them is what a spectrum should see.

    Args:
        path: a CSV file with the columns `number` and `count`.

    Raises:
        MechnumError: on a file that cannot be read, has other columns or no rows, and on numbers
            and counts that are no integers, there twice or negative.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            table = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise MechnumError(f"{path} cannot be read ({reason}): give a CSV file") from error
    if not table or not {"number", "count"} <= set(table[0]):
        raise MechnumError(f"{path} has no rows with number and count: name its columns so")
    try:
        numbers = check_numbers([int(row["number"]) for row in table])
        counts = [int(row["count"]) for row in table]
    except (TypeError, ValueError) as error:
        raise MechnumError(
            f"{path} holds a number or count that is no integer: mend or drop that row"
        ) from error
    if negative := [n for n, count in zip(numbers, counts, strict=True) if count < 0]:
        raise MechnumError(f"{path} counts {some(negative)} less than 0 times: mend these rows")
    return xr.DataArray(
        np.array(counts, dtype=np.float64),
        dims=NUMBER,
        coords={NUMBER: list(numbers)},
        attrs={"of": f"counts in {Path(path).name}"},
    )
