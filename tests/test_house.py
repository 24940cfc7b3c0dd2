"""The rules of the house that no linter knows."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted([*ROOT.glob("mechnum/**/*.py"), *ROOT.glob("circuits/**/*.py")])
LIBRARY_OF_MODELS = {"transformer_lens", "transformers"}

# What each part may import; every part may import the modules that lie directly in mechnum/.
BELOW = {
    "models": set(),
    "tasks": {"models"},
    "patching": {"models", "tasks"},
    "training": {"models", "tasks"},
    "report": {"models"},
}
ANALYSES = ("fourier", "helix", "neurons", "probes", "grokking", "beliefs")
BELOW |= {part: {"models", "tasks", "patching"} - {part} for part in ANALYSES}
# Waves over numbers are what neurons, probes and grokked nets are described with.
for part in ("neurons", "probes", "grokking"):
    BELOW[part].add("fourier")
BELOW["circuits"] = {*BELOW}
BELOW["cli"] = {*BELOW}


def part_of(path: Path) -> str | None:
    """The subpackage that a module belongs to; None for the modules directly in mechnum/."""
    folders = path.relative_to(ROOT).parent.parts
    if folders[0] == "circuits":
        return "circuits"
    return folders[1] if len(folders) > 1 else None


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_imports_only_what_lies_below(path):
    part = part_of(path)
    if part is None:
        return
    for module in imported(path):
        names = module.split(".")
        if names[0] == "mechnum" and len(names) > 1 and (ROOT / "mechnum" / names[1]).is_dir():
            assert names[1] in BELOW[part] | {part}, f"{part} must not import {module}"
        if part != "models" and not type_checking_only(path, module):
            assert names[0] not in LIBRARY_OF_MODELS, f"only models/ may import {module}"


def type_checking_only(path: Path, module: str) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guards = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    inside = {node for guard in guards for node in ast.walk(guard)}
    uses = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and node.module == module)
        or (isinstance(node, ast.Import) and any(alias.name == module for alias in node.names))
    ]
    return all(node in inside for node in uses)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_is_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_every_package_is_installed():
    layout = configparser.ConfigParser()
    layout.read(ROOT / "setup.cfg")
    listed = set(layout["options"]["packages"].split())
    folders = {path.parent.relative_to(ROOT) for path in MODULES}
    found = {".".join(folder.parts) for folder in folders}
    found = {n if n.startswith("mechnum") else f"mechnum.{n}" for n in found}
    assert listed == found


@pytest.mark.parametrize("folder", sorted({path.parent for path in MODULES}), ids=name)
def test_every_folder_is_a_package(folder):
    assert (folder / "__init__.py").is_file()


def test_every_library_that_is_imported_is_declared():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = project.split("dependencies = [")[1].split("\n]")[0]
    declared = {found.lower() for found in re.findall(r'"([A-Za-z0-9-]+)', listed)}
    found = {module.split(".")[0] for path in MODULES for module in imported(path)}
    # IPython is there wherever a notebook asks how to show something.
    libraries = found - set(sys.stdlib_module_names) - {"mechnum", "tomllib", "IPython"}
    renamed = {"sklearn": "scikit-learn"}
    names = {renamed.get(library, library.replace("_", "-")) for library in libraries}
    assert names <= declared
