"""Neurons of modular nets: how much of each is one frequency, and how its phases add.

Source: Nanda et al. 2023 (arXiv 2301.05217), section 4.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from jaxtyping import Float64
from scipy import fft

from mechnum.errors import MechnumError
from mechnum.fourier.bases import fourier_basis
from mechnum.fourier.grid import block_energy
from mechnum.fourier.output_rows import neuron_rows
from mechnum.fourier.spectra import power_of, shares
from mechnum.models.memory import batches
from mechnum.models.model import Model
from mechnum.neurons.chosen import layers_with_neurons
from mechnum.neurons.states import STATE_OF, Of, check_of
from mechnum.patching.provenance import prompt_attributes
from mechnum.progress import track
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.states import activations_of
from mechnum.tasks.task import Task

EXPLAINED = 0.85
"""Share of one frequency from which Nanda et al. call a neuron explained by it."""

_Grid = Float64[np.ndarray, "a b neuron"]
_ROUNDING = 1e-10  # Share of the squared length that float32 leaves of a constant.


def frequency_share(model: Model, task: Task) -> xr.Dataset:
    """How much of each neuron's activation over all (a, b) is degree-2 waves of one frequency.

    The activation after the activation function, without its mean over the grid, in the orthonormal
    Fourier basis over a and over b: the share of k is the energy of the block {1, cos, sin}² of
    this frequency over the whole. All frequencies to p/2 are looked at. Held are the activations of
    all prompts, 4 bytes × p² × neurons.

    Returns:
        Over (layer, neuron): `share` for each `frequency`; `dominant`, the frequency of the largest
        share; `explained`, that share; NaN for a neuron that is the same on all prompts, or without
        MLP, as `status` says. `n_neurons` over (layer, frequency): how many neurons a frequency is
        the dominant one of, and `n_explained`, of those with a share of .85 or more. In the key
        frequencies the largest `n_neurons` stand out.

    Raises:
        MechnumError: on a task that is not modular addition, and on nets without MLPs.
    """
    basis = fourier_basis(_modulus(task))
    shape = (model.spec.n_layers, model.spec.d_mlp)
    share = np.full((*shape, len(basis.frequencies)), np.nan)
    status = np.full(shape, "no MLP", dtype="<U8")
    for layer, neurons, grid in _grids(model, task, "hidden"):
        spread, varies = _without_mean(grid)
        status[layer, neurons] = np.where(varies, "varies", "constant")
        share[layer, neurons] = np.where(varies, block_energy(spread), np.nan).T
    known = status == "varies"
    place = np.nan_to_num(share, nan=-1).argmax(axis=-1)
    explained = np.where(known, np.take_along_axis(share, place[..., None], -1)[..., 0], np.nan)
    dims = ("layer", "neuron")
    of_frequency = (place[..., None] == np.arange(len(basis.frequencies))) & known[..., None]
    enough = np.nan_to_num(explained) >= EXPLAINED
    return xr.Dataset(
        {
            "share": ((*dims, "frequency"), share),
            "dominant": (dims, np.where(known, basis.frequencies[place], np.nan)),
            "explained": (dims, explained),
            "status": (dims, status),
            "n_neurons": (("layer", "frequency"), of_frequency.sum(axis=1)),
            "n_explained": (
                ("layer", "frequency"),
                (of_frequency & enough[..., None]).sum(axis=1),
            ),
        },
        coords={
            "layer": np.arange(shape[0]),
            "neuron": np.arange(shape[1]),
            "frequency": basis.frequencies,
            "period": ("frequency", basis.periods),
        },
        attrs=_said(model, task, "hidden") | {"explained_from": EXPLAINED},
    )


def phase_sums(model: Model, task: Task, of: Of = "pre") -> xr.Dataset:
    """Is the phase that a neuron writes the sum of the phases that it reads?

    A neuron that fires most where wa = φ_a and wb = φ_b adds a and b if it writes cos(wc − φ_a −
    φ_b). Its profiles are its mean for each a, for each b, and W_out · W_U over the p classes, each
    at its own strongest frequency k: A cos(2πkn/p − φ).

    Args:
        of: what is averaged: "pre", what the activation function reads, or "hidden", after it.

    Returns:
        Over (layer, neuron): for each `profile` ("a", "b", "output") `frequency`, `phase` in
        radians, and `power`, the share of the profile's power at that frequency. `difference`, φ_a
        + φ_b − φ_output in (−π, π], where the three share one frequency. NaN where they do not,
        where a profile is constant, or without MLP, as `status` says: "one frequency", "several",
        "constant", "no MLP".

    Raises:
        MechnumError: as `frequency_share`.
    """
    check_of(of)
    p = _modulus(task)
    shape = (model.spec.n_layers, model.spec.d_mlp, 3)
    frequency, phase, power = (np.full(shape, np.nan) for _ in range(3))
    rows = {layer: neuron_rows(model, layer, range(p)) for layer in layers_with_neurons(model)}
    status = np.full(shape[:2], "no MLP", dtype="<U13")
    for layer, neurons, grid in _grids(model, task, of):
        output = rows[layer].values[neurons].T.astype(np.float64)
        for place, profile in enumerate((grid.mean(axis=1), grid.mean(axis=0), output)):
            at = (layer, neurons, place)
            frequency[at], phase[at], power[at] = _strongest_wave(profile)
        own = frequency[layer, neurons]
        same = (own == own[:, :1]).all(axis=1)
        status[layer, neurons] = np.where(same, "one frequency", "several")
        status[layer, neurons][np.isnan(own).any(axis=1)] = "constant"
    turned = phase[..., 0] + phase[..., 1] - phase[..., 2]
    difference = np.angle(np.exp(1j * turned))
    dims = ("layer", "neuron", "profile")
    return xr.Dataset(
        {
            "frequency": (dims, frequency),
            "phase": (dims, phase),
            "power": (dims, power),
            "difference": (dims[:2], np.where(status == "one frequency", difference, np.nan)),
            "status": (dims[:2], status),
        },
        coords={
            "layer": np.arange(shape[0]),
            "neuron": np.arange(shape[1]),
            "profile": ["a", "b", "output"],
        },
        attrs=_said(model, task, of),
    )


def _modulus(task: Task) -> int:
    if not isinstance(task, ModularAddition):
        raise MechnumError(
            f"{task.name} does not go round: fit its neurons, or use modular_addition:P"
        )
    return task.p


def _said(model: Model, task: Task, of: Of) -> dict[str, str | int | float]:
    return prompt_attributes(model, task.prompts(model)) | {
        "task": task.name,
        "modulus": _modulus(task),
        "of": of,
    }


def _grids(model: Model, task: Task, of: Of) -> Iterator[tuple[int, slice, _Grid]]:
    """Activations of some neurons of a layer over all (a, b)."""
    p = _modulus(task)
    with_mlp = layers_with_neurons(model)
    # The task asks for all pairs in one group, b fastest.
    activations = activations_of(model, task.prompts(model), STATE_OF[of])
    for layer in track(with_mlp, "neurons over a and b"):
        for neurons in batches(activations.shape[-1], 4 * 8 * p * p):
            own = activations[layer][:, neurons].astype(np.float64)
            yield layer, neurons, own.reshape(p, p, -1)


def _without_mean(grid: _Grid) -> tuple[_Grid, np.ndarray]:
    """The grid around each neuron's mean, and which neurons differ by more than rounding."""
    spread = grid - grid.mean(axis=(0, 1))
    varies = np.sum(spread**2, axis=(0, 1)) > _ROUNDING * np.sum(grid**2, axis=(0, 1))
    return spread, varies


def _strongest_wave(
    profile: Float64[np.ndarray, "number neuron"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frequency, phase and share of power of the strongest wave; NaN where a profile is flat."""
    power = shares(power_of(profile.T[..., None]))
    size = np.sum(profile**2, axis=0)
    spread = np.sum((profile - profile.mean(axis=0)) ** 2, axis=0)
    flat = spread <= _ROUNDING * size
    k = 1 + np.nan_to_num(power).argmax(axis=1)
    every = np.arange(len(k))
    phase = -np.angle(fft.rfft(profile, axis=0)[k, every])
    found = (k.astype(np.float64), phase, power[every, k - 1])
    return tuple(np.where(flat, np.nan, one) for one in found)  # type: ignore[return-value]
