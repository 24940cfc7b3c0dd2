"""Numbers in texts as read from the small model, measured once for all tests."""

from __future__ import annotations

from functools import cache

import xarray as xr

from mechnum.circuits.instruments.probe import measure_numbers
from mechnum.tasks.contexts import ContextPrompts, context_prompts
from tests.probes.texts import reader

LAYERS = [0, 2]
PROBES = ("linear", "fourier", "param-sin")


@cache
def numbers() -> tuple[ContextPrompts, ...]:
    return context_prompts(reader(), ("time", "arithmetic"), range(30), 5)


@cache
def measured() -> xr.DataTree:
    return measure_numbers(reader(), numbers(), LAYERS, PROBES, steps=5)
