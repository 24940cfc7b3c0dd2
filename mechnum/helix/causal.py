"""Causal scores: how much of a state's effect its fitted value has.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), sections 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float64

from mechnum.errors import MechnumError
from mechnum.helix.basis import check_periods
from mechnum.helix.controls import PermutedLabels
from mechnum.helix.crossfit import parts_by_value, predictions
from mechnum.helix.estimators import (
    Circle,
    Helix,
    PCAReconstruction,
    Polynomial,
    explained_variance,
)
from mechnum.helix.heldout import Estimator
from mechnum.models.model import Model
from mechnum.patching.metrics import MetricName
from mechnum.patching.provenance import attributes
from mechnum.patching.residual import patch_residual
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import numbers_of, states_of

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
    chosen = list(range(-1, model.spec.n_layers) if layers is None else layers)
    _check_layers(chosen, model)
    if len(pairs) == 0 or not prompts:
        raise MechnumError("there are no pairs or no prompts to fit: give at least one of each")
    names = list(variables) if variables is not None else _variables_at(position, prompts)
    numbers, states = numbers_of(prompts, names), states_of(model, prompts, position)
    clean = tuple(group.clean for group in pairs.groups)
    order = np.argsort(np.concatenate([group.index.numpy() for group in pairs.groups]))
    clean_numbers = numbers_of(clean, names)[order]
    clean_states = states_of(model, clean, position)[:, order]

    estimators = _estimators(check_periods(periods), len(names), components, seed)
    parts = parts_by_value(numbers, clean_numbers, folds, seed)
    shape = (len(chosen), len(methods), len(pairs), model.spec.d_model)
    values = np.empty(shape, dtype=np.float32)
    r2 = np.full(shape[:2], np.nan)
    cells = [(row, column) for row in range(shape[0]) for column in range(shape[1])]
    for row, column in track(cells, f"fitting states at {position}"):
        layer, method = chosen[row], methods[column]
        true = clean_states[layer + 1].astype(np.float64)
        written = true
        if method != "full":
            fitted_on = (numbers, states[layer + 1].astype(np.float64))
            written = predictions(estimators[method], fitted_on, (clean_numbers, true), parts)
        values[row, column] = written
        if bool((true != true[0]).any()):
            r2[row, column] = explained_variance(true, written)
    score = patch_residual(model, pairs, torch.from_numpy(values), chosen, position, metric)
    return xr.Dataset(
        {"score": (("layer", "method", "pair"), score), "r2": (("layer", "method"), r2)},
        coords={
            "layer": chosen,
            "method": list(methods),
            "pair": np.arange(len(pairs)),
            "parameters": (
                "method",
                [_parameters(method, estimators, numbers, shape[3]) for method in methods],
            ),
        },
        attrs={
            **attributes(model, pairs, metric),
            "position": str(position),
            "features": ", ".join(names),
            "periods": [float(period) for period in periods],
            "components": components,
            "n_fit": len(numbers),
            "folds": "in sample" if folds is None else str(folds),
            "fit_seed": seed,
        },
    )


def _check_methods(methods: Sequence[Method]) -> list[Method]:
    known = get_args(Method)
    unknown = [method for method in methods if method not in known]
    if unknown or not methods:
        what = f"unknown method {unknown[0]!r}" if unknown else "no methods"
        raise MechnumError(f"{what}: use some of {', '.join(known)}")
    return list(dict.fromkeys(methods))


def _check_layers(layers: Sequence[int], model: Model) -> None:
    if not layers:
        raise MechnumError("no layers to patch: name at least one, or leave `layers` out")
    outside = [layer for layer in layers if not -1 <= layer < model.spec.n_layers]
    if outside:
        raise MechnumError(
            f"layer {outside[0]} does not exist: {model.name} has layers −1 (the embedding) to "
            f"{model.spec.n_layers - 1}"
        )


def _variables_at(position: str | int, prompts: Sequence[Prompts]) -> list[str]:
    operand = isinstance(position, str) and position in prompts[0].variables
    return [str(position) if operand else "answer"]


def _estimators(
    periods: tuple[float, ...], n_variables: int, components: int, seed: int
) -> dict[Method, Estimator]:
    """Rivals of equal size (section 4): 2k + 1 columns, components or degrees for k periods."""
    size = 2 * len(periods) + 1
    helix = Helix(periods, components=components)
    # A stream of its own, apart from the one that deals the folds.
    permutation = np.random.SeedSequence(seed).spawn(1)[0].generate_state(1)[0]
    return {
        "pca": PCAReconstruction(size * n_variables),
        "helix": helix,
        "circle": Circle(periods, components=components),
        "polynomial": Polynomial(size, components=components),
        "permuted": PermutedLabels(helix, seed=int(permutation)),
    }


def _parameters(
    method: Method,
    estimators: dict[Method, Estimator],
    numbers: Float64[np.ndarray, "prompt variable"],
    d_model: int,
) -> int:
    """Directions that a method writes beside the constant, dead columns not counted."""
    if method == "full":
        return d_model
    estimator = estimators[method]
    if isinstance(estimator, PCAReconstruction):
        return min(estimator.components, len(numbers) - 1, d_model)
    if isinstance(estimator, PermutedLabels):
        estimator = estimator.estimator
    return estimator.make_basis().fit(numbers).rank_ - 1
