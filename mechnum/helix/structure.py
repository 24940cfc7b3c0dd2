"""How single numbers lie in a state space: along a line, and how far from each other.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64
from scipy.spatial.distance import pdist, squareform
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from mechnum.errors import InvalidInput
from mechnum.inputs import numbers_with_states, value_means

_LONGEST = 20  # Of the ripples that are looked for.
_JUMP = 100  # Where numbers get a third digit.


def number_structure(numbers: Any, states: Any) -> xr.Dataset:
    """The first principal component of numbers, and their distances by how far they differ.

    Args:
        numbers: [row], whole numbers; holes are allowed.
        states: [row, d]; of a number in several rows the mean state counts.

    Returns:
        `pc1` over number: the first principal component of the standardised dimensions, rising with
        n. `euclidean` and `cosine` over difference: mean distance of the states of numbers that
        differ by so much, up to half of the range. `ripple` over (distance, period): the amplitude
        of a wave of that period in a profile, beside a cubic trend, as a share of the mean
        distance. Attributes: `pc1_r2`, the R² of a line through pc1 for n < 100, and `jump`, the
        step of pc1 from 99 to 100 in mean steps before it (NaN without these numbers).

    Raises:
        InvalidInput: where numbers are not whole, fewer than ten, or all have the same state.
    """
    numbers, states = numbers_with_states(numbers, states)
    if numbers.shape[1] != 1 or (numbers != np.round(numbers)).any():
        raise InvalidInput("distances are those of whole numbers: give one whole number a row")
    values, means, _, _ = value_means(numbers, states)
    values = values[:, 0]
    if len(values) < 10:
        raise InvalidInput(f"{len(values)} numbers have no profile of distances: give ten or more")
    if np.ptp(means, axis=0).max() == 0:
        raise InvalidInput("all numbers have the same state: choose a position that sees them")
    pc1 = PCA(1, svd_solver="full").fit_transform(StandardScaler().fit_transform(means))[:, 0]
    below = values < _JUMP
    below = below if below.sum() > 2 else np.ones_like(below)
    pc1 = pc1 * (1 if np.corrcoef(values[below], pc1[below])[0, 1] > 0 else -1)
    most = int(np.ptp(values) // 2)
    differences = np.arange(1, most + 1)
    profiles = {
        name: _profile(values, squareform(pdist(means, name)), differences)
        for name in ("euclidean", "cosine")
    }
    periods = np.arange(2, min(_LONGEST, most) + 1)
    ripple = [[_ripple(differences, one, t) for t in periods.tolist()] for one in profiles.values()]
    slope = np.polyfit(values[below], pc1[below], 1)[0]
    at = dict(zip(values.tolist(), pc1.tolist(), strict=True))
    step = at.get(_JUMP, np.nan) - at.get(_JUMP - 1, np.nan)
    return xr.Dataset(
        {
            "pc1": ("number", pc1),
            **{name: ("difference", profile) for name, profile in profiles.items()},
            "ripple": (("distance", "period"), np.array(ripple)),
        },
        coords={
            "number": values,
            "difference": differences,
            "distance": list(profiles),
            "period": periods,
        },
        attrs={
            "pc1_r2": float(np.corrcoef(values[below], pc1[below])[0, 1] ** 2),
            "jump": float(step / slope),
        },
    )


def _profile(
    values: Float64[np.ndarray, " number"],
    distances: Float64[np.ndarray, "number number"],
    differences: np.ndarray,
) -> Float64[np.ndarray, " difference"]:
    """Mean distance of the pairs of each difference; NaN where no pair has it.

    A state of length 0 has no cosine, so its pairs are left out.
    """
    gaps = np.abs(values[:, None] - values[None, :]).astype(int)
    known = np.isfinite(distances)
    size = differences[-1] + 1
    counts = np.bincount(gaps[known], minlength=size)[differences]
    sums = np.bincount(gaps[known], distances[known], minlength=size)[differences]
    return np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)


def _ripple(differences: np.ndarray, profile: Float64[np.ndarray, " difference"], t: int) -> float:
    known = np.isfinite(profile)
    d = differences[known]
    trend = np.vander(d / d.max(), 4)
    waves = np.column_stack([np.cos(2 * np.pi * d / t), np.sin(2 * np.pi * d / t)])
    waves = waves[:, np.abs(waves).max(axis=0) > 1e-9]
    fit = np.linalg.lstsq(np.column_stack([trend, waves]), profile[known], rcond=None)[0]
    return float(np.linalg.norm(fit[4:]) / profile[known].mean())
