"""Rows of a model's numbers as labelled arrays, with where they come from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from torch import Tensor

from mechnum.fourier.tables import DIMENSION, NUMBER
from mechnum.models.model import Model
from mechnum.models.norms import at_least_float32
from mechnum.patching.provenance import model_attributes

NUMBERS = range(100)


def matrix_rows(
    rows: Tensor, tokens: Mapping[int, int], said: Mapping[str, str | int | float]
) -> xr.DataArray:
    """One row for each of the numbers, which are the keys of `tokens`."""
    return xr.DataArray(
        as_numpy(rows),
        dims=(NUMBER, DIMENSION),
        coords={NUMBER: list(tokens)},
        attrs=dict(said),
    )


def said_of(model: Model, of: str, template: str) -> dict[str, str | int | float]:
    """What rows are of, and where they come from, as attributes."""
    return model_attributes(model) | {"of": of, "template": template}


def as_numpy(tensor: Tensor) -> np.ndarray:
    """On the CPU, in float32 at least."""
    return at_least_float32(tensor.detach()).cpu().numpy()
