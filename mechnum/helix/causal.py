"""Causal scores: how much of a state's effect its fitted value has.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float64

from mechnum.errors import MechnumError
from mechnum.helix.basis import check_periods
from mechnum.helix.controls import PermutedLabels
from mechnum.helix.estimators import (
    Circle,
    Helix,
    PCAReconstruction,
    Polynomial,
)
from mechnum.helix.heldout import Estimator
from mechnum.helix.site import Site
from mechnum.models.model import Model
from mechnum.patching.metrics import MetricName
from mechnum.patching.provenance import attributes
from mechnum.patching.residual import patch_residual
from mechnum.tasks.pairs import Pairs
from mechnum.tasks.prompts import Prompts

Method = Literal["full", "pca", "helix", "circle", "polynomial", "permuted"]


def causal_scores(
    model: Model,
    pairs: Pairs,
    prompts: Sequence[Prompts],
    position: str | int = "end",
    variables: Sequence[str] | None = None,
    methods: Sequence[Method] = ("full", "pca", "helix", "circle", "polynomial"),
    periods: Sequence[float | int] = (2, 5, 10, 100),
    layers: Sequence[int] | None = None,
    metric: MetricName = "logit_diff",
    components: int = 100,
    folds: int | None = 5,
    seed: int = 0,
) -> xr.Dataset:
    """Effect of overwriting a state of the corrupt run with what a fit says of the clean number.

    For the embedding (layer −1) and each layer's output, the state at `position` is overwritten and
    the rest is recomputed. What is written: "full", the clean run's state; "pca", that state
    rebuilt from principal components; "helix", "circle" and "polynomial", the state that the fit
    predicts for the clean numbers; "permuted", the prediction of a helix that was fitted to
    shuffled numbers. All of it is computed from stored runs before anything is patched.

    With k periods and v variables the helix has (2k + 1)·v columns beside the constant, PCA as
    many components, the polynomials degree 2k + 1, and the circle one column a variable less.

    Args:
        prompts: what is fitted, see `mechnum.tasks.states.sample_prompts`.
        position: name of a position ("a", "b", "end") or an index, negative ones from the end.
        variables: the numbers that the state is a function of: names of the prompts' variables or
            sums of them, as ("a",), ("a+b",), ("a", "b", "a+b"). The default is the operand at its
            own position, and the answer everywhere else.
        components: principal components of the states that are fitted, at most.
        layers: the layers to patch, −1 for the embedding; all of them by default.
        folds: each pair is scored by fits that have not seen its numbers: values are dealt into
            this many folds, see `mechnum.helix.crossfit.parts_by_value`. None fits to all prompts
            and scores in sample, as the paper did.
        seed: of the folds and of the shuffled numbers.

    Returns:
        `score` over (layer, method, pair): metric after overwriting minus metric of the corrupt
        run, in units of the metric. `r2` over (layer, method): R² of the written values as
        predictions of the clean states, over pairs, out of sample unless `folds` is None; NaN where
        the clean states are all the same. xarray takes the word `method` for itself, so select with
        `.sel({"method": "helix"})`. Coordinate `parameters` over method: independent directions
        written at most, beside the constant.

    Raises:
        MechnumError: on unknown methods, variables, positions or layers, and where the prompts
            have too few numbers for the columns.
    """
    methods = _check_methods(methods)
    site = Site(model, pairs, prompts, position)
    chosen = site.layers(layers)
    names = tuple(variables) if variables is not None else site.default_variables
    rivals = rival_estimators(check_periods(periods), len(names), components, seed)
    estimators = {method: rivals[method] for method in methods}
    values, r2 = site.fitted(estimators, names, chosen, folds, seed)
    score = patch_residual(model, pairs, torch.from_numpy(values), chosen, position, metric)
    numbers, d_model = site.numbers(names), model.spec.d_model
    sizes = [parameters(estimator, numbers, d_model) for estimator in estimators.values()]
    dropped = Helix(tuple(periods)).make_basis().fit(numbers).dropped_
    return score_table(score, r2, chosen, list(methods), sizes).assign_attrs(
        **attributes(model, pairs, metric),
        position=str(position),
        features=", ".join(names),
        periods=[float(period) for period in periods],
        dropped_columns=", ".join(dropped) or "none",
        components=components,
        n_fit=len(numbers),
        folds="in sample" if folds is None else str(folds),
        fit_seed=seed,
    )


def variable_scores(
    model: Model,
    pairs: Pairs,
    prompts: Sequence[Prompts],
    position: str | int = "end",
    features: Sequence[Sequence[str]] = (("a", "b"), ("a+b",), ("a", "b", "a+b")),
    periods: Sequence[float | int] = (2, 5, 10, 100),
    layers: Sequence[int] | None = None,
    metric: MetricName = "logit_diff",
    components: int = 100,
    folds: int | None = 5,
    seed: int = 0,
) -> xr.Dataset:
    """Causal scores of helices in several variables, beside PCA of their sizes.

    At the last token a state may hold a helix of each operand, of their sum, or of all three
    (section 5): helix(a,b), helix(a+b), helix(a,b,a+b). As `causal_scores` in all else.

    Args:
        features: the variables of each helix, see `mechnum.tasks.numbers_of`.

    Returns:
        `score` over (layer, method, pair) and `r2` over (layer, method), with the methods "full",
        "PCA-9", "PCA-27" (2k + 1 components for each variable, of the smallest and the largest
        helix) and one "helix(...)" for each of `features`. A helix is scored on values that its own
        variables were not fitted with; PCA leaves out those of the most variables.

    Raises:
        MechnumError: as `causal_scores`.
    """
    if not features:
        raise MechnumError("no features to fit: give for example [('a', 'b'), ('a+b',)]")
    site = Site(model, pairs, prompts, position)
    chosen, checked = site.layers(layers), check_periods(periods)
    largest = max(features, key=len)
    sizes = sorted({(2 * len(checked) + 1) * len(names) for names in (largest, ("a",))})
    rivals = {f"PCA-{size}": PCAReconstruction(size) for size in sizes}
    fits: list[tuple[Mapping[str, Estimator | None], Sequence[str]]] = [
        ({"full": None, **rivals}, largest)
    ]
    helix = Helix(checked, components=components)
    fits += [({f"helix({','.join(names)})": helix}, names) for names in features]
    found = [site.fitted(one, names, chosen, folds, seed) for one, names in fits]
    values, r2 = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    score = patch_residual(model, pairs, torch.from_numpy(values), chosen, position, metric)
    d_model = model.spec.d_model
    counts = {
        method: parameters(estimator, site.numbers(names), d_model)
        for one, names in fits
        for method, estimator in one.items()
    }
    return score_table(score, r2, chosen, list(counts), list(counts.values())).assign_attrs(
        **attributes(model, pairs, metric),
        position=str(position),
        periods=[float(period) for period in periods],
        components=components,
        n_fit=len(site.numbers(largest)),
        folds="in sample" if folds is None else str(folds),
        fit_seed=seed,
    )


def score_table(
    score: Float64[np.ndarray, "layer method pair"],
    r2: Float64[np.ndarray, "layer method"],
    layers: Sequence[int],
    methods: Sequence[str],
    sizes: Sequence[int],
) -> xr.Dataset:
    """`score` and `r2` with their labels."""
    return xr.Dataset(
        {"score": (("layer", "method", "pair"), score), "r2": (("layer", "method"), r2)},
        coords={
            "layer": list(layers),
            "method": list(methods),
            "pair": np.arange(score.shape[2]),
            "parameters": ("method", list(sizes)),
        },
    )


def _check_methods(methods: Sequence[Method]) -> list[Method]:
    known = get_args(Method)
    unknown = [method for method in methods if method not in known]
    if unknown or not methods:
        what = f"unknown method {unknown[0]!r}" if unknown else "no methods"
        raise MechnumError(f"{what}: use some of {', '.join(known)}")
    return list(dict.fromkeys(methods))


def rival_estimators(
    periods: tuple[float, ...], n_variables: int, components: int, seed: int
) -> dict[str, Estimator | None]:
    """Rivals of equal size (section 4): 2k + 1 columns, components or degrees for k periods.

    "full" is the state itself.
    """
    size = 2 * len(periods) + 1
    helix = Helix(periods, components=components)
    # A stream of its own, apart from the one that deals the folds.
    permutation = np.random.SeedSequence(seed).spawn(1)[0].generate_state(1)[0]
    return {
        "full": None,
        "pca": PCAReconstruction(size * n_variables),
        "helix": helix,
        "circle": Circle(periods, components=components),
        "polynomial": Polynomial(size, components=components),
        "permuted": PermutedLabels(helix, seed=int(permutation)),
    }


def parameters(
    estimator: Estimator | None, numbers: Float64[np.ndarray, "prompt variable"], d_model: int
) -> int:
    """Directions that a method writes beside the constant, dead columns not counted."""
    if estimator is None:
        return d_model
    if isinstance(estimator, PCAReconstruction):
        return min(estimator.components, len(numbers) - 1, d_model)
    if isinstance(estimator, PermutedLabels):
        estimator = estimator.estimator
    return estimator.make_basis().fit(numbers).rank_ - 1
