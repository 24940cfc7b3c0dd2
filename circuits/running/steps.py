"""Measures the steps of a recipe, or finds that they were measured before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import xarray as xr

from mechnum.circuits.running.context import Context, Settings
from mechnum.circuits.running.instruments import BUILT_IN, Instrument, find_instrument
from mechnum.circuits.running.recipe import SHARED, Recipe, StepEntry
from mechnum.circuits.running.store import Kept, file_digest
from mechnum.errors import MechnumError
from mechnum.progress import track
from mechnum.toml_files import checked

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Step:
    """A step of a recipe with its instrument, and the settings that this gets."""

    entry: StepEntry
    instrument: Instrument
    settings: Settings

    @property
    def name(self) -> str:
        """By which other steps need it."""
        return self.entry.name

    def shares(self, name: str) -> bool:
        """Whether it takes this setting from the recipe, having none of its own."""
        return name in self.instrument.settings.model_fields and name not in self.entry.settings


class _Refused(MechnumError):
    """A step does not suit the model; the others may."""


def steps_of(recipe: Recipe) -> tuple[Step, ...]:
    """The steps, each with its own settings, else the recipe's, else the instrument's defaults.

    Raises:
        MechnumError: there is no such instrument or setting, or a value does not fit.
    """
    return tuple(_step(recipe, entry) for entry in recipe.steps)


def _step(recipe: Recipe, entry: StepEntry) -> Step:
    instrument = find_instrument(entry.instrument)
    fields = instrument.settings.model_fields
    shared = {name: getattr(recipe, name) for name in SHARED if name in fields}
    settings = checked(
        instrument.settings, {**shared, **entry.settings}, f"step {entry.name}", what="setting"
    )
    return Step(entry, instrument, settings)


def measured(
    steps: Sequence[Step], contexts: Mapping[str, Context]
) -> tuple[dict[str, xr.DataTree], dict[str, str]]:
    """The results of steps by name, and why others have none.

    Args:
        contexts: of each step, by name.

    Raises:
        MechnumError: where results cannot be stored, and where no step suits its model.
    """
    found: dict[str, Kept] = {}
    left_out: dict[str, str] = {}
    for step in track(steps, "steps of the circuit"):
        if missing := [need for need in step.entry.needs if need not in found]:
            left_out[step.name] = f"it needs {missing[0]}, which is left out"
            continue
        needed = {need: found[need] for need in step.entry.needs}
        try:
            found[step.name] = _kept(step, contexts[step.name], needed)
        except _Refused as reason:
            left_out[step.name] = str(reason)
    if not found:
        raise MechnumError(next(iter(left_out.values())))
    return {name: kept.tree for name, kept in found.items()}, left_out


def _kept(step: Step, context: Context, needed: Mapping[str, Kept]) -> Kept:
    """A step's result, measured where it is not stored."""
    context = context.with_results({name: kept.tree for name, kept in needed.items()})
    made_from: dict[str, Any] = {
        **context.made_from,
        "others": [other.made_from for other in context.others],
        "prompts": _asked(lambda: _prompts(step, context)),
        "instrument": step.instrument.name,
        "source": file_digest(step.instrument.sources),
        "settings": step.settings.model_dump(mode="json"),
        "files": file_digest(step.settings.files(context.model)),
        "needs": {name: kept.key for name, kept in needed.items()},
    }

    return context.store.kept(step.name, made_from, lambda: _results(step, context))


def _results(step: Step, context: Context) -> xr.DataTree:
    """What the instrument of a step gives.

    Raises:
        _Refused: where it refuses.
        MechnumError: where one of another package fails.
    """
    try:
        results = _asked(lambda: step.instrument.measure(context, step.settings))
        # A run compares all steps with the paper at once.
        return results.drop_nodes("published", errors="ignore")
    except MechnumError:
        raise
    except Exception as error:  # Another package's code may fail in any way.
        if step.instrument.name in BUILT_IN:
            raise
        reason = " ".join(str(error).split()) or "no reason given"
        raise MechnumError(
            f"the instrument {step.instrument.name} of step {step.name} fails with "
            f"{type(error).__name__} ({reason}): correct it, or its settings"
        ) from error


def _prompts(step: Step, context: Context) -> str:
    """Of the task; texts that a step brings along follow from its settings and the code."""
    if not step.settings.asks_task:
        return ""
    try:
        return context.prompts_fingerprint
    except MechnumError as reason:
        if context.is_process:
            raise
        raise MechnumError(
            f"{reason}; a circuit asks all of its task, and the commands of single steps, such as "
            "mechnum trace, take --range, --max-sum, --shots and --template"
        ) from reason


def _asked(measure: Callable[[], T]) -> T:
    """What `measure` gives.

    Raises:
        _Refused: where it refuses.
    """
    try:
        return measure()
    except MechnumError as reason:
        raise _Refused(str(reason)) from reason
