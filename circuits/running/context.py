"""What an instrument is given: the model, its task, and the results of the steps that it needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from pydantic import BaseModel, ConfigDict, Field

from mechnum.circuits.running.store import Store
from mechnum.models import Model
from mechnum.tasks import Accuracy, Pairs, Task, parse
from mechnum.tasks.processes import Process, find_process
from mechnum.tasks.processes.files import NAMES
from mechnum.tasks.prompts import fingerprint
from mechnum.tasks.task import Operand


class Settings(BaseModel):
    """The settings of an instrument; each field has a default and a docstring."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    asks_task: ClassVar[bool] = True
    """Whether the measurement has to do with the model's task; False where it brings its own
    texts."""

    def models(self) -> Iterable[str]:
        """Further models that the measurement compares with, as `mechnum.load` takes them."""
        return ()

    def files(self, model: Model) -> Iterable[Path]:
        """Files beside the model that the measurement reads: it is stale when they change."""
        return ()


class SeededSettings(Settings):
    """Those of a measurement that draws at random."""

    seed: int = Field(default=0, ge=0)
    """Of all that is drawn."""


def is_process(name: str) -> bool:
    """Whether what a model does is predicting a hidden process rather than answering questions."""
    return name.endswith(".toml") or name.partition(":")[0] in NAMES


@dataclass(frozen=True, eq=False)
class Context:
    """What is measured.

    Attributes:
        model: the model.
        task_name: what it does, as `mechnum.tasks.parse` or `find_process` reads it.
        store: where the accuracy is kept.
        made_from: model and code, for the keys of what is stored.
        results: of the steps that this one needs, by name.
        others: the further models that the settings name, each as measured by itself.
    """

    model: Model
    task_name: str
    store: Store
    made_from: Mapping[str, Any]
    results: Mapping[str, xr.DataTree] = field(default_factory=dict)
    others: tuple[Context, ...] = ()
    _once: dict[Any, Any] = field(default_factory=dict, repr=False)

    def with_results(self, results: Mapping[str, xr.DataTree]) -> Context:
        """The same for a step that needs these; what was measured once stays so."""
        return replace(self, results=results)

    def beside(self, others: Iterable[Context]) -> Context:
        """The same for a step that compares it with these."""
        return replace(self, others=tuple(others))

    @property
    def is_process(self) -> bool:
        """Whether the model predicts a hidden process rather than answers questions."""
        return is_process(self.task_name)

    @property
    def task(self) -> Task:
        """The questions that the model answers.

        Raises:
            MechnumError: there is no such task.
        """
        return self._kept("task", lambda: parse(self.task_name))

    @property
    def process(self) -> Process:
        """The hidden process that the model predicts.

        Raises:
            MechnumError: there is no such process.
        """
        return self._kept("process", lambda: find_process(self.task_name))

    @property
    def prompts_fingerprint(self) -> str:
        """Of all prompts of the task with their answers, or of the process."""
        if self.is_process:
            process = self.process
            digest = hashlib.sha256(repr((process.name, process.tokens, process.states)).encode())
            digest.update(process.matrices.tobytes() + process.start.tobytes())
            return digest.hexdigest()[:12]
        return self._kept("prompts", lambda: fingerprint(self.task.prompts(self.model)))

    def accuracy(self) -> Accuracy:
        """What the model answers to all prompts; measured once and stored."""
        return self._kept("accuracy", self._accuracy)

    def pairs(self, n: int, vary: Operand, seed: int) -> Pairs:
        """Pairs of prompts that the model answers correctly, `n` at most; drawn once."""
        return self._kept(
            (n, vary, seed),
            lambda: self.task.pairs_at_most(self.model, n, vary, seed, accuracy=self.accuracy()),
        )

    def _accuracy(self) -> Accuracy:
        groups = self.task.prompts(self.model)

        def measured() -> xr.DataTree:
            said = self.task.accuracy(self.model).predicted.numpy()
            return xr.DataTree(xr.Dataset({"predicted": ("prompt", said)}))

        made_from = {**self.made_from, "prompts": self.prompts_fingerprint}
        stored = self.store.kept("accuracy", made_from, measured).tree.to_dataset()["predicted"]
        # Kept in the task's order, judged group after group.
        order = torch.cat([group.index for group in groups])
        predicted = torch.from_numpy(stored.values.astype(np.int64))
        return self.task.judged(self.model, groups, predicted[order]).select(order.argsort())

    def _kept(self, key: Any, made: Callable[[], Any]) -> Any:
        if key not in self._once:
            self._once[key] = made()
        return self._once[key]
