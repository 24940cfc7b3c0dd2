"""What a model says when its modules are filtered: the ablation table of Zhou et al. 2024."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr
from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.fourier.bases import BasisKind, fourier_basis
from mechnum.fourier.filtered_runs import (
    Answers,
    Filtering,
    answers,
    check_filtering,
)
from mechnum.fourier.filters import Band, band_removal, random_removal
from mechnum.inputs import seed_sequence
from mechnum.intervals import mean_interval
from mechnum.models.model import Model
from mechnum.patching.provenance import prompt_attributes
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.signatures import error_kinds
from mechnum.tasks.task import Task

NOTHING: Literal["nothing"] = "nothing"


@dataclass(frozen=True)
class _Condition:
    """One row of the table; `filtering` is None for the model as it is."""

    modules: str
    band: str
    projection: str
    rank: int
    filtering: Filtering | None


def filter_effects(
    model: Model,
    task: Task,
    prompts: Sequence[Prompts],
    numbers: Int[Tensor, " number"],
    bands: Sequence[Band],
    modules: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    position: str | int = "all",
    basis: BasisKind = "orthonormal",
    seed: int = 0,
) -> xr.Dataset:
    """Answers with the waves of each band removed from what modules write, prompt by prompt.

    Every band has a control: a random projection that removes as many directions.

    Args:
        task: what the prompts are of; it knows which tokens are numbers.
        numbers: token ids of 0 … N − 1, see `mechnum.tasks.answer_tokens`.
        bands: from `low_pass`, `high_pass`, `single_pass` or `without`.
        modules: whose writes are filtered: "both" (attention and MLPs), "attn", "mlp", or a set of
            modules by name such as "attn 3 + mlp 5"; the first three
            by default, without "mlp" and "both" where there are no MLPs.
        layers: of which layers; all by default.
        position: "all", the name of a position, or an index.
        seed: of the random projections.

    Returns:
        Over (condition, prompt), prompts group after group: `loss`, −log probability of the right
        answer in nats; `correct`; `error`, predicted minus right number, NaN where the answer is no
        number; and `kinds` over (condition, kind, prompt), see `mechnum.tasks.error_kinds`.
        Coordinates over condition: `modules`, `band`, `projection` ("filter" or "random"; the
        first condition is the model as it is, with "nothing" for all three), and `rank`, the
        directions removed of the `d_model` in the attributes.

    Raises:
        MechnumError: on no bands or prompts, and as `mechnum.fourier.filters` and
            `mechnum.fourier.filtered_runs` do.

    Warns:
        UserWarning: where a band removes everything that a module can write.
    """
    if not bands:
        raise MechnumError("there is nothing to remove: give at least one band")
    waves = fourier_basis(len(numbers), basis)
    conditions = [_Condition(NOTHING, NOTHING, NOTHING, 0, None)]
    streams = seed_sequence(seed).generate_state(len(bands)).tolist()
    for band, stream in zip(bands, streams, strict=True):
        removed = band_removal(model, numbers, band, waves)
        control = random_removal(model.spec.d_model, removed.rank, stream)
        for one in _modules(model, modules):
            for name, what in (("filter", removed), ("random", control)):
                chosen = None if layers is None else tuple(layers)
                where = Filtering(what, one, chosen, position)
                conditions.append(_Condition(one, band.name, name, removed.rank, where))
    # Before the first run, which can take long.
    for condition in conditions[1:]:
        check_filtering(model, prompts, condition.filtering)
    _warn_if_all(model, conditions)
    found = [answers(model, prompts, condition.filtering) for condition in conditions]
    return _table(model, task, prompts, conditions, found).assign_attrs(
        prompt_attributes(model, prompts)
        | {
            "task": task.name,
            "position": str(position),
            "layers": "all" if layers is None else ", ".join(map(str, layers)),
            "basis": basis,
            "n_numbers": len(numbers),
            "d_model": model.spec.d_model,
            "seed": seed,
        }
    )


def filter_table(effects: xr.Dataset, seed: int = 0) -> xr.Dataset:
    """Means over prompts of what `filter_effects` gave, with 95 % bootstrap intervals.

    All conditions share the resampled prompts.

    Returns:
        `mean`, `low`, `high` and `n` over (condition, measure), where measures are "loss",
        "accuracy" and the kinds of errors, whose n is the number of answers that they apply to.
    """
    measures = xr.concat(
        [
            effects["loss"].expand_dims(kind=["loss"]),
            effects["correct"].astype(np.float64).expand_dims(kind=["accuracy"]),
            effects["kinds"],
        ],
        dim="kind",
    ).rename(kind="measure")
    return mean_interval(measures, dim="prompt", seed=seed).assign_coords(effects["rank"].coords)


def _modules(model: Model, modules: Sequence[str] | None) -> Sequence[str]:
    if modules is None:
        return ("both", "attn", "mlp") if model.spec.d_mlp else ("attn",)
    if not modules or isinstance(modules, str):
        raise MechnumError(f"modules {modules!r} are no list: use ['both', 'attn', 'mlp'] or some")
    return modules


def _warn_if_all(model: Model, conditions: Sequence[_Condition]) -> None:
    whole = [one.band for one in conditions if one.rank >= model.spec.d_model]
    for band in dict.fromkeys(whole):
        warnings.warn(
            f"with '{band}' all {model.spec.d_model} directions of {model.name} go, so that "
            "modules write nothing: choose a band of fewer waves",
            stacklevel=3,
        )


def _table(
    model: Model,
    task: Task,
    prompts: Sequence[Prompts],
    conditions: Sequence[_Condition],
    found: Sequence[Answers],
) -> xr.Dataset:
    judged = [task.judged(model, prompts, one.predicted) for one in found]
    dims = ("condition", "prompt")
    coords = {
        name: ("condition", [getattr(condition, name) for condition in conditions])
        for name in ("modules", "band", "projection", "rank")
    }
    variables = {name: ("prompt", of.numpy()) for name, of in judged[0].variables.items()}
    return xr.Dataset(
        {
            "loss": (dims, np.stack([one.loss.numpy() for one in found])),
            "correct": (dims, np.stack([one.correct.numpy() for one in judged])),
            "error": (dims, np.stack([one.errors.numpy() for one in judged])),
            "kinds": xr.concat([error_kinds(one) for one in judged], dim="condition"),
        },
        coords={**coords, **variables},
    )
