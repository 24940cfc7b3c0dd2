"""From a finished run to the folder of a bundled model."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

from safetensors import safe_open

from mechnum.errors import MechnumError
from mechnum.models.adders import WEIGHTS_FILE
from mechnum.training.card import Card
from mechnum.training.checkpoint import load_state
from mechnum.training.claim import check_claim, versions_of_run
from mechnum.training.log import LOG_FILE, read_log
from mechnum.training.loop import evaluate, one_thread
from mechnum.training.recipe import Recipe

RUN_FOLDER = "training"


def run_folder(out: Path) -> Path:
    """Where the run is kept whose model goes into folder `out`.

    Raises:
        MechnumError: where `out` is there and holds something else.
    """
    run = out / RUN_FOLDER
    if out.exists() and not out.is_dir():
        raise MechnumError(f"{out} is a file: choose another folder")
    if out.exists() and not run.is_dir() and any(out.iterdir()):
        raise MechnumError(f"{out} holds other files: choose a new or an empty folder")
    return run


def export(recipe: Recipe, run: Path, out: Path) -> Card:
    """Write the trained net of the run in folder `run` as a model folder `out`, with its card.

    The scores on the card are computed from the written folder, so that they include its
    rounding. The weights' file appears last: a folder without it is not taken for a model.

    Raises:
        MechnumError: where the run is not finished, or the stored weights give no finite loss.
    """
    check_claim(run, recipe)
    state, log = load_state(run), read_log(run)
    if state is None or state.step != recipe.steps:
        done = state.step if state else 0
        raise MechnumError(
            f"the run in {run} has done {done} of {recipe.steps} steps: "
            f"finish it with `mechnum train {recipe.name}`"
        )
    if not log or log[-1].step != recipe.steps:
        raise MechnumError(
            f"{run / LOG_FILE} does not reach the last step: start again in another folder"
        )
    net = recipe.net.build(recipe.seed)
    net.load_state_dict(state.weights)
    folder = out / ".unfinished"
    # Left over where an export was killed.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        recipe.net.save(net, recipe.task, folder)
        card = _card(recipe, folder, log[-1].seconds, versions_of_run(run))
        card.write(folder)
        shutil.copyfile(run / LOG_FILE, folder / LOG_FILE)
        for file in sorted(folder.iterdir(), key=lambda file: file.name == WEIGHTS_FILE):
            os.replace(file, out / file.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return card


def _card(recipe: Recipe, folder: Path, seconds: float, versions: dict[str, str]) -> Card:
    examples = recipe.data().examples(recipe)
    stored = recipe.net.load(folder)
    with one_thread():
        score = evaluate(stored, examples, recipe.steps, seconds)
    if not all(map(math.isfinite, score.losses)):
        raise MechnumError(
            f"the stored weights of {recipe.name} give a loss that is not a number: "
            "train it with more weight decay"
        )
    return Card(
        name=recipe.name,
        about=recipe.about,
        good_for=recipe.good_for,
        not_for=recipe.not_for,
        command=f"mechnum train {recipe.name}",
        task=recipe.task,
        template=recipe.template,
        seed=recipe.seed,
        split=examples.words(),
        score=score,
        steps=recipe.steps,
        parameters=sum(parameter.numel() for parameter in stored.parameters()),
        dtype=_dtype(folder / WEIGHTS_FILE),
        recipe=recipe.settings(),
        versions=versions,
    )


def _dtype(path: Path) -> str:
    with safe_open(path, framework="pt") as file:
        names = {str(file.get_tensor(name).dtype) for name in file.keys()}  # noqa: SIM118
    return ", ".join(sorted(name.removeprefix("torch.") for name in names))
