"""Power by frequency of many vectors over numbers at once, and what chance makes of it.

The power of a wave in vectors u depends on the mean of u uᵀ alone, and there on its sums along
circular diagonals: so no null needs the vectors again, however many prompts they come from.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int
from scipy import fft

from mechnum.errors import InvalidInput
from mechnum.fourier.bases import FourierBasis
from mechnum.inputs import seed_sequence
from mechnum.progress import track

# Iglewicz & Hoaglin 1993: modified z-scores above this are outliers.
ROBUST_Z = 3.5
# A robust z-score divides by this many times the median absolute deviation, as for normal values.
_MAD_TO_SD = 1.4826
CHANCE = 0.05


def rows_of_frequency(basis: FourierBasis) -> Int[np.ndarray, " frequency"]:
    """How many rows each of the basis' `frequencies` has: 2, or 1 for a cosine alone."""
    return np.bincount(basis.frequency)[1:]


def mean_power(
    basis: FourierBasis, grams: Float64[np.ndarray, "*state number number"]
) -> Float64[np.ndarray, "*state frequency"]:
    """Mean squared coefficients of each frequency, sine and cosine together.

    Args:
        grams: mean over vectors u of u uᵀ.
    """
    numbers = np.arange(basis.n_numbers)
    diagonal = (numbers[:, None] - numbers) % basis.length
    flat = grams.reshape(-1, basis.n_numbers**2)
    # sin·sin + cos·cos of two numbers is the cosine of their difference.
    sums = np.stack(
        [np.bincount(diagonal.ravel(), weights=one, minlength=basis.length) for one in flat]
    )
    waves = fft.rfft(sums, axis=1).real[:, 1:] * rows_of_frequency(basis) / basis.length
    return np.maximum(waves, 0.0).reshape(*grams.shape[:-2], -1)


def outliers(
    basis: FourierBasis,
    grams: Float64[np.ndarray, "state number number"],
    permutations: int = 99,
    seed: int = 0,
) -> xr.Dataset:
    """Which frequencies stand out among the others, and beyond what chance gives.

    A frequency is an outlier where both hold: the logarithm of its power lies more than 3.5 robust
    standard deviations (1.4826 times the median absolute deviation) above the median of all
    frequencies (Iglewicz & Hoaglin 1993), and its power is larger than the largest of any
    frequency in 95 % of the permutations of the number tokens. Power is that of a row of the
    basis, so that the highest frequency of an even number, which has one row, compares.

    Args:
        grams: mean over prompts of u uᵀ for vectors u over numbers without their mean.
        permutations: at least 19, for which p can reach 0.05.

    Returns:
        Over (state, frequency): `share` of the power of all frequencies; `robust_z`; `p`, the share
        of permutations in which some frequency has as much power, the observed one counted with
        them (so for all frequencies of a state together, not for all states); `outlier`. Over
        state, `chance`: the share of the power that the strongest frequency of a permutation has in
        the median. NaN, and no outlier, where there is no power.
    """
    check_permutations(permutations)
    power = mean_power(basis, grams)
    n_rows = rows_of_frequency(basis)
    row_power = power / n_rows
    rng = np.random.default_rng(seed_sequence(seed))
    largest = np.empty((permutations, len(grams)))
    largest_share = np.empty_like(largest)
    for draw in track(range(permutations), "permuting number tokens"):
        order = rng.permutation(basis.n_numbers)
        permuted = mean_power(basis, grams[:, order[:, None], order])
        largest[draw] = (permuted / n_rows).max(axis=1)
        largest_share[draw] = permuted.max(axis=1) / _positive(permuted.sum(axis=1))
    reached = (largest[:, :, None] >= row_power).sum(axis=0)
    # Rounding leaves a little power where there is none.
    scale = np.trace(grams, axis1=1, axis2=2)
    silent = power.sum(axis=1) <= 1e-20 * np.max(scale, initial=0.0)
    p = np.where(silent[:, None], np.nan, (reached + 1) / (permutations + 1))
    robust_z = _robust_z(row_power, silent)
    share = np.where(silent[:, None], np.nan, power / _positive(power.sum(axis=1))[:, None])
    return xr.Dataset(
        {
            "share": (("state", "frequency"), share),
            "robust_z": (("state", "frequency"), robust_z),
            "p": (("state", "frequency"), p),
            "outlier": (("state", "frequency"), (robust_z > ROBUST_Z) & (p <= CHANCE)),
            "chance": ("state", np.where(silent, np.nan, np.median(largest_share, axis=0))),
        },
        coords={"frequency": basis.frequencies},
    )


def check_permutations(permutations: int) -> None:
    """Refuse fewer than can reach a p of 0.05.

    Raises:
        InvalidInput: on fewer than 19.
    """
    if permutations < 19:
        raise InvalidInput(
            f"{permutations} permutations cannot tell outliers from chance at 5 %: give 19 or more"
        )


def _positive(values: np.ndarray) -> np.ndarray:
    """The values, with NaN in place of 0."""
    return np.where(values > 0, values, np.nan)


def _robust_z(row_power: np.ndarray, silent: np.ndarray) -> np.ndarray:
    smallest = np.finfo(np.float64).tiny
    logs = np.log(np.maximum(row_power, smallest))
    above = logs - np.median(logs, axis=1, keepdims=True)
    spread = _MAD_TO_SD * np.median(np.abs(above), axis=1, keepdims=True)
    # All frequencies alike, or more than half of them: what differs, stands out without limit.
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(above == 0, 0.0, above / spread)
    return np.where(silent[:, None], np.nan, z)
