"""What is measured of a net along its training, small enough to be kept with the model."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from mechnum.circuits.instruments.belief_questions import question
from mechnum.circuits.instruments.beliefs import beliefs_along_training
from mechnum.circuits.instruments.grokking import progress_along_training
from mechnum.errors import MechnumError
from mechnum.grokking import progress_measures
from mechnum.grokking.nets import modular_task
from mechnum.models import Model
from mechnum.tasks.processes import find_process
from mechnum.training import History


def measure_along_training(model: Model, history: History) -> xr.Dataset | None:
    """The measures that suit the net, of the checkpoints of its run.

    Returns:
        Over step: of nets that add modulo a prime `progress_over` with the keys of `model`, without
        what it says of single neurons; of nets that predict a process `belief_progress`, with the
        losses of the log and without what it says of single prefixes. None of other nets, and of
        runs without checkpoints.

    Raises:
        MechnumError: on checkpoints of other shapes.
    """
    if not history.checkpoints:
        return None
    found = _of_a_grokked_net(model, history)
    if found is None:
        found = _of_a_process(model, history)
    # The folder's name alone: where it lay does not matter to who gets the file.
    return None if found is None else found.assign_attrs(model=Path(model.name).name)


def _of_a_grokked_net(model: Model, history: History) -> xr.Dataset | None:
    try:
        task = modular_task(model, None)
    except MechnumError:
        return None
    keys = progress_measures(model, task)["key"].values
    return progress_along_training(history, model, task, keys).drop_dims("neuron")


def _of_a_process(model: Model, history: History) -> xr.Dataset | None:
    try:
        process = find_process(str(model.default_task))
    except MechnumError:
        return None
    asked = question(process, model.spec.n_ctx)
    progress = beliefs_along_training(
        history, process, positions=asked.positions, readout=asked.readout
    )
    return progress.drop_dims(["prefix", "coordinate"])
