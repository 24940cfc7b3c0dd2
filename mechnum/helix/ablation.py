"""Ablation of a fitted subspace: how much of a state's effect is lost with its helix.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 4.
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
from mechnum.helix.components import TrainingStates
from mechnum.helix.crossfit import parts_by_value
from mechnum.helix.estimators import Helix
from mechnum.helix.site import Site
from mechnum.models.model import Model
from mechnum.patching.metrics import MetricName
from mechnum.patching.provenance import attributes
from mechnum.patching.residual import patch_residual
from mechnum.progress import track
from mechnum.tasks.pairs import Pairs
from mechnum.tasks.prompts import Prompts

Subspace = Literal["whole", "helix", "pca", "random", "random_components"]


def ablation_scores(
    model: Model,
    pairs: Pairs,
    prompts: Sequence[Prompts],
    position: str | int = "end",
    variables: Sequence[str] | None = None,
    subspaces: Sequence[Subspace] = ("whole", "helix", "pca", "random", "random_components"),
    periods: Sequence[float | int] = (2, 5, 10, 100),
    layers: Sequence[int] | None = None,
    metric: MetricName = "logit_diff",
    components: int = 100,
    folds: int | None = 5,
    seed: int = 0,
) -> xr.Dataset:
    """Effect of replacing a state's part inside a subspace by its mean over prompts.

    In the clean run, at `position` of the embedding (layer −1) or after a layer: h becomes
    h − VVᵀ(h − h̄), with V an orthonormal basis of the subspace and h̄ the mean state; the rest is
    recomputed. What matters lies in the subspace as far as this costs as much as ablating the
    whole state, and more than ablating as many directions at random.

    Args:
        subspaces: "whole", the entire state; "helix", the directions of a helix of the variables;
            and of as many dimensions: "pca", the leading principal components; "random",
            directions of the residual stream, in which states hardly vary; "random_components",
            directions among the `components` principal components, in which they do. Random ones
            are drawn anew for each layer and fold.
        folds: the subspace and the mean are those of prompts without the pair's numbers, see
            `mechnum.helix.crossfit.parts_by_value`; None fits to all prompts.
        seed: of the folds and of the random directions.

    Returns:
        `score` over (layer, method, pair): metric after ablation minus metric of the clean run, in
        units of the metric, so negative where it costs. Coordinate `parameters` over method: the
        dimensions that are ablated. The other arguments are as in `causal_scores`.

    Raises:
        MechnumError: on unknown subspaces, and as `causal_scores`.
    """
    wanted = _check_subspaces(subspaces)
    site = Site(model, pairs, prompts, position)
    chosen = site.layers(layers)
    names = tuple(variables) if variables is not None else site.default_variables
    numbers, asked = site.numbers(names), site.clean_numbers(names)
    helix = Helix(check_periods(periods), components=components)
    parts = parts_by_value(numbers, asked, folds, seed)
    inverses = [_coefficient_weights(helix, numbers[part.train]) for part in parts]
    # A stream of its own, apart from the one that deals the folds.
    generator = np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[1])
    values = np.empty((len(chosen), len(wanted), *site.clean_states.shape[1:]), dtype=np.float32)
    for row, layer in enumerate(track(chosen, f"fitting subspaces at {position}")):
        states, clean = (
            all_layers[layer + 1].astype(np.float64)
            for all_layers in (site.states, site.clean_states)
        )
        for part, inverse in zip(parts, inverses, strict=True):
            training = TrainingStates(states[part.train])
            bases = _bases(training, inverse, components, generator)
            for column, name in enumerate(wanted):
                own = clean[part.asked]
                basis = bases[name]
                removed = own - training.mean
                if basis is not None:
                    removed = removed @ basis.T @ basis
                values[row, column, part.asked] = own - removed
    score = patch_residual(
        model, pairs, torch.from_numpy(values), chosen, position, metric, direction="noise"
    )
    rank = helix.make_basis().fit(numbers).rank_ - 1
    return xr.Dataset(
        {"score": (("layer", "method", "pair"), score)},
        coords={
            "layer": chosen,
            "method": list(wanted),
            "pair": np.arange(len(pairs)),
            "parameters": (
                "method",
                [model.spec.d_model if name == "whole" else rank for name in wanted],
            ),
        },
        attrs={
            **attributes(model, pairs, metric),
            "direction": "noise",
            "values": "mean",
            "position": str(position),
            "features": ", ".join(names),
            "periods": [float(period) for period in periods],
            "components": components,
            "n_fit": len(numbers),
            "folds": "in sample" if folds is None else str(folds),
            "fit_seed": seed,
        },
    )


def _check_subspaces(subspaces: Sequence[Subspace]) -> tuple[Subspace, ...]:
    known = get_args(Subspace)
    unknown = [name for name in subspaces if name not in known]
    if unknown or not subspaces:
        what = f"unknown subspace {unknown[0]!r}" if unknown else "no subspaces"
        raise MechnumError(f"{what}: use some of {', '.join(known)}")
    return tuple(dict.fromkeys(subspaces))


def _coefficient_weights(
    helix: Helix, numbers: Float64[np.ndarray, "row variable"]
) -> Float64[np.ndarray, "column row"]:
    """How much of each row's state a coefficient is, for all columns but the constant."""
    return np.linalg.pinv(helix.make_basis().fit(numbers).transform(numbers))[1:]


def _bases(
    training: TrainingStates,
    inverse: Float64[np.ndarray, "column row"],
    components: int,
    generator: np.random.Generator,
) -> dict[Subspace, Float64[np.ndarray, "_ d"] | None]:
    """An orthonormal basis of each subspace; None for the whole space."""
    helix = training.span(inverse, components)
    axes = training.axes[:components]
    size = len(helix)
    mixed = _orthonormal(generator.normal(size=(min(size, len(axes)), len(axes))))
    return {
        "whole": None,
        "helix": helix,
        "pca": axes[:size],
        "random": _orthonormal(generator.normal(size=helix.shape)),
        "random_components": mixed @ axes,
    }


def _orthonormal(rows: Float64[np.ndarray, "row d"]) -> Float64[np.ndarray, "row d"]:
    return np.linalg.qr(rows.T)[0].T
