"""A run's scores over its steps, as results that reports draw."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import xarray as xr

from mechnum.errors import MechnumError
from mechnum.training.claim import settings_of_run, versions_of_run
from mechnum.training.log import LOG_FILE, read_log


def training_curves(run: Path) -> xr.DataTree:
    """The scores of the run in folder `run`, as far as it has come.

    Returns:
        `training`: `heldout_loss` and `seconds` (by the clock on the wall) over `step`, and
        `train_loss`, `train_accuracy` and `heldout_accuracy` of answers to prompts, or `bound`, the
        least possible loss, of a process. Attributes: the recipe's settings and the versions.

    Raises:
        MechnumError: where the folder holds no run, or one without a score yet.
    """
    settings, versions = settings_of_run(run), versions_of_run(run)
    dataset = logged_scores(run)
    said = {
        name: value if isinstance(value, (str, int, float)) else json.dumps(value)
        for name, value in settings.items()
        if value is not None
    }
    attrs = {"model": said.pop("name", "a net"), **said, "versions": json.dumps(versions)}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), "/training": dataset})


def logged_scores(folder: Path) -> xr.Dataset:
    """The log in the folder of a run, or of a trained model, as the dataset of `training_curves`.

    Raises:
        MechnumError: where there is no log, or one without a score yet.
    """
    scores = [asdict(score) for score in read_log(folder)]
    if not scores:
        raise MechnumError(f"{folder / LOG_FILE} has no score yet: train on")
    return xr.Dataset(
        {name: ("step", [score[name] for score in scores]) for name in scores[0] if name != "step"},
        coords={"step": [score["step"] for score in scores]},
    )
