"""Faithfulness over circuit sizes: the areas CPR and CMD, beside random circuits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Int
from scipy.integrate import trapezoid
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.patching.circuit.circuit import scored_edges
from mechnum.patching.circuit.faithfulness import CircuitRuns
from mechnum.patching.metrics import MetricName
from mechnum.patching.values import MeanOver, ValueName
from mechnum.tasks.pairs import Pairs

# Shares of all edges, as in the MIB benchmark (Mueller et al. 2025, section 3.1).
FRACTIONS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def faithfulness_curve(
    model: Model,
    pairs: Pairs,
    scores: xr.DataArray,
    fractions: Sequence[float] = FRACTIONS,
    metric: MetricName = "logit_diff",
    values: ValueName = "other",
    mean_over: MeanOver = "position",
    signed: bool = False,
    n_random: int = 3,
    seed: int = 0,
) -> xr.Dataset:
    """Faithfulness of the best edges, for growing shares of all edges.

    CPR is the area under faithfulness, CMD that under |1 − faithfulness|, by the trapezoid rule
    over the fractions (Mueller et al. 2025, section 3.1).

    Args:
        scores: one score for each edge over (sender, receiver), as `mechnum.attribute` and
            `mechnum.path_effects` give; a "pair" dimension is averaged. Score edges on other pairs
            than these: `pairs.split()` makes two halves.
        signed: take the edges with the largest scores, rather than the largest absolute ones.
        n_random: random circuits of equal size for each fraction.

    Returns:
        `faithfulness`, `low`, `high`, `n_edges` over fraction; `random` over (fraction, draw);
        `CPR`, `CMD`, and `random_CPR`, `random_CMD` over draw; `status`.

    Raises:
        MechnumError: on scores that are not those of a model's edges, and on fractions outside 0
            to 1.
    """
    fractions = sorted(set(fractions))
    if not fractions or fractions[0] < 0 or fractions[-1] > 1:
        raise MechnumError(f"fractions {fractions} of edges are none: give some from 0 to 1")
    edges, values_of = scored_edges(scores)
    worth = values_of if signed else np.abs(values_of)
    runs = CircuitRuns(model, pairs, [edges], metric, values, mean_over, seed)
    exists = torch.from_numpy(runs.graph.possible)
    n_all = int(exists.sum())
    sizes = [round(fraction * n_all) for fraction in fractions]
    if sizes[-1] > len(edges):
        raise MechnumError(
            f"{len(edges)} of {n_all} edges have a score, fewer than the fraction "
            f"{fractions[-1]:g}: score more edges, or ask for smaller fractions"
        )
    order = np.argsort(-worth, kind="stable")
    generator = np.random.default_rng(np.random.SeedSequence(seed))
    every = exists.nonzero()
    places = torch.from_numpy(runs.graph.places(edges)[order])
    masks = [_mask(exists, places[:size]) for size in sizes]
    # All draws are nested, as the circuits of the curve are.
    draws = [torch.from_numpy(generator.permutation(len(every))) for _ in range(n_random)]
    masks += [_mask(exists, every[draw[:size]]) for draw in draws for size in sizes]
    found = runs.scores(masks)
    n = len(sizes)
    share = found["faithfulness"].values
    random = share[n:].reshape(n_random, n).T
    return xr.Dataset(
        {
            **{
                name: ("fraction", found[name].values[:n])
                for name in ("faithfulness", "low", "high")
            },
            "n_edges": ("fraction", found["n_edges"].values[:n]),
            "random": (("fraction", "draw"), random),
            "CPR": trapezoid(share[:n], fractions),
            "CMD": trapezoid(np.abs(1 - share[:n]), fractions),
            "random_CPR": ("draw", trapezoid(random, fractions, axis=0)),
            "random_CMD": ("draw", trapezoid(np.abs(1 - random), fractions, axis=0)),
            "status": str(found["status"].values[0]),
        },
        {"fraction": list(fractions), "draw": np.arange(n_random)},
        {**runs.said, "signed": str(signed), "seed": seed},
    )


def _mask(
    like: Bool[Tensor, "sender receiver"], places: Int[Tensor, "edge 2"]
) -> Bool[Tensor, "sender receiver"]:
    mask = torch.zeros_like(like)
    mask[places[:, 0], places[:, 1]] = True
    return mask
