"""Whose run a folder holds: `recipe.json`, written before the first step."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mechnum.errors import MechnumError
from mechnum.training.recipe import Recipe

RECIPE_FILE = "recipe.json"

_PACKAGES = ("mechnum", "torch", "transformers", "transformer-lens", "numpy")


def claim(folder: Path, recipe: Recipe) -> None:
    """Make `folder` the home of a run of `recipe`; a run of the same recipe stays as it is.

    Raises:
        MechnumError: where the folder holds anything else.
    """
    if folder.exists() and not folder.is_dir():
        raise MechnumError(f"{folder} is a file: choose another folder")
    if (folder / RECIPE_FILE).exists():
        check_claim(folder, recipe)
        return
    unfinished = folder / (RECIPE_FILE + ".tmp")
    if folder.exists() and any(file != unfinished for file in folder.iterdir()):
        raise MechnumError(f"{folder} holds other files: choose a new or an empty folder")
    folder.mkdir(parents=True, exist_ok=True)
    content = {"settings": recipe.settings(), "versions": _versions()}
    unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    os.replace(unfinished, folder / RECIPE_FILE)


def check_claim(folder: Path, recipe: Recipe) -> None:
    """Refuse a folder that is not the home of a run of `recipe`.

    Raises:
        MechnumError: where it is not.
    """
    if not (folder / RECIPE_FILE).exists():
        raise MechnumError(f"{folder} holds no run: start one with `mechnum train {recipe.name}`")
    theirs, ours = _read(folder / RECIPE_FILE)["settings"], recipe.settings()
    if theirs != ours:
        other = next(n for n in [*ours, *theirs] if ours.get(n) != theirs.get(n))
        raise MechnumError(
            f"{folder} holds a run of another recipe (its {other} differs): choose another "
            "folder or delete that one"
        )


def settings_of_run(folder: Path) -> dict[str, Any]:
    """The settings of the recipe whose run is in `folder`.

    Raises:
        MechnumError: where there is no run.
    """
    return _read(folder / RECIPE_FILE)["settings"]


def versions_of_run(folder: Path) -> dict[str, str]:
    """The versions under which the run in `folder` was begun."""
    return _read(folder / RECIPE_FILE)["versions"]


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if all(isinstance(content[key], dict) for key in ("settings", "versions")):
            return content
    except FileNotFoundError:
        raise MechnumError(
            f"{path.parent} holds no run: give the folder of one, such as NAME/training"
        ) from None
    except (ValueError, KeyError, TypeError):
        pass
    raise MechnumError(f"{path} does not describe a run: delete {path.parent} to start again")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    return found | {package: version(package) for package in _PACKAGES}
