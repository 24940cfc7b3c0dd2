"""The helix seen along its own axes, for plotting."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64

from mechnum.errors import InvalidInput
from mechnum.helix.basis import cosine_name, sine_name
from mechnum.helix.estimators import Helix, explained_variance
from mechnum.inputs import numbers_with_states, value_means


def helix_planes(helix: Helix, numbers: Any, states: Any) -> xr.Dataset:
    """Mean states of each number in the coordinates of a fitted helix of one variable.

    Args:
        helix: fitted to one variable.
        numbers: [row].
        states: [row, d], from the model and place that the helix was fitted to.

    Returns:
        `coordinates` over (number, period, axis), axis "cos" and "sin": where the mean state of a
        number lies in the plane of that period; `fitted` likewise for the helix itself; `linear`
        and `fitted_linear` over number: the linear coordinate, in units of the numbers. Without a
        unit otherwise: the fitted circle has radius 1. A dropped column has no axis and is NaN.
        `attrs["r2"]` is the R² of the helix on the mean states.

    Raises:
        InvalidInput: if the helix has several variables, or numbers and states do not match.
    """
    if helix.n_features_in_ != 1:
        raise InvalidInput(
            f"the helix has {helix.n_features_in_} variables: fit one to a single variable to draw"
        )
    values, means, _, _ = value_means(*numbers_with_states(numbers, states))
    predicted = helix.predict(values).reshape(means.shape)
    measured_circles, measured_linear = _axes(helix, means)
    fitted_circles, fitted_linear = _axes(helix, predicted)
    return xr.Dataset(
        {
            "coordinates": (("number", "period", "axis"), measured_circles),
            "fitted": (("number", "period", "axis"), fitted_circles),
            "linear": ("number", measured_linear),
            "fitted_linear": ("number", fitted_linear),
        },
        coords={
            "number": values[:, 0],
            "period": np.asarray(helix.periods, dtype=float),
            "axis": ["cos", "sin"],
        },
        attrs={
            "r2": explained_variance(means, predicted),
            "dropped": ", ".join(helix.dropped_),
        },
    )


def _axes(
    helix: Helix, points: Float64[np.ndarray, "number d"]
) -> tuple[Float64[np.ndarray, "number period axis"], Float64[np.ndarray, " number"]]:
    projected = dict(zip(helix.columns_, helix.project(points).T, strict=True))
    missing = np.full(len(points), np.nan)
    names = [(cosine_name(period), sine_name(period)) for period in helix.periods]
    circles = np.array([[projected.get(name, missing) for name in pair] for pair in names])
    linear = projected.get("linear", missing) * helix.basis_.half_range_[0]
    circles = circles.reshape(len(names), 2, len(points))
    return circles.transpose(2, 0, 1), linear + helix.basis_.centre_[0]
