"""Operand grids, and maps of neurons over them that are written down."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy import ndarray as Array

from mechnum.neurons.bag.kinds import Numbers, parse_heuristic


def grid(n: int) -> Numbers:
    """All pairs of 0 … n − 1, b fastest."""
    a, b = (values.ravel() for values in np.indices((n, n)))
    return {"a": a, "b": b, "result": a + b}


def maps_of(numbers: Numbers, activation: Array, logit: Array | None = None) -> xr.Dataset:
    """Maps as `operand_maps` gives them; a neuron writes its activation if nothing else is said."""
    dims = ("node", "prompt")
    names = {"a": "a", "b": "b", "answer": "result"}
    return xr.Dataset(
        {
            "activation": (dims, activation),
            "logit": (dims, activation if logit is None else logit),
        },
        coords={
            "node": [f"neuron 0.{i}" for i in range(len(activation))],
            "layer": ("node", np.zeros(len(activation), dtype=int)),
            "neuron": ("node", np.arange(len(activation))),
            **{new: ("prompt", numbers[old]) for new, old in names.items() if old in numbers},
        },
        attrs={"model": "planted"},
    )


def planted(numbers: Numbers, words: list[str], noise: float = 0.1, seed: int = 0) -> Array:
    """For each heuristic 1 where it holds and 0 elsewhere, and Gaussian noise."""
    held = np.stack([parse_heuristic(one).holds(numbers) for one in words])
    return held + noise * np.random.default_rng(seed).normal(size=held.shape)
