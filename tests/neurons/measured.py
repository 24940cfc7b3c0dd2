"""A small neuron report, measured once for all tests that read it."""

from __future__ import annotations

from functools import cache

import xarray as xr

import mechnum as mn
from mechnum.circuits.instruments.neurons import measure_neurons

SIZE, TOP = 14, 8


@cache
def small_report() -> xr.DataTree:
    """Eight neurons of the bundled adder on the sums of numbers below 14."""
    model, task = mn.load("adder-gptj"), mn.tasks.addition(range(SIZE))
    accuracy = task.accuracy(model)
    pairs = task.pairs_at_most(model, 24, seed=0, accuracy=accuracy)
    return measure_neurons(model, task, pairs, accuracy, top=TOP)
