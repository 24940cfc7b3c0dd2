"""Is a probe that was trained on one model read on another, and is it more than the alignment?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.inputs import seed_sequence
from mechnum.models import Model, TokenTable, untrained
from mechnum.probes import FourierRegressionProbe, StateTable, place_rows, probe_transfer
from mechnum.probes.number_places import UNEMBEDDING, Reading, layer_place
from mechnum.probes.similarity import gaussian_rows
from mechnum.probes.tables import Label
from mechnum.probes.transfer import Align
from mechnum.tasks import numbers_of, parse, sample_prompts, states_of

MOST_PLACES = 5
"""Places of one model, at most."""
_PROMPTS = 2000
_ALIGN: Align = "regression"

Tables = dict[Label, StateTable]


def number_transfer(
    models: Sequence[Model | TokenTable],
    rows: Mapping[str, Mapping[str, xr.DataArray]],
    readings: Mapping[str, Reading],
    seed: int = 0,
) -> xr.Dataset:
    """A probe of the number itself, trained at each place of each model and tested at all of them.

    Args:
        rows: model → place → rows of the same numbers, see `mechnum.probes.place_rows`.
        readings: model → how it reads numbers.

    Returns:
        As `_measured` below: `accuracy`, `low`, `high`, `absolute_error` and `shuffled`.

    Raises:
        MechnumError: as `mechnum.probes.probe_transfer`.
    """
    tables, fresh, noise = {}, {}, {}
    streams = seed_sequence(seed).spawn(len(models))
    for model, stream in zip(models, streams, strict=True):
        own = rows[model.name]
        places = _some([place for place in own if place != UNEMBEDDING])
        tables |= {f"{model.name}, {place}": _table(own[place]) for place in places}
        first = _table(own[places[0]])
        drawn = gaussian_rows(np.random.default_rng(stream), first.states)
        noise[f"Gaussian rows for {model.name}"] = StateTable(drawn, first.values)
        if isinstance(model, Model):
            numbers = first.values.tolist()
            twin = place_rows(untrained(model, seed), numbers, readings[model.name])
            fresh |= {f"untrained {model.name}, {at}": _table(twin[at]) for at in places}
    return _measured(tables, fresh, noise, seed)


def answer_transfer(models: Sequence[Model], seed: int = 0) -> xr.Dataset:
    """The same for the answer of the models' task, at the last token of its prompts.

    Returns:
        As `number_transfer`.

    Raises:
        MechnumError: as `mechnum.probes.probe_transfer`.
    """
    tables: Tables = {}
    fresh: Tables = {}
    noise: Tables = {}
    streams = seed_sequence(seed).spawn(len(models))
    for model, stream in zip(models, streams, strict=True):
        for name, net, into in (
            (model.name, model, tables),
            (f"untrained {model.name}", untrained(model, seed), fresh),
        ):
            states, answers = _answer_states(net, model, seed)
            layers = _some([str(layer) for layer in range(len(states) - 1)])
            for layer in map(int, layers):
                into[f"{name}, {layer_place(layer)}"] = StateTable(states[layer + 1], answers)
        last = list(tables.values())[-1]
        drawn = gaussian_rows(np.random.default_rng(stream), last.states)
        noise[f"Gaussian rows for {model.name}"] = StateTable(drawn, last.values)
    return _measured(tables, fresh, noise, seed)


def _measured(tables: Tables, fresh: Tables, noise: Tables, seed: int) -> xr.Dataset:
    """Probes of all models, read on all models and on what knows no numbers.

    A table is read through the alignment that takes its training numbers to those that the probe
    was trained on. `shuffled` is the accuracy where the alignment was fitted to numbers paired at
    random. `kind` over tested_on: "model", "untrained" or "gaussian".
    """
    probe = FourierRegressionProbe(seed=seed)
    found = probe_transfer(
        probe, {**tables, **fresh, **noise}, _ALIGN, sources=list(tables), seed=seed
    )
    shuffled = probe_transfer(probe, tables, _ALIGN, pairing="shuffled", seed=seed)
    kinds = ["model"] * len(tables) + ["untrained"] * len(fresh) + ["gaussian"] * len(noise)
    # A probe reads its own table as it is.
    through = shuffled["trained_on"] != shuffled["tested_on"]
    paired = shuffled["accuracy"].where(through).reindex(tested_on=found["tested_on"])
    return found.assign(shuffled=paired).assign_coords(kind=("tested_on", kinds))


def _table(rows: xr.DataArray) -> StateTable:
    return StateTable(rows.values.astype(np.float64), rows["number"].values)


def _some(places: Sequence[str]) -> list[str]:
    """At most `MOST_PLACES`, spread over all."""
    count = min(len(places), MOST_PLACES)
    spread = np.linspace(0, len(places) - 1, count).round()
    return [places[int(at)] for at in spread]


def _answer_states(net: Model, trained: Model, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """States at the last token, and the answers; an untrained net reads the same prompts."""
    if trained.default_task is None:
        raise MechnumError(f"{trained.name} has no task of its own: give a model that has")
    prompts = sample_prompts(parse(trained.default_task).prompts(trained), _PROMPTS, seed)
    answers = numbers_of(prompts, ("answer",))[:, 0].astype(np.int64)
    return states_of(net, prompts, "end").astype(np.float64), answers
