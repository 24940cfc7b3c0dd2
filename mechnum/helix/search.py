"""Which periods: every subset of the candidates, by held-out R² and by causal score.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 4: for each number of periods the
subset with the best mean score over layers; there the best ones are nested. What is chosen there is
scored on the same pairs, which favours it; here it is chosen and scored on different numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float32, Float64

from mechnum.errors import InvalidInput, MechnumError
from mechnum.helix.basis import check_periods
from mechnum.helix.crossfit import CrossFits, parts_by_value
from mechnum.helix.estimators import Helix, explained_variance
from mechnum.helix.site import Site
from mechnum.inputs import numbers_with_states, positive_integer
from mechnum.models.memory import batches
from mechnum.models.model import Model
from mechnum.patching.metrics import MetricName
from mechnum.patching.provenance import attributes
from mechnum.patching.residual import patch_residual
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs
from mechnum.tasks.prompts import Prompts

MOST_SUBSETS = 1024


def search_periods(
    numbers: Any,
    states: Any,
    candidates: Sequence[float | int] = (2, 5, 10, 100),
    most: int | None = None,
    linear: bool = True,
    components: int = 100,
    folds: int = 5,
    seed: int = 0,
) -> xr.Dataset:
    """Every subset of the candidate periods, by R² of its helix on held-out numbers.

    The values of the first variable are dealt into two halves. Subsets are chosen by their R² on
    the first and scored by that on the second, each number predicted by fits to the other folds of
    its half. Costs a decomposition for each fold and half, and a small fit for each subset there.

    Args:
        numbers: [row].
        states: [row, d].
        most: periods of a subset, at most; all candidates by default.

    Returns:
        Over subset: `chosen_by`, the held-out R² of the first half (`explained_variance`), and
        `r2`, that of the second; `periods`, as text; `n_periods`; `best`, whether it is the best of
        its size. A held-out R² pays for each column that does not help, so sizes compare. The
        attributes `best` (the best subset of all) and `nested` (whether each best subset contains
        the next smaller one).

    Raises:
        InvalidInput: on too many subsets, and where a half has too few numbers for a fit.
    """
    subsets = _subsets(candidates, most)
    numbers, states = numbers_with_states(numbers, states)
    half = _second_half(numbers[:, 0], seed)
    helices = {_said(subset): Helix(subset, linear, components) for subset in subsets}
    found = np.empty((len(subsets), 2))
    for side, rows in enumerate(track((~half, half), "searching periods")):
        own, true = numbers[rows], states[rows]
        parts = parts_by_value(own, own, positive_integer("folds", folds), seed)
        predicted = CrossFits.of(helices, own, own, parts).predictions(true, true)
        found[:, side] = [explained_variance(true, one) for one in predicted.values()]
    return _table(subsets, found[:, 0]).assign(r2=("subset", found[:, 1]))


def search_periods_causally(
    model: Model,
    pairs: Pairs,
    prompts: Sequence[Prompts],
    position: str | int = "end",
    variables: Sequence[str] | None = None,
    candidates: Sequence[float | int] = (2, 5, 10, 100),
    most: int | None = None,
    layers: Sequence[int] | None = None,
    metric: MetricName = "logit_diff",
    components: int = 100,
    folds: int | None = 5,
    seed: int = 0,
) -> xr.Dataset:
    """Every subset of the candidate periods, by the causal score of its helix, mean over layers.

    The values of the first variable are dealt into two halves. Subsets are chosen by the pairs
    whose clean number is in the first, and scored by the others. Costs one patched run of all
    pairs for each subset and layer.

    Args:
        most: periods of a subset, at most; all candidates by default.

    Returns:
        Over subset as `search_periods`, `chosen_by` in units of the metric; `score` over (subset,
        layer, pair) and `r2` over (subset, layer), as of `causal_scores`; `scoring` over pair,
        whether a pair is one of those that score. The other arguments are as there.

    Raises:
        MechnumError: on too many subsets, where a half has no pair, and as `causal_scores`.
    """
    subsets = _subsets(candidates, most)
    site = Site(model, pairs, prompts, position)
    chosen = site.layers(layers)
    names = tuple(variables) if variables is not None else site.default_variables
    scoring = _second_half(site.clean_numbers(names)[:, 0], seed)
    if scoring.all() or not scoring.any():
        raise MechnumError(
            f"{len(pairs)} pairs have one number only to choose and to score periods with: give "
            "more pairs"
        )
    score = np.empty((len(subsets), len(chosen), len(pairs)))
    r2 = np.empty(score.shape[:2])
    subset_bytes = 4 * len(chosen) * len(pairs) * model.spec.d_model
    for some in batches(len(subsets), subset_bytes):
        helices = {_said(one): Helix(one, components=components) for one in subsets[some]}
        values, fits = site.fitted(helices, names, chosen, folds, seed)
        r2[some] = fits.T
        score[some] = _patched(site, values, chosen, metric)
    table = _table(subsets, score[:, :, ~scoring].mean((1, 2)))
    return (
        table.assign(
            score=(("subset", "layer", "pair"), score),
            r2=(("subset", "layer"), r2),
            scoring=("pair", scoring),
        )
        .assign_coords(layer=chosen, pair=np.arange(len(pairs)))
        .assign_attrs(
            **attributes(model, pairs, metric),
            position=str(position),
            features=", ".join(names),
            folds="in sample" if folds is None else str(folds),
            fit_seed=seed,
            cost=f"{len(subsets)} subsets at {len(chosen)} layers: {len(subsets) * len(chosen)} "
            f"patched runs of {len(pairs)} pairs",
        )
    )


def _patched(
    site: Site,
    values: Float32[np.ndarray, "layer subset pair d_model"],
    layers: Sequence[int],
    metric: MetricName,
) -> Float64[np.ndarray, "subset layer pair"]:
    given = torch.from_numpy(values)
    score = patch_residual(site.model, site.pairs, given, layers, site.position, metric)
    return score.transpose(1, 0, 2)


def _subsets(candidates: Sequence[float | int], most: int | None) -> list[tuple[float, ...]]:
    periods = sorted(set(check_periods(candidates)))
    if not periods:
        raise InvalidInput("no candidate periods: give for example (2, 5, 10, 100)")
    largest = len(periods) if most is None else positive_integer("most", most)
    sizes = range(1, min(largest, len(periods)) + 1)
    count = sum(comb(len(periods), size) for size in sizes)
    if count > MOST_SUBSETS:
        raise InvalidInput(
            f"{len(periods)} candidates have {count} subsets, more than {MOST_SUBSETS}: "
            "give fewer, or a smaller `most`"
        )
    return [subset for size in sizes for subset in combinations(periods, size)]


def _second_half(numbers: Float64[np.ndarray, " row"], seed: int) -> np.ndarray:
    """Whether each row's number is in the second half of the numbers, dealt at random."""
    values, which = np.unique(numbers, return_inverse=True)
    # A stream of its own, apart from those of the folds and splits.
    generator = np.random.default_rng(np.random.SeedSequence(seed).spawn(3)[2])
    return generator.permutation(np.arange(len(values)) % 2 == 1)[which]


def _table(
    subsets: Sequence[tuple[float, ...]], chosen_by: Float64[np.ndarray, " subset"]
) -> xr.Dataset:
    """The subsets by what they are chosen by, with the best of each size marked."""
    sizes = np.array([len(subset) for subset in subsets])
    winners = [
        max(np.flatnonzero(sizes == size).tolist(), key=lambda row: chosen_by[row])
        for size in np.unique(sizes)
    ]
    nested = all(set(subsets[small]) < set(subsets[large]) for small, large in pairwise(winners))
    return xr.Dataset(
        {"chosen_by": ("subset", chosen_by)},
        coords={
            "subset": np.arange(len(subsets)),
            "periods": ("subset", [_said(subset) for subset in subsets]),
            "n_periods": ("subset", sizes),
            "best": ("subset", np.isin(np.arange(len(subsets)), winners)),
        },
        attrs={"best": _said(subsets[int(np.argmax(chosen_by))]), "nested": str(nested).lower()},
    )


def _said(periods: Sequence[float]) -> str:
    return ", ".join(f"{period:g}" for period in periods)
