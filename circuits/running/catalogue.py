"""Which circuits there are: those of this package, and those that other packages offer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module, resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mechnum.circuits
from mechnum.circuits.running.published import Published, PublishedFigure
from mechnum.circuits.running.recipe import Recipe, parse_recipe
from mechnum.errors import MechnumError
from mechnum.toml_files import checked, read_toml, unknown

if TYPE_CHECKING:
    import xarray as xr

GROUP = "mechnum.circuits"
"""Entry points of this group name packages that hold a circuit."""


@dataclass(frozen=True)
class CircuitFolder:
    """A package with `recipe.toml`, `published.toml` and the module `readings`.

    Attributes:
        name: of the circuit.
        package: that holds it.
    """

    name: str
    package: str

    @property
    def folder(self) -> Path:
        """Where the package lies."""
        return Path(str(resources.files(self.package)))

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe.

        Raises:
            MechnumError: its file is missing, or wrong.
        """
        path = self.folder / "recipe.toml"
        return parse_recipe(read_toml(path), str(path))

    @cached_property
    def published(self) -> Published:
        """The figures that the paper reports; none where there is no such file.

        Raises:
            MechnumError: the file is wrong, or names a step or a reading that there is not.
        """
        path = self.folder / "published.toml"
        if not path.is_file():
            return Published()
        published = checked(Published, read_toml(path), str(path), Published.keys())
        steps = {step.name for step in self.recipe.steps}
        for figure in published.figures:
            for step in figure.steps:
                if step not in steps:
                    raise MechnumError(f"{path}: {figure.name}: {unknown('step', step, steps)}")
            if figure.reading is not None:
                self.reading(figure.reading)
        return published

    def read(self, figure: PublishedFigure, results: xr.DataTree) -> float:
        """A figure as its reading finds it in a step's results.

        Raises:
            MechnumError: the reading fails, or gives no number.
        """
        try:
            return float(self.reading(str(figure.reading))(results, **figure.arguments))
        except Exception as error:  # Another package's code may fail in any way.
            reason = " ".join(str(error).split()) or "no reason given"
            raise MechnumError(
                f"circuit {self.name}: the reading {figure.reading} of {figure.name!r} fails with "
                f"{type(error).__name__} ({reason}): correct it, or the figure's arguments"
            ) from error

    def reading(self, name: str) -> Any:
        """The function of this name in the module `readings`.

        Raises:
            MechnumError: there is none.
        """
        try:
            readings = import_module(f"{self.package}.readings")
        except ImportError as error:
            raise MechnumError(
                f"circuit {self.name} has no module readings ({error}): write one, or take "
                "`reading` out of its published.toml"
            ) from None
        found = getattr(readings, name, None)
        if not callable(found):
            own = [
                key
                for key, value in vars(readings).items()
                if getattr(value, "__module__", None) == readings.__name__
            ]
            raise MechnumError(f"circuit {self.name}: {unknown('reading', name, own)}")
        return found


def circuits() -> dict[str, CircuitFolder]:
    """All circuits by name, this package's own first.

    Warns:
        UserWarning: where one of another package cannot be used, and why.
    """
    root = Path(str(mechnum.circuits.__file__)).parent
    own = sorted(path.parent.name for path in root.glob("*/recipe.toml"))
    found = {name: CircuitFolder(name, f"{mechnum.circuits.__name__}.{name}") for name in own}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            folder = _offered(entry.name, entry.value, found)
        except Exception as error:  # Another package's code may fail in any way.
            reason = " ".join(str(error).split()) or type(error).__name__
            warnings.warn(f"circuit {entry.name} is left out: {reason}", stacklevel=2)
            continue
        found[entry.name] = folder
    return found


def find_circuit(name: str) -> CircuitFolder:
    """The circuit of that name.

    Raises:
        MechnumError: there is none.
    """
    known = circuits()
    if name not in known:
        raise MechnumError(unknown("circuit", name, known))
    return known[name]


def _offered(name: str, package: str, known: dict[str, CircuitFolder]) -> CircuitFolder:
    if name in known:
        raise MechnumError(f"{known[name].package} has this name already: give it another one")
    import_module(package)
    folder = CircuitFolder(name, package)
    # A recipe that is wrong is found now, so that those that are listed can be run.
    _ = folder.recipe
    return folder
