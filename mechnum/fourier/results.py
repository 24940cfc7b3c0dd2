"""What `mechnum lens` and `mechnum filter` measure, as the trees that reports draw and write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from jaxtyping import Int
from torch import Tensor

from mechnum.fourier.ablation import filter_effects, filter_table
from mechnum.fourier.bases import BasisKind
from mechnum.fourier.filtered_runs import answers
from mechnum.fourier.filters import Band, high_pass, low_pass
from mechnum.fourier.final_logits import detrended_spectrum, rebuilt_answers
from mechnum.fourier.lens import fourier_attribution, fourier_lens
from mechnum.fourier.readings import number_logits
from mechnum.models.model import Model
from mechnum.patching.provenance import prompt_attributes
from mechnum.tasks.answers import answer_tokens
from mechnum.tasks.arithmetic import parse
from mechnum.tasks.examples import bos_policy, example_tokens
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.signatures import error_signature
from mechnum.tasks.states import sample_prompts
from mechnum.tasks.task import Task


def lens_results(
    model: Model,
    task: Task | None = None,
    n_prompts: int = 500,
    position: str | int = "end",
    basis: BasisKind = "orthonormal",
    permutations: int = 99,
    seed: int = 0,
) -> xr.DataTree:
    """The Fourier lens on a task: states by frequency, the answer rebuilt, and the errors.

    Args:
        task: by default the one that the model was trained on, else addition of 0 to 99.
        n_prompts: prompts that are drawn, at most; right and wrong ones.
        position: where states are read; the answer and its logits are those of the last token.
        permutations: of the number tokens, as a null for outliers; 19 or more.
        seed: of the prompts and permutations.

    Returns:
        `/lens` from `fourier_lens` and `/attribution` from `fourier_attribution` with the frozen
        norm; `/rebuilt` from `rebuilt_answers`; `/logits` from `detrended_spectrum`; `/signature`
        from `mechnum.tasks.error_signature`; `/prompts`, the tokens of one prompt.

    Raises:
        MechnumError: where the model cannot do the task, its answers are no tokens of numbers from
            0 on, and as the functions named.
    """
    task = task or parse(model.default_task or "addition")
    prompts, numbers = _drawn(model, task, n_prompts, seed)
    look = {"position": position, "basis": basis, "permutations": permutations, "seed": seed}
    # First, since it refuses what cannot be looked at.
    lens = fourier_lens(model, prompts, numbers, **look)
    signature, said = _answered(model, task, prompts, seed)
    asked = torch.cat([group.variables["answer"] for group in prompts]).numpy()
    logits = number_logits(model, prompts, numbers)
    parts = {
        "/": xr.Dataset(
            attrs={**said, "position": str(position), "basis": basis, "n_numbers": len(numbers)}
        ),
        "/prompts": example_tokens(model, prompts[0]),
        "/lens": lens,
        "/attribution": fourier_attribution(model, prompts, numbers, **look),
        "/rebuilt": rebuilt_answers(logits, asked, basis, seed),
        "/logits": detrended_spectrum(logits),
        "/signature": signature,
    }
    return xr.DataTree.from_dict(parts)


def filter_results(
    model: Model,
    task: Task | None = None,
    bands: Sequence[Band] | None = None,
    modules: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    position: str | int = "all",
    basis: BasisKind = "orthonormal",
    n_prompts: int = 500,
    seed: int = 0,
) -> xr.DataTree:
    """The ablation table of Zhou et al. 2024 on a task, with the errors that filters leave.

    Args:
        task: by default the one that the model was trained on, else addition of 0 to 99.
        bands: what is removed; by default the low and the high components, cut at row 50.
        n_prompts: prompts that are drawn, at most; right and wrong ones.
        seed: of the prompts, the random projections and the intervals.
        others: as in `filter_effects`.

    Returns:
        `/filters` from `filter_effects`; `/table` from `filter_table`; `/errors`: `count` over
        (condition, error); `/signature`, the errors of the model as it is; `/prompts`, the tokens
        of one prompt.

    Raises:
        MechnumError: as `lens_results` and `filter_effects`.
    """
    task = task or parse(model.default_task or "addition")
    prompts, numbers = _drawn(model, task, n_prompts, seed)
    bands = [high_pass(), low_pass()] if bands is None else bands
    effects = filter_effects(
        model, task, prompts, numbers, bands, modules, layers, position, basis, seed
    )
    signature, said = _answered(model, task, prompts, seed)
    parts = {
        "/": xr.Dataset(attrs={**effects.attrs, **said}),
        "/prompts": example_tokens(model, prompts[0]),
        "/filters": effects.drop_attrs(deep=False),
        "/table": filter_table(effects, seed),
        "/errors": _error_counts(effects),
        "/signature": signature,
    }
    return xr.DataTree.from_dict(parts)


def _drawn(
    model: Model, task: Task, n_prompts: int, seed: int
) -> tuple[tuple[Prompts, ...], Int[Tensor, " number"]]:
    prompts = task.prompts(model)
    return sample_prompts(prompts, n_prompts, seed), answer_tokens(model, prompts)


def _answered(
    model: Model, task: Task, prompts: Sequence[Prompts], seed: int
) -> tuple[xr.Dataset, dict[str, str | int | float]]:
    """The errors of the model as it is, and what a report says of model, task and prompts."""
    accuracy = task.judged(model, prompts, answers(model, prompts).predicted)
    said = prompt_attributes(model, prompts) | {
        "family": model.spec.family,
        "task": task.name,
        "template": task.form(model),
        "bos": bos_policy(model, prompts[0]),
        "accuracy": accuracy.share,
        "seed": seed,
    }
    return error_signature(accuracy, seed), said


def _error_counts(effects: xr.Dataset) -> xr.Dataset:
    """How many wrong answers of each condition are off by how much."""
    wrong = np.where(effects["correct"].values, np.nan, effects["error"].values)
    errors = np.unique(wrong[np.isfinite(wrong)])
    counts = [[int((row == error).sum()) for error in errors] for row in wrong]
    return xr.Dataset(
        {
            "count": (
                ("condition", "error"),
                np.array(counts, dtype=np.int64).reshape(len(wrong), -1),
            )
        },
        coords={"error": errors.astype(np.int64), **effects["rank"].coords},
    )
