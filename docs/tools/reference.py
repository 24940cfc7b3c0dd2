"""The public names of each package, read from the tables that import them lazily."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The packages in the order in which one meets them, and what each is for.
PACKAGES = {
    "mechnum.models": "Models",
    "mechnum.tasks": "Tasks",
    "mechnum.tasks.contexts": "Numbers in running text",
    "mechnum.tasks.processes": "Hidden Markov processes",
    "mechnum.patching": "Patching",
    "mechnum.fourier": "Fourier",
    "mechnum.helix": "Helix",
    "mechnum.helix.clock": "Clock",
    "mechnum.neurons": "Neurons",
    "mechnum.probes": "Probes",
    "mechnum.grokking": "Grokking",
    "mechnum.beliefs": "Beliefs",
    "mechnum.training": "Training",
    "mechnum.report": "Reports",
    "mechnum.circuits.instruments": "Instruments",
}
# Dictionaries of a package that say in which of its modules a name is.
_TABLES = ("_HOMES", "_WHERE", "_MODULE_OF")


@dataclass(frozen=True)
class PublicName:
    """A name that a package offers, and where it is defined.

    Attributes:
        name: as it is used, such as `mechnum.fourier.spectrum`.
        home: as the sources on disk have it, such as `mechnum.fourier.spectra.spectrum`.
    """

    name: str
    home: str

    @property
    def short(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


def public_names(package: str) -> tuple[PublicName, ...]:
    """What a package offers, without its subpackages, in alphabetical order."""
    return tuple(
        PublicName(f"{package}.{name}", _on_disk(f"{_module(name, module)}.{name}"))
        for name, module in sorted(_homes(package).items(), key=lambda item: item[0].lower())
        if not _is_package(f"{package}.{name}")
    )


def _module(name: str, module: str) -> str:
    """The module that defines a name, also where a package is said to have it."""
    return _module(name, _homes(module)[name]) if _is_package(module) else module


def _homes(package: str) -> dict[str, str]:
    """Public name → the module that defines it."""
    tree = ast.parse((_folder(package) / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if name in _TABLES:
                table = ast.literal_eval(node.value)
                return {
                    key: home if home.startswith("mechnum.") else f"{package}.{home}"
                    for key, home in table.items()
                }
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {
        alias.name: str(node.module)
        for node in imported
        if node.module != "__future__"
        for alias in node.names
    }


def _folder(package: str) -> Path:
    return ROOT.joinpath(*_on_disk(f"{package}.").removesuffix(".").split("."))


def _is_package(name: str) -> bool:
    return (_folder(name) / "__init__.py").is_file()


def _on_disk(name: str) -> str:
    """`circuits/` is installed as `mechnum.circuits`."""
    return name.removeprefix("mechnum.") if name.startswith("mechnum.circuits.") else name
