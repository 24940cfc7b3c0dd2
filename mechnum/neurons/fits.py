"""What a fit of neurons says that they do for given operands."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float64


def predict(
    fitted: xr.Dataset, layer: int, numbers: Float64[np.ndarray, "prompt 2"]
) -> Float64[np.ndarray, "prompt neuron"]:
    """The fit of one layer's neurons at pairs of operands.

    y = intercept + slope·t̃ + Σ A cos(2πt/T − phase), with t = a, b, a + b, and a and b of the
    linear terms rescaled from the fitted range to [−1, 1].

    Args:
        numbers: a and b of each prompt.
    """
    own = fitted.sel(layer=layer)
    a, b = numbers.T
    values = {"a": a, "b": b, "a+b": a + b}
    found = np.tile(own["intercept"].values, (len(numbers), 1))
    low, high = fitted.attrs["lowest"], fitted.attrs["highest"]
    for name in own["linear"].values:
        scaled = 2 * (values[str(name)] - low) / (high - low) - 1
        found += np.outer(scaled, own["slope"].sel(linear=name).values)
    for name in own["variable"].values:
        for period in own["period"].values:
            wave = own.sel(variable=name, period=period)
            angle = 2 * np.pi * values[str(name)][:, None] / period - wave["phase"].values
            found += wave["amplitude"].values * np.cos(angle)
    return found
