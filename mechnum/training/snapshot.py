"""The net along the way: model folders from the middle of a run, for measures over training."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from mechnum.training.recipe import Recipe

if TYPE_CHECKING:
    from torch import nn

SNAPSHOTS = "snapshots"


def keep_snapshot(recipe: Recipe, net: nn.Module, run: Path, step: int) -> None:
    """Write the net after `step` steps as a model folder, which appears whole or not at all.

    One that is there stays: a run that goes on after a kill comes to the bit-same weights.
    """
    home = run / SNAPSHOTS
    folder, unfinished = home / f"{step:06d}", home / ".unfinished"
    if folder.exists():
        return
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    recipe.net.save(net, recipe.task, unfinished)
    os.replace(unfinished, folder)


def snapshots(run: Path) -> dict[int, Path]:
    """Steps done → model folder, which `mechnum.load` takes; in order, empty where none was kept.

    Args:
        run: the folder of a run, such as `NAME/training` after `mechnum train NAME`.
    """
    return {int(folder.name): folder for folder in sorted((run / SNAPSHOTS).glob("[0-9]*"))}
