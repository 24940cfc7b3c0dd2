"""Instruments whose results are known, and circuits made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import xarray as xr

from mechnum.circuits.running.context import Context, Settings
from mechnum.errors import MechnumError

measured: list[str] = []
"""Which instruments have measured, in order."""
interrupted: set[str] = set()
"""Those that are stopped before they give anything."""

NAME = "tests.circuits.running.planted"


class Number(Settings):
    number: float = 2.0
    seed: int = 0


class Compared(Settings):
    asks_task: ClassVar[bool] = False
    beside: tuple[str, ...] = ()

    def models(self):
        return self.beside


def compared(context: Context, settings: Compared) -> xr.DataTree:
    return _measured("compared", sum(other.model.spec.d_vocab for other in context.others))


def number(context: Context, settings: Number) -> xr.DataTree:
    return _measured("number", settings.number + settings.seed)


def doubled(context: Context, settings: Number) -> xr.DataTree:
    (needed,) = context.results.values()
    return _measured("doubled", 2 * float(needed["value"]))


def answers(context: Context, settings: Number) -> xr.DataTree:
    pairs = context.pairs(3, "any", settings.seed)
    return _measured("answers", context.accuracy().share + len(pairs))


def refused(context: Context, settings: Number) -> xr.DataTree:
    raise MechnumError("this model has no numbers: give another one")


def failing(context: Context, settings: Number) -> xr.DataTree:
    raise IndexError("layer 7\nis not there")


def _measured(name: str, value: float) -> xr.DataTree:
    if name in interrupted:
        raise KeyboardInterrupt
    measured.append(name)
    root = xr.Dataset({"value": value, "name": ("letter", list(name))}, attrs={"metric": "none"})
    return xr.DataTree.from_dict({"/": root, "/published": xr.Dataset({"stale": 1})})


def step(name: str, instrument: str, needs: Sequence[str] = (), settings: str = "") -> str:
    return (
        f'[[steps]]\nname = "{name}"\ntitle = "The {name}"\nshows = "A {name}."\n'
        f'instrument = "{NAME}:{instrument}"\nneeds = {list(needs)}\nsettings = {{ {settings} }}\n'
    )


RECIPE = 'title = "T"\nquestion = "Q?"\npaper = "P"\nmodel = "clock-59"\n'
STEPS = step("first", "number") + step("second", "doubled", ["first"]) + step("third", "answers")
READINGS = "def value(results, times=1):\n    return times * float(results['value'])\n"


def package(folder: Path, name: str, recipe: str = RECIPE + STEPS, published: str = "") -> Path:
    """A package with a circuit below `folder`."""
    place = folder / name
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("")
    (place / "recipe.toml").write_text(recipe)
    (place / "readings.py").write_text(READINGS)
    if published:
        (place / "published.toml").write_text(published)
    return place


def distribution(folder: Path, **entries: str) -> None:
    """A distribution below `folder` with these entry points."""
    place = folder / "planted-1.0.dist-info"
    place.mkdir(parents=True, exist_ok=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in entries.items()]
    (place / "entry_points.txt").write_text("\n".join(["[mechnum.circuits]", *lines]) + "\n")
