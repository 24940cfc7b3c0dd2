"""What is left of a net's training: its log, its checkpoints, what was measured of them, and the
prompts that it was trained on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Int

from mechnum.errors import MechnumError
from mechnum.models.load import CARD_FILE, bundled
from mechnum.training.bundle import RUN_FOLDER
from mechnum.training.claim import RECIPE_FILE, settings_of_run
from mechnum.training.curves import logged_scores
from mechnum.training.log import LOG_FILE
from mechnum.training.prompts import PromptExamples
from mechnum.training.recipes import RECIPES
from mechnum.training.snapshot import snapshots

MEASURES_FILE = "measures.nc"


@dataclass(frozen=True, eq=False)
class History:
    """What is known of a net's training; made by `history_of`.

    Attributes:
        scores: as `/training` of `training_curves`; None where there is no log.
        checkpoints: steps done → what `mechnum.load` takes, in order.
        measures: over step, what was measured of checkpoints that are not here any more; bundled
            nets have it. None beside checkpoints.
        task: that the recipe trains on; None where the recipe is not known.
        trained_on: rows of the recipe's prompts that were trained on, for a modular net the
            indices a·p + b; None where the recipe is not known.
    """

    scores: xr.Dataset | None = None
    checkpoints: dict[int, Path] = field(default_factory=dict)
    measures: xr.Dataset | None = None
    task: str | None = None
    trained_on: Int[np.ndarray, " prompt"] | None = None


def history_of(model: str | Path, run: str | Path | None = None) -> History:
    """What the folders of a model and of its run say of its training.

    Args:
        model: a name, folder or file, as `mechnum.load` takes it.
        run: the folder of the run, or one of checkpoints that are named by their steps, such as
            `002000` or `2000.toml`; by default the one that `mechnum train` leaves in the model's
            folder, and nothing where there is none.

    Raises:
        MechnumError: where `run` is no folder or holds neither a log nor checkpoints, and where the
            files there are damaged.
    """
    home, place = _places(model, run)
    scores = logged_scores(place) if (place / LOG_FILE).is_file() else None
    checkpoints = _checkpoints(place, run)
    if run is not None and scores is None and not checkpoints:
        raise MechnumError(
            f"{place} holds neither a log nor checkpoints: give the folder of a run, or one of "
            "checkpoints that are named by their steps"
        )
    settings = _settings(place) or _settings(home)
    task = settings.get("task")
    return History(
        scores,
        checkpoints,
        _measures(home) if run is None and not checkpoints else None,
        None if task is None else str(task),
        _trained_on(settings),
    )


def _measures(home: Path) -> xr.Dataset | None:
    path = home / MEASURES_FILE
    if not path.is_file():
        return None
    try:
        return xr.load_dataset(path, engine="netcdf4")
    except (OSError, ValueError):
        raise MechnumError(f"{path} is not a netCDF file: delete it, or get it again") from None


def history_files(model: str | Path, run: str | Path | None = None) -> list[Path]:
    """The files that `history_of` and its checkpoints are read from.

    Raises:
        MechnumError: where `run` is no folder.
    """
    home, place = _places(model, run)
    named = (LOG_FILE, RECIPE_FILE, CARD_FILE, MEASURES_FILE)
    found = {folder / name for folder in (home, place) for name in named}
    for checkpoint in _checkpoints(place, run).values():
        found |= set(checkpoint.rglob("*")) if checkpoint.is_dir() else {checkpoint}
    return sorted(path for path in found if path.is_file())


def _places(model: str | Path, run: str | Path | None) -> tuple[Path, Path]:
    """The model's folder, and that of its run."""
    home = bundled().get(str(model), Path(model))
    home = home.parent if home.is_file() else home
    own = home / RUN_FOLDER
    place = Path(run) if run is not None else own if own.is_dir() else home
    if run is not None and not place.is_dir():
        raise MechnumError(f"there is no folder {place}: give that of a run, or of checkpoints")
    return home, place


def _checkpoints(place: Path, run: str | Path | None) -> dict[int, Path]:
    return snapshots(place) or (_numbered(place) if run is not None else {})


def _numbered(folder: Path) -> dict[int, Path]:
    named = [path for path in folder.iterdir() if path.is_dir() or path.suffix == ".toml"]
    steps = {path.name.removesuffix(".toml"): path for path in named}
    numbered = {int(step): path for step, path in steps.items() if _is_step(step)}
    return dict(sorted(numbered.items()))


def _is_step(name: str) -> bool:
    return name.isascii() and name.isdecimal()


def _settings(folder: Path) -> dict[str, Any]:
    """The settings of the recipe that a folder names; none where it names none."""
    if (folder / RECIPE_FILE).is_file():
        return settings_of_run(folder)
    if (folder / CARD_FILE).is_file():
        try:
            card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
            return dict(card.get("recipe", {}))
        except (ValueError, TypeError, AttributeError):
            raise MechnumError(f"{folder / CARD_FILE} is not a model card: get it again") from None
    return {}


def _trained_on(settings: dict[str, Any]) -> Int[np.ndarray, " prompt"] | None:
    """The training part, where the settings that decide it are those of a known recipe.

    The seed is the settings' own: the same recipe under another seed is split otherwise.
    """
    recipe = RECIPES.get(str(settings.get("name")))
    if recipe is None or recipe.settings()["data"] != settings.get("data"):
        return None
    seed, fraction = settings.get("seed"), settings.get("train_fraction")
    if not isinstance(seed, int) or not isinstance(fraction, float):
        return None
    same = replace(recipe, seed=seed, train_fraction=fraction)
    examples = same.data().examples(same)
    return examples.parts.train.numpy() if isinstance(examples, PromptExamples) else None
