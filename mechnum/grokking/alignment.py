"""Whether the first layer's neurons read a and b alike: tests that dispute clock against pizza.

Moisescu-Pareja et al. 2026 (arXiv 2512.25060) find in clocks and pizzas the same first layer: its
neurons of one frequency, seen together, place the pairs on a disc, since each reads a and b with
the same phase. Nets with phases that do not go together would place them on a torus.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64

from mechnum.cka import linear_cka
from mechnum.fourier.grid import checked_maps
from mechnum.grokking.modulus import check_prime, sums
from mechnum.grokking.neurons import AT_LEAST, common_frequencies, neuron_frequencies

NEAR = 1 / 12
"""Of a turn: how near to the diagonal a neuron's highest pair has to be to count as aligned."""
SHAPES = ("disc", "torus", "circle")


def phase_alignment(neurons: Any) -> xr.Dataset:
    """Where each neuron is highest, and how far from the diagonal a = b that is.

    So that neurons of all frequencies can be compared, numbers are relabelled n → f·n mod p with
    the neuron's best frequency f, which makes its wave one turn over the p numbers.

    Args:
        neurons: [p, p, neuron] over a and b; pre-activations of the first layer in the paper.

    Returns:
        Over neuron: `highest_a` and `highest_b`, the pair with the highest value after relabelling;
        `torus_distance`, the steps |a − b| around the p numbers between that pair and the diagonal;
        `best_frequency` and `explained` as in `neuron_frequencies`. NaN (−1 for the pair) for
        neurons that are constant. Over (a, b): `histogram` of the highest pairs. `aligned`, the
        share of neurons whose distance is within 1/12 of a turn; `aligned_by_chance`, the same for
        phases that are independent.

    Raises:
        InvalidInput: on other shapes, on values that are not finite, on a p that is no prime ≥ 3.
    """
    maps = checked_maps(neurons, "neurons")
    found = neuron_frequencies(maps).drop_dims("frequency")
    p = len(maps)
    frequency = found["best_frequency"].values
    varies = frequency > 0
    pairs = np.array(np.unravel_index(maps.reshape(p * p, -1).argmax(axis=0), (p, p)))
    highest = np.where(varies, pairs * frequency % p, -1)
    distance = _around(highest[0] - highest[1], p).astype(np.float64)
    distance[~varies] = np.nan
    histogram = np.zeros((p, p), dtype=np.int64)
    np.add.at(histogram, (highest[0][varies], highest[1][varies]), 1)
    near = NEAR * p
    aligned = float(np.mean(distance[varies] <= near)) if varies.any() else np.nan
    return found.assign(
        highest_a=("neuron", highest[0]),
        highest_b=("neuron", highest[1]),
        torus_distance=("neuron", distance),
        histogram=(("a", "b"), histogram),
        aligned=aligned,
        aligned_by_chance=float(np.mean(_around(np.arange(p), p) <= near)),
    ).assign_coords(a=np.arange(p), b=np.arange(p))


def disc_or_torus(neurons: Any, at_least: float | int = AT_LEAST) -> xr.Dataset:
    """How like a disc, a torus or a circle the neurons of each frequency place the pairs.

    Linear CKA (Kornblith et al. 2019) between the neurons of a frequency, together, and the ideal
    features, w = 2πk/p: disc (cos wa + cos wb, sin wa + sin wb), torus (cos wa, sin wa, cos wb,
    sin wb), circle (cos w(a + b), sin w(a + b)). A disc has a CKA of 1/√2 with the torus, and 0
    with the circle. Persistent homology, which the paper adds, is not computed.

    Args:
        neurons: [p, p, neuron] over a and b: pre-activations of the first layer, or logits.
        at_least: share of the neurons that a frequency has to be best for.

    Returns:
        Over (frequency, shape): `cka`. Over frequency, those with enough neurons, most first, and
        none in a net that has not learned to add: `n_neurons`.

    Raises:
        InvalidInput: as `phase_alignment`.
    """
    maps = checked_maps(neurons, "neurons")
    p = check_prime(len(maps))
    found = neuron_frequencies(maps)
    keys = common_frequencies(found, at_least)
    cka = np.empty((len(keys), len(SHAPES)))
    for row, k in enumerate(keys):
        own = maps[:, :, found["best_frequency"].values == k].reshape(p * p, -1)
        cka[row] = [linear_cka(own, features) for features in _features(int(k), p)]
    return xr.Dataset(
        {
            "cka": (("frequency", "shape"), cka),
            "n_neurons": found["n_neurons"].sel(frequency=keys),
        },
        coords={"frequency": keys, "shape": list(SHAPES)},
    )


def _features(k: int, p: int) -> tuple[Float64[np.ndarray, "pair feature"], ...]:
    """Ideal features of `SHAPES`, a row for each pair."""
    w = 2 * np.pi * k / p
    a, b = (side.ravel() for side in np.indices((p, p)))
    of_a, of_b, of_sum = (
        np.column_stack([np.cos(w * n), np.sin(w * n)]) for n in (a, b, sums(p).ravel())
    )
    return of_a + of_b, np.hstack([of_a, of_b]), of_sum


def _around(steps: np.ndarray, p: int) -> np.ndarray:
    """Steps around a circle of p numbers, the shorter way."""
    return np.minimum(steps % p, -steps % p)
