"""The frequency of each neuron, and the key frequencies of a net."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int

from mechnum.errors import InvalidInput
from mechnum.fourier.bases import fourier_basis
from mechnum.fourier.grid import block_energy, checked_maps
from mechnum.grokking.modulus import check_prime, checked_keys, sums
from mechnum.inputs import to_numpy

AT_LEAST = 0.05
"""Share of the neurons that a key frequency has."""
EXPLAINED = 0.5
"""Share of a neuron's variance that its frequency has to explain for the neuron to count."""


def neuron_frequencies(neurons: Any) -> xr.Dataset:
    """The frequency that explains most of each neuron (Nanda et al. 2023, section 4.2).

    Args:
        neurons: activations [p, p, neuron] over a and b.

    Returns:
        Over neuron: `best_frequency`, 0 for neurons that are constant, and `explained`, the share
        of the neuron's variance that is a polynomial of it (`mn.fourier.block_energy`), NaN for
        those. Over frequency, 1 … (p − 1)/2: `n_neurons`, how many it is the best of.

    Raises:
        InvalidInput: on other shapes, on values that are not finite, on a p that is no prime ≥ 3.
    """
    maps = checked_maps(neurons, "neurons")
    if maps.ndim != 3:
        raise InvalidInput(f"neurons have shape {maps.shape}: give [p, p, neuron]")
    p = check_prime(len(maps))
    shares = block_energy(maps)
    constant = np.isnan(shares).any(axis=0)
    frequency = 1 + np.argmax(np.where(constant, 0, shares), axis=0)
    frequency[constant] = 0
    return xr.Dataset(
        {
            "best_frequency": ("neuron", frequency),
            "explained": ("neuron", shares.max(axis=0)),
            "n_neurons": ("frequency", np.bincount(frequency, minlength=p // 2 + 1)[1:]),
        },
        coords={"frequency": np.arange(1, p // 2 + 1)},
    )


def key_frequencies(
    neurons: Any, at_least: float | int = AT_LEAST, explained: float | int = EXPLAINED
) -> Int[np.ndarray, " key"]:
    """Frequencies of at least this share of the neurons, most neurons first.

    The authors' code takes every frequency that is best for some neuron, to which a few stray
    neurons add frequencies that nothing else shows, and any noise has some: `at_least=0` and
    `explained=0` give those.

    Args:
        neurons: activations [p, p, neuron].
        at_least: share of the neurons that vary.
        explained: neurons count of which their best frequency explains this share or more.

    Raises:
        InvalidInput: as `neuron_frequencies`, and where no frequency has that share.
    """
    return keys_of(neuron_frequencies(neurons), at_least, explained)


def common_frequencies(
    found: xr.Dataset, at_least: float | int = AT_LEAST, explained: float | int = EXPLAINED
) -> Int[np.ndarray, " key"]:
    """As `key_frequencies`, from what `neuron_frequencies` gave; there may be none."""
    best = found["best_frequency"].values
    # NaN, of neurons that are constant, is not above anything.
    counted = best[found["explained"].values >= explained]
    count = np.bincount(counted, minlength=1)
    order = np.argsort(-count, kind="stable")
    return order[(count[order] > 0) & (count[order] >= at_least * np.sum(best > 0))]


def keys_of(
    found: xr.Dataset, at_least: float | int = AT_LEAST, explained: float | int = EXPLAINED
) -> Int[np.ndarray, " key"]:
    """As `common_frequencies`, where there are some.

    Raises:
        InvalidInput: where there are none, as in a net that has not learned to add.
    """
    keys = common_frequencies(found, at_least, explained)
    if not len(keys):
        raise InvalidInput(
            f"no frequency explains {explained:.0%} of {at_least:.0%} of the neurons, so that the "
            "net has no key frequencies by them: give `keys`, or a net that has learned to add"
        )
    return keys


def direction_shares(neurons: Any, readout: Any, keys: Any) -> Float64[np.ndarray, "key wave"]:
    """How far what the readout reads from the neurons is a wave of the sum.

    W_L's sine and cosine of a key over the classes are read from two directions of the neurons,
    v_k and u_k. Where the net adds by the clock, the neurons along these are sin w(a + b) and
    cos w(a + b) (Nanda et al. 2023, section 4.2, who find 93 to 98 % of the variance).

    Args:
        neurons: activations [p, p, neuron].
        readout: W_L [p, neuron], one row for each class.
        keys: key frequencies.

    Returns:
        Share of the variance along each direction that is its wave, for sine and cosine; NaN where
        the neurons do not vary along it.

    Raises:
        InvalidInput: as `neuron_frequencies`, on keys that are not frequencies of p, and on a
            readout of other neurons.
    """
    maps = checked_maps(neurons, "neurons")
    p = check_prime(len(maps))
    rows = np.asarray(to_numpy(readout), dtype=np.float64)
    if rows.shape != (p, maps.shape[-1]):
        raise InvalidInput(
            f"the readout has shape {rows.shape} for neurons {maps.shape}: give [p, neuron]"
        )
    basis = fourier_basis(p)
    waves = np.concatenate([basis.matrix[basis.frequency == k] for k in checked_keys(keys, p)])
    along = maps.reshape(p * p, -1).astype(np.float64) @ (waves @ rows).T
    along -= along.mean(axis=0)
    # Each sum has p pairs, so that a wave of length 1 over sums has length √p over pairs.
    held = np.sum(along * waves.T[sums(p).ravel()], axis=0) ** 2 / p
    whole = np.sum(along**2, axis=0)
    shares = np.divide(held, whole, out=np.full_like(held, np.nan), where=whole > 0)
    return shares.reshape(-1, 2)
