"""The circles of a table of embeddings, each in its own plane."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from mechnum.errors import InvalidInput
from mechnum.fourier.bases import fourier_basis
from mechnum.fourier.tables import centred
from mechnum.grokking.modulus import check_prime, checked_keys
from mechnum.inputs import to_numpy


def circle_planes(embeddings: Any, frequencies: Any) -> xr.Dataset:
    """Where the numbers lie in the plane of each frequency's circle.

    The plane is the one in which the table's component at the frequency lies, with the orthonormal
    axes nearest to the directions of its cosine and its sine. All of a number's embedding that lies
    in the plane is shown, so that a point is off the circle by what other frequencies have there.

    Args:
        embeddings: [p, d], one row for each number.
        frequencies: k of the circles cos and sin of 2πkn/p.

    Returns:
        Over (frequency, number, axis), axes "cos" and "sin": `coordinates`, in units of the mean
        radius. Over frequency: `radius`, in units of the table; `power`, the share of the table's
        variance over the numbers that is a wave of this frequency; `purity`, the share of the
        variance in the plane that is.

    Raises:
        InvalidInput: on tables that are not finite [p, d], on frequencies that are not those of p,
            and where the table has no component at one.
    """
    table = np.asarray(to_numpy(embeddings), dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2 or not np.isfinite(table).all():
        raise InvalidInput(
            f"the table of shape {table.shape} is not finite [p, d] with d of 2 or more: give one"
        )
    p = check_prime(len(table))
    keys = checked_keys(frequencies, p)
    basis, rows = fourier_basis(p), centred(table)
    whole = np.sum(rows**2)
    found = {name: [] for name in ("coordinates", "radius", "power", "purity")}
    for k in keys:
        sine, cosine = basis.matrix[basis.frequency == k]
        waves = np.stack([cosine, sine])
        own = waves @ rows
        if np.linalg.norm(own) <= 1e-9 * np.sqrt(whole):
            raise InvalidInput(f"the table has no wave of frequency {k}: choose one that it has")
        u, _, v = np.linalg.svd(own, full_matrices=False)
        inside = rows @ (u @ v).T
        radius = np.linalg.norm(inside, axis=1).mean()
        found["coordinates"].append(inside / radius)
        found["radius"].append(radius)
        found["power"].append(np.sum(own**2) / whole)
        found["purity"].append(np.sum((waves @ inside) ** 2) / np.sum(inside**2))
    return xr.Dataset(
        {
            "coordinates": (("frequency", "number", "axis"), np.array(found["coordinates"])),
            **{name: ("frequency", found[name]) for name in ("radius", "power", "purity")},
        },
        coords={"frequency": keys, "number": np.arange(p), "axis": ["cos", "sin"]},
        attrs={"p": p},
    )
