"""The instruments that recipes name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import xarray as xr

from mechnum.circuits.running.context import Context, Settings
from mechnum.errors import MechnumError
from mechnum.toml_files import unknown

_OURS = "mechnum.circuits.running.adapters"

_BY_MODULE = {
    "patching": ("clock", "helix", "neurons", "trace"),
    "probing": ("ordinals", "probe", "probe_task", "similarity", "steer"),
    "small_nets": ("beliefs", "clock_pizza", "grokking"),
    "waves": ("filters", "lens", "spectra"),
}

BUILT_IN = {
    name: f"{_OURS}.{module}:{name}" for module, names in _BY_MODULE.items() for name in names
}
"""Name → the function that measures."""


@dataclass(frozen=True)
class Instrument:
    """A measurement with settings.

    Attributes:
        name: as recipes have it.
        settings: their type; every field has a default.
        measure: gives the results of a context and settings.
    """

    name: str
    settings: type[Settings]
    measure: Callable[[Context, Any], xr.DataTree]

    @property
    def sources(self) -> tuple[Path, ...]:
        """The file that the function is in, where it is in one."""
        try:
            found = inspect.getsourcefile(inspect.unwrap(self.measure))
        except TypeError:
            found = None
        return () if found is None else (Path(found),)


def find_instrument(name: str) -> Instrument:
    """The instrument of that name, or the function `package.module:function`.

    Such a function takes a `Context` and settings, in this order; the annotation of the second says
    which subclass of `Settings` these are.

    Raises:
        MechnumError: there is none, or it is no such function.
    """
    if name not in BUILT_IN and ":" not in name:
        raise MechnumError(unknown("instrument", name, BUILT_IN))
    module, _, function = BUILT_IN.get(name, name).partition(":")
    try:
        measure = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise MechnumError(
            f"instrument {name!r} cannot be imported ({error}): install its package, or correct "
            "the name, which is package.module:function"
        ) from None
    return Instrument(name, _settings_of(name, measure), measure)


def _settings_of(name: str, measure: Any) -> type[Settings]:
    try:
        parameters = list(inspect.signature(measure).parameters)
        kind = get_type_hints(measure)[parameters[1]]
    except (TypeError, ValueError, NameError, IndexError, KeyError):
        kind = None
    if not (inspect.isclass(kind) and issubclass(kind, Settings)):
        raise MechnumError(
            f"instrument {name!r} is no function of a Context and Settings: annotate its second "
            "parameter with a subclass of mechnum.circuits.running.context.Settings"
        )
    return kind
