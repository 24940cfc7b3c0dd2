"""Runs a circuit, and goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import xarray as xr

from mechnum.circuits.running.catalogue import CircuitFolder, find_circuit
from mechnum.circuits.running.comparison import beside_the_paper
from mechnum.circuits.running.context import Context, is_process
from mechnum.circuits.running.recipe import SHARED, Recipe
from mechnum.circuits.running.steps import Step, measured, steps_of
from mechnum.circuits.running.store import Store, code_digest
from mechnum.errors import MechnumError
from mechnum.files import check_writable
from mechnum.models import Model, load
from mechnum.models.digest import weights_digest
from mechnum.patching.circuit.results import circuit_of
from mechnum.patching.provenance import model_attributes
from mechnum.progress import working
from mechnum.report import Page, page_of, write_netcdf
from mechnum.tasks import parse
from mechnum.tasks.processes import find_process

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

    @cached_property
    def page(self) -> Page:
        """The report: what was found, the figures beside the paper's, and each step's own page."""
        return page_of(self.results)

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write report.html and results.nc, and circuit.json (EAP-IG's graph) where a step found a
        circuit; each whole or not at all. Where several did, the files are circuit-STEP.json.

        Raises:
            MechnumError: where the folder cannot be written.
        """
        folder = Path(folder)
        # The results first: they took the time.
        data = write_netcdf(self.results, folder / "results.nc")
        written = [self.page.save(folder / "report.html"), data]
        steps = self.results["steps"].children
        found = [name for name, step in steps.items() if "circuit" in step.children]
        for name in found:
            circuit = circuit_of(steps[name]["circuit"].to_dataset())
            file = "circuit.json" if len(found) == 1 else f"circuit-{name}.json"
            written.append(circuit.save(folder / file, self.models[name].spec))
        return tuple(written)


@dataclass(frozen=True, eq=False)
class PreparedRun:
    """A circuit whose settings are checked, before a model is loaded; made by `prepared`."""

    circuit: CircuitFolder
    recipe: Recipe
    steps: tuple[Step, ...]

    def on(self, model: Model, out: str | Path | None = None) -> CircuitRun:
        """The run on a model; see `run_circuit`."""
        if out is None:
            with TemporaryDirectory() as folder:
                return self.on(model, folder)
        store = Store(Path(out) / STEPS_FOLDER)
        # One context for each model, so that its accuracy is measured once.
        contexts = {model.name: self._context(model, self.recipe.task, store)}
        for step in self.steps:
            own = [] if step.entry.model is None else [step.entry.model]
            for other in (*own, *step.settings.models()):
                if other not in contexts:
                    # Another model has a task of its own.
                    contexts[other] = self._context(_beside(model, other), None, store)
        of_steps = {
            step.name: contexts[step.entry.model or model.name].beside(
                contexts[other] for other in step.settings.models()
            )
            for step in self.steps
        }
        models = {name: context.model for name, context in of_steps.items()}
        found, left_out = measured(self.steps, of_steps)
        parts = {"/": self._root(model, of_steps, left_out)}
        if self.circuit.published.figures:
            parts["/published"] = beside_the_paper(
                self.circuit, model, {name: (models[name], tree) for name, tree in found.items()}
            )
        for name, tree in found.items():
            for node in tree.subtree:
                parts[f"/steps/{name}{node.path.rstrip('/')}"] = node.to_dataset(inherit=False)
        return CircuitRun(self.circuit.name, xr.DataTree.from_dict(parts), models)

    def _context(self, model: Model, task: str | None, store: Store) -> Context:
        made_from = {
            "model": model.name,
            "weights": weights_digest(model),
            "device": model.device.type,
            "code": code_digest(),
        }
        return Context(model, task or model.default_task or "addition", store, made_from)

    def _root(
        self, model: Model, of_steps: Mapping[str, Context], left_out: Mapping[str, str]
    ) -> xr.Dataset:
        said = [
            {
                "name": step.name,
                "title": step.entry.title,
                "shows": step.entry.shows,
                "instrument": step.instrument.name,
                "model": of_steps[step.name].model.name,
                "beside": [other.model.name for other in of_steps[step.name].others],
                "settings": step.settings.model_dump(mode="json"),
            }
            for step in self.steps
        ]
        attrs = {
            "circuit": self.circuit.name,
            "title": self.recipe.title,
            "question": self.recipe.question,
            "paper": self.recipe.paper,
            **model_attributes(model),
            "task": self.recipe.task or model.default_task or "addition",
            "seed": self.recipe.seed,
            "steps": json.dumps(said),
        }
        return xr.Dataset(attrs=attrs | ({"left_out": json.dumps(left_out)} if left_out else {}))


def prepared(circuit: CircuitFolder, settings: Mapping[str, Any] | None = None) -> PreparedRun:
    """The circuit with these settings; see `run_circuit`."""
    # Wrong figures are said now, and not after hours of measuring.
    _ = circuit.published
    given = settings or {}
    recipe = circuit.recipe.changed(given)
    steps = steps_of(recipe)
    if recipe.task is not None:
        # Said now: a step that has another model would be measured, and the others left out.
        _ = find_process(recipe.task) if is_process(recipe.task) else parse(recipe.task)
    for shared in SHARED:
        if shared in given and not any(step.shares(shared) for step in steps):
            own = f"steps.{steps[0].name}.SETTING"
            raise MechnumError(
                f"no step of {circuit.name} takes {shared} from the run: leave it out, or give "
                f"{own}"
            )
    return PreparedRun(circuit, recipe, steps)


def run_circuit(
    name: str,
    model: Model | str | Path | None = None,
    out: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CircuitRun:
    """Run the steps of a published circuit, and set their figures beside the paper's.

    Each step's result is stored under a hash of its instrument and settings, the model's weights,
    the prompts, the steps that it needs and the code. The same call goes on after an interruption,
    and after a changed setting only what depends on it is measured again. A step that does not suit
    the model is left out, and the attribute `left_out` says why.

    Args:
        name: of the circuit, see `mechnum circuits`.
        model: that is measured, or what `mechnum.load` takes; by default the recipe's. Steps that
            name another model in the recipe, to compare with, keep it.
        out: folder whose `steps/` keeps the results of steps; by default none are kept.
        settings: `task`, `seed`, `n_pairs` (of all steps), and `steps.NAME.SETTING`.

    Raises:
        MechnumError: there is no such circuit, setting or model, a value does not fit, the
            circuit's files are wrong, the folder cannot be written, or no step suits the model.
    """
    ready = prepared(find_circuit(name), settings)
    if out is not None:
        check_writable(out)
    wanted = ready.recipe.model if model is None else model
    return ready.on(wanted if isinstance(wanted, Model) else _loaded(wanted), out)


def _beside(model: Model, other: str) -> Model:
    """Another model, on the device and in the precision of this one."""
    return _loaded(other, str(model.device), str(model.dtype).removeprefix("torch."))


def _loaded(name: str | Path, device: str | None = None, dtype: str | None = None) -> Model:
    with working(f"loading {name}"):
        return load(name, device, dtype)
