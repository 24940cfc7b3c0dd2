"""Runs a circuit's recipe, step by step, and goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import xarray as xr

from mechnum.circuits.running.catalogue import CircuitFolder, find_circuit
from mechnum.circuits.running.comparison import beside_the_paper
from mechnum.circuits.running.context import Context, Settings
from mechnum.circuits.running.instruments import Instrument, find_instrument
from mechnum.circuits.running.recipe import SHARED, Recipe, StepEntry
from mechnum.circuits.running.store import Kept, Store, code_digest, file_digest, weights_digest
from mechnum.errors import MechnumError
from mechnum.models import Model, load
from mechnum.patching.circuit.results import circuit_of
from mechnum.patching.provenance import model_attributes
from mechnum.progress import track
from mechnum.report import save
from mechnum.toml_files import checked

T = TypeVar("T")

STEPS_FOLDER = "steps"
"""Where the results of steps are stored, in the folder of a run."""


@dataclass(frozen=True, eq=False)
class CircuitRun:
    """What a circuit's steps measured.

    Attributes:
        name: of the circuit.
        results: `/published`, see `mechnum.circuits.running.comparison.beside_the_paper`, and
            `/steps/NAME` for each step; the root's attributes say what was run.
        models: that each step measured, by name of the step.
    """

    name: str
    results: xr.DataTree
    models: Mapping[str, Model]

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write report.html and results.nc, and circuit.json (EAP-IG's graph) where a step found a
        circuit; each whole or not at all.

        Raises:
            MechnumError: where the folder cannot be written.
        """
        folder = Path(folder)
        written = list(save(self.results, folder))
        steps = self.results["steps"].children
        found = {name: step["circuit"].to_dataset() for name, step in steps.items()
                 if "circuit" in step.children}  # fmt: skip
        for name, circuit in found.items():
            file = "circuit.json" if len(found) == 1 else f"circuit-{name}.json"
            written.append(circuit_of(circuit).save(folder / file, self.models[name].spec))
        return tuple(written)


@dataclass(frozen=True, eq=False)
class _Step:
    """A step that is ready to be measured."""

    entry: StepEntry
    instrument: Instrument
    settings: Settings
    context: Context


def run_circuit(
    name: str,
    model: Model | str | Path | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CircuitRun:
    """Run the steps of a published circuit, and set their figures beside the paper's.

    Each step's result is stored under a hash of its instrument and settings, the model's weights,
    the prompts, the steps that it needs and the code. The same call goes on after an interruption,
    and after a changed setting only what depends on it is measured again. A step that the model
    does not allow is left out, and the attribute `left_out` says why.

    Args:
        name: of the circuit, see `mechnum circuits`.
        model: that is measured, or what `mechnum.load` takes; by default the recipe's.
        out: folder whose `steps/` keeps the results of steps; by default none are kept.
        settings: `task`, `seed`, `n_pairs` (of all steps), and `steps.NAME.SETTING`.

    Raises:
        MechnumError: there is no such circuit, setting or model, a value does not fit, the folder
            cannot be written, or the model allows none of the steps.
    """
    circuit = find_circuit(name)
    recipe = circuit.recipe.changed(settings or {})
    # Wrong settings are refused before the model is loaded.
    ready = [(step, *_instrument_of(recipe, step)) for step in recipe.steps]
    with ExitStack() as stack:
        if out is None:
            out = stack.enter_context(TemporaryDirectory())
        contexts = _Contexts(recipe, model, Store(Path(out) / STEPS_FOLDER))
        steps = [
            _Step(entry, instrument, chosen, contexts.of(entry.model))
            for entry, instrument, chosen in ready
        ]
        found, left_out = _measured(steps)
    if not found:
        raise MechnumError(next(iter(left_out.values())))
    models = {step.entry.name: step.context.model for step in steps}
    return CircuitRun(
        name, _tree(circuit, recipe, contexts.of(None), steps, found, left_out), models
    )


def _instrument_of(recipe: Recipe, step: StepEntry) -> tuple[Instrument, Settings]:
    """The instrument of a step, with its settings: its own, the recipe's, and defaults."""
    instrument = find_instrument(step.instrument)
    fields = instrument.settings.model_fields
    shared = {name: getattr(recipe, name) for name in SHARED if name in fields}
    given = {**shared, **step.settings}
    return instrument, checked(instrument.settings, given, f"step {step.name}", fields)


class _Contexts:
    """One context for each model of a run."""

    def __init__(self, recipe: Recipe, model: Model | str | Path | None, store: Store) -> None:
        self._recipe, self._store = recipe, store
        self._model = recipe.model if model is None else model
        self._made: dict[str | None, Context] = {}

    def of(self, other: str | None) -> Context:
        """The context of another model than the run's, or of the run's own."""
        if other not in self._made:
            self._made[other] = self._context(other)
        return self._made[other]

    def _context(self, other: str | None) -> Context:
        wanted = self._model if other is None else other
        model = wanted if isinstance(wanted, Model) else load(wanted)
        # Another model has a task of its own.
        asked = self._recipe.task if other is None else None
        made_from = {
            "model": model.name,
            "weights": weights_digest(model),
            "device": model.device.type,
            "code": code_digest(),
        }
        task = asked or model.default_task or "addition"
        return Context(model, task, self._store, made_from)


def _measured(steps: list[_Step]) -> tuple[dict[str, xr.DataTree], dict[str, str]]:
    """The results of steps by name, and why others have none."""
    found: dict[str, xr.DataTree] = {}
    keys: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for step in track(steps, "steps of the circuit"):
        entry, name = step.entry, step.entry.name
        if missing := [need for need in entry.needs if need not in found]:
            left_out[name] = f"it needs {missing[0]}, which is left out"
            continue
        try:
            kept = _kept(step, found, keys)
        except _Refused as reason:
            left_out[name] = str(reason)
            continue
        found[name], keys[name] = kept.tree, kept.key
    return found, left_out


class _Refused(MechnumError):
    """A step does not suit the model; the others may."""


def _suits(measure: Callable[[], T]) -> T:
    """What `measure` gives.

    Raises:
        _Refused: where it refuses.
    """
    try:
        return measure()
    except MechnumError as reason:
        raise _Refused(str(reason)) from reason


def _kept(step: _Step, found: Mapping[str, xr.DataTree], keys: Mapping[str, str]) -> Kept:
    """A step's result, given the earlier ones and the hashes of what these were made from."""
    needs, source = step.entry.needs, step.instrument.source
    context = step.context.with_results({need: found[need] for need in needs})
    made_from = {
        **context.made_from,
        "prompts": _suits(lambda: context.prompts_fingerprint),
        "instrument": step.instrument.name,
        "source": None if source is None else file_digest([source]),
        "settings": step.settings.model_dump(mode="json"),
        "files": file_digest(step.settings.files(context.model)),
        "needs": {need: keys[need] for need in needs},
    }

    def measure() -> xr.DataTree:
        measured = _suits(lambda: step.instrument.measure(context, step.settings))
        # The run compares all steps with the paper at once.
        return measured.drop_nodes("published", errors="ignore")

    return context.store.kept(step.entry.name, made_from, measure)


def _tree(
    circuit: CircuitFolder,
    recipe: Recipe,
    context: Context,
    steps: list[_Step],
    found: Mapping[str, xr.DataTree],
    left_out: Mapping[str, str],
) -> xr.DataTree:
    models = {step.entry.name: step.context.model for step in steps}
    described = [
        {
            **{key: getattr(step.entry, key) for key in ("name", "title", "shows", "instrument")},
            "model": models[step.entry.name].name,
            "settings": step.settings.model_dump(mode="json"),
        }
        for step in steps
    ]
    attrs = {
        "circuit": circuit.name,
        "title": recipe.title,
        "question": recipe.question,
        "paper": recipe.paper,
        **model_attributes(context.model),
        "task": context.task_name,
        "seed": recipe.seed,
        "steps": json.dumps(described),
    }
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    published = beside_the_paper(
        circuit, context.model, {name: (models[name], tree) for name, tree in found.items()}
    )
    parts = {"/": xr.Dataset(attrs=attrs), "/published": published}
    for name, tree in found.items():
        for node in tree.subtree:
            parts[f"/steps/{name}{node.path.rstrip('/')}"] = node.to_dataset(inherit=False)
    return xr.DataTree.from_dict(parts)
