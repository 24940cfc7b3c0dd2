"""Do Fourier features in the number vectors rescue a net that learns to add? (Zhou et al. 2024,
section 5.)

Three kinds of nets are trained on the same prompts under several seeds: from random number vectors,
with Fourier vectors that are given and frozen in the embedding, and from Fourier vectors in both
tables, all trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import isqrt
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.fourier import (
    Band,
    embedding_rows,
    filter_effects,
    filter_table,
    fourier_lens,
    spectrum,
    without,
)
from mechnum.fourier.filtered_runs import answers
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.models import load
from mechnum.models.adders import WEIGHTS_FILE
from mechnum.patching.provenance import versions
from mechnum.progress import track
from mechnum.tasks import addition, answer_tokens, error_signature
from mechnum.tasks.prompts import Prompts
from mechnum.training import Recipe, export, find_recipe, train
from mechnum.training.bundle import run_folder
from mechnum.training.claim import check_claim
from mechnum.training.curves import logged_scores
from mechnum.training.prompts import PromptExamples

ARMS = {"scratch": "adder-scratch", "rescued": "adder-rescued", "Fourier start": "adder-gptj"}
KNOWN = 0.99
"""Held-out accuracy from which a net counts as one that adds."""
_CUT_PERIOD = 20  # Zhou et al. 2024 cut 520 numbers at row 50, a period of about 20.
_HIGH_PERIODS = (10, 5, 2.5, 2)  # The outliers above the cut, in embeddings and logits.

Run: TypeAlias = tuple[str, int]


def rescue_recipes(
    seeds: int = 3, steps: int | None = None, arms: Mapping[str, Recipe] | None = None
) -> dict[Run, Recipe]:
    """The recipe of each run, by arm and seed.

    Args:
        seeds: of weights, split and batches, from 0 on; the arms share them.
        steps: optimiser steps, where they are not the recipes' own.
        arms: other recipes than those of `ARMS`.

    Raises:
        MechnumError: on fewer than 1 seed or step.
    """
    positive_integer("seeds", seeds)
    chosen = {arm: find_recipe(name) for arm, name in ARMS.items()} if arms is None else arms
    if steps is not None:
        positive_integer("steps", steps)
        chosen = {arm: replace(recipe, steps=steps) for arm, recipe in chosen.items()}
    # Seeds outside, so that an experiment that is stopped has whole comparisons.
    return {
        (arm, seed): replace(recipe, seed=seed)
        for seed in range(seeds)
        for arm, recipe in chosen.items()
    }


def train_rescue(recipes: Mapping[Run, Recipe], out: Path) -> dict[Run, Path]:
    """Train what is not trained yet; each run has its own folder in `out`, as `mechnum train` has.

    A run that was stopped goes on from its last saved state, and a finished one is left as it is.

    Returns:
        The folder of each model.

    Raises:
        MechnumError: where a folder holds something else, and as `mechnum.training.train`.
    """
    folders = {run: out / f"{recipe.name}-seed{recipe.seed}" for run, recipe in recipes.items()}
    # Before hours of training.
    for run, recipe in recipes.items():
        place = run_folder(folders[run])
        if place.exists():
            check_claim(place, recipe)
    for run, recipe in recipes.items():
        place = run_folder(folders[run])
        if not (folders[run] / WEIGHTS_FILE).is_file():
            train(recipe, place)
            export(recipe, place, folders[run])
    return folders


def measure_rescue(
    recipes: Mapping[Run, Recipe],
    folders: Mapping[Run, Path],
    n_prompts: int = 500,
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """What the trained nets do with prompts that they were not trained on, and by which waves.

    Spectra, lens and filters are over the operands' numbers 0 … N − 1, and prompts whose sum is one
    of them, so that every period that divides N is a frequency. Low are the frequencies up to a
    period of 20, where Zhou et al. 2024 cut. The filters remove these, or the high ones of periods
    10, 5, 2.5 and 2, about as many directions: all high ones would be most of what a residual
    stream as narrow as these has, and a random projection of their rank leaves nothing either.

    Args:
        recipes, folders: of `rescue_recipes` and `train_rescue`.
        n_prompts: held-out prompts that are filtered and looked at, at most.
        seed: of their draw, the random projections and the intervals.
        said: further attributes, such as the command.

    Returns:
        All over (arm, seed). `/rescue`: `heldout_accuracy`, `heldout_loss` (nats) of the stored
        nets, `reached`, the first logged step with 99 % of the held-out prompts right (NaN: none),
        and `embedding_low` and `lens_low`, the shares of power in frequencies below the cut.
        `/curves`, over step: the log. `/embeddings`, over frequency: `share`, of the number
        vectors. `/lens`, over (layer, frequency): `share`, of the power that the logit lens sees in
        the residual after each layer (−1: the embedding). `/filters`, over (condition, measure):
        `filter_table`, with the coordinate `part`, "low", "high" or "nothing". `/errors`: `count`
        of wrong held-out answers over error, and `share`, `low` and `high` over kind, see
        `mechnum.tasks.error_signature`.

    Raises:
        MechnumError: where a folder holds no model, or nothing was held out.
    """
    found: dict[str, dict[Run, xr.Dataset]] = {}
    for run in track(list(recipes), "measuring the nets"):
        for path, part in _measured(recipes[run], folders[run], n_prompts, seed).items():
            found.setdefault(path, {})[run] = part
    parts = {path: _by_run(each) for path, each in found.items()}
    parts["/errors"]["count"] = parts["/errors"]["count"].fillna(0).astype(np.int64)
    first = next(iter(recipes.values()))
    filters = next(iter(found["/filters"].values()))
    attrs = {
        "model": "adders trained from three starts",
        "task": first.task,
        "template": str(first.template),
        "arms": json.dumps({arm: recipe.name for (arm, _), recipe in recipes.items()}),
        "seeds": len({seed for _, seed in recipes}),
        "steps": first.steps,
        **filters.attrs,
        "seed": seed,
        "versions": json.dumps(versions()),
        **(said or {}),
    }
    bare = {path: part.drop_attrs(deep=False) for path, part in parts.items()}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **bare})


def _measured(recipe: Recipe, folder: Path, n_prompts: int, seed: int) -> dict[str, xr.Dataset]:
    """What one net gives to each part of the tree."""
    examples = recipe.data().examples(recipe)
    assert isinstance(examples, PromptExamples), "adders are trained on prompts"
    model, n = load(folder), isqrt(len(examples.data.tokens))
    task, cut = addition(range(n)), max(2, round(n / _CUT_PERIOD))
    (prompts,) = task.prompts(model)
    numbers = answer_tokens(model, [prompts])[:n]
    heldout = _heldout(examples, prompts, n)
    said = answers(model, [heldout])
    signature = error_signature(task.judged(model, [heldout], said.predicted), seed)
    looked_at = [_some(heldout, n, n_prompts, seed)]
    bands = {"low": without(range(1, cut)), "high": without(_decimal(n, cut))}
    effects = filter_effects(model, task, looked_at, numbers, list(bands.values()), seed=seed)
    embeddings = spectrum(embedding_rows(model, range(n)))[["share"]]
    power = fourier_lens(model, looked_at, numbers, permutations=0)["power"].sel(stage="resid")
    lens = (power / power.sum("frequency")).drop_vars("stage").to_dataset(name="share")
    curves = logged_scores(folder)
    known = curves["step"].values[curves["heldout_accuracy"].values >= KNOWN]
    summary = xr.Dataset(
        {
            "heldout_accuracy": float((said.predicted == heldout.answers).double().mean()),
            "heldout_loss": float(said.loss.mean()),
            "n_heldout": len(heldout),
            "reached": float(known[0]) if len(known) else np.nan,
            "embedding_low": _below(embeddings["share"], cut),
            "lens_low": _below(lens["share"].isel(layer=-1, drop=True), cut),
        }
    )
    return {
        "/rescue": summary,
        "/curves": curves,
        "/embeddings": embeddings,
        "/lens": lens,
        "/filters": _named(filter_table(effects, seed), bands).assign_attrs(
            n_numbers=n,
            n_prompts=len(looked_at[0]),
            cut_frequency=cut,
            cut_period=n / cut,
            high_periods=", ".join(f"{n / k:g}" for k in _decimal(n, cut)),
            d_model=model.spec.d_model,
        ),
        "/errors": signature[["count", "share", "low", "high"]],
    }


def _heldout(examples: PromptExamples, prompts: Prompts, n: int) -> Prompts:
    """The prompts that training holds out; its rows are a·n + b."""
    pairs = prompts.variables["a"] * n + prompts.variables["b"]
    return prompts.select(torch.isin(pairs, examples.parts.heldout).nonzero().flatten())


def _some(heldout: Prompts, n: int, n_prompts: int, seed: int) -> Prompts:
    """Prompts that are drawn from those whose sum is a number below n."""
    within = heldout.select((heldout.variables["answer"] < n).nonzero().flatten())
    if not len(within):
        raise MechnumError(f"no prompt with a sum below {n} is held out: hold out more")
    order = np.random.default_rng(seed_sequence(seed)).permutation(len(within))
    return within.select(torch.from_numpy(np.sort(order[:n_prompts])))


def _decimal(n: int, cut: int) -> list[int]:
    """Frequencies over n numbers of the high periods, as far as they are waves of their own."""
    waves = [n / period for period in _HIGH_PERIODS]
    return [int(k) for k in waves if k.is_integer() and k >= cut]


def _named(table: xr.Dataset, bands: Mapping[str, Band]) -> xr.Dataset:
    parts = {band.name: part for part, band in bands.items()}
    named = [parts.get(str(band), str(band)) for band in table["band"].values]
    return table.assign_coords(part=("condition", named))


def _below(share: xr.DataArray, cut: int) -> xr.DataArray:
    """The share of the frequencies below the cut."""
    return share.sel(frequency=share["frequency"] < cut).sum("frequency", skipna=False)


def _by_run(each: Mapping[Run, xr.Dataset]) -> xr.Dataset:
    """Datasets of runs as one over (arm, seed); what a run does not have is NaN."""
    arms = list(dict.fromkeys(arm for arm, _ in each))
    rows = []
    for arm in arms:
        own = {seed: part for (name, seed), part in each.items() if name == arm}
        stacked = xr.concat(own.values(), "seed", join="outer", combine_attrs="drop")
        rows.append(stacked.assign_coords(seed=list(own)))
    return xr.concat(rows, "arm", join="outer", combine_attrs="drop").assign_coords(arm=arms)
