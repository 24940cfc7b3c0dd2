"""Two numbers that tell clocks from pizzas: gradient symmetricity and distance irrelevance."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float64
from torch import Tensor

from mechnum.errors import InvalidInput
from mechnum.grokking.logits import checked_logits
from mechnum.grokking.modulus import sums
from mechnum.grokking.nets import EmbeddingNet
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.models.exact import differentiable
from mechnum.models.memory import batches
from mechnum.progress import working

PUBLISHED_SHUFFLE = 42
LARGEST_SHUFFLED = 256
FORMS = ("correct", "largest_wrong")
_ROUNDING = 1e-12


def gradient_symmetricity(net: EmbeddingNet, n: int = 100, seed: int | None = None) -> xr.DataArray:
    """Cosine of one logit's gradients to the embeddings of a and of b (Zhong et al. 2023, 4.1).

    A pizza reads E_a + E_b, which gives 1. Nets whose first step is such a sum give 1 by their
    architecture, and nets of two layers or more come near it: read it with
    `distance_irrelevance`.

    Args:
        n: triples (a, b, c) that are drawn; c is any class.
        seed: None takes the published triples, the first of all p³ in the order of
            `random.Random(42).shuffle`; a number draws others.

    Returns:
        The cosine over triple, with coordinates a, b and c. NaN where a gradient is zero. Its mean
        is the published figure.

    Raises:
        InvalidInput: on fewer than 1 triple, or more than there are, on p > 256 without a seed,
            and on a net without gradients, or with ones that are not finite.
    """
    p = len(net.embeddings_a)
    a, b, c = _triples(p, n, seed)
    device = net.embeddings_a.device
    cosines = []
    for rows in batches(n, 3 * net.row_bytes):
        first, second, classes = (torch.from_numpy(x[rows]).to(device) for x in (a, b, c))
        with differentiable(device):
            # A copy for each row, so that no row's gradient holds another's.
            inputs = [
                table[index].detach().clone().requires_grad_()
                for table, index in ((net.embeddings_a, first), (net.embeddings_b, second))
            ]
            chosen = net.logits(*inputs).gather(1, classes[:, None]).sum()
            of_a, of_b = _gradients(chosen, *inputs)
        lengths = of_a.norm(dim=1) * of_b.norm(dim=1)
        if not bool(torch.isfinite(lengths).all()):
            raise InvalidInput("the gradients are not all finite: look for NaN in the weights")
        cosines.append(((of_a * of_b).sum(1) / lengths).numpy())
    return xr.DataArray(
        np.concatenate(cosines),
        dims="triple",
        coords={name: ("triple", index) for name, index in (("a", a), ("b", b), ("c", c))},
        name="gradient_symmetricity",
        attrs={"triples": "published" if seed is None else f"seed {seed}"},
    )


def distance_irrelevance(logits: Any) -> xr.DataArray:
    """How little a logit depends on the distance a − b (Zhong et al. 2023, section 4.2).

    mean over distances of the standard deviation over sums, over the standard deviation of all. 0
    for a logit that a − b alone decides, as in an ideal pizza; 1 for one that does not depend on
    a − b, as in a clock, and so for one that is the same for all pairs.

    Args:
        logits: [p, p, p] over a, b and class.

    Returns:
        Over form: "correct", of the right class's logit, the paper's definition; "largest_wrong",
        of the largest other logit, which the authors' training script computes, and so the column
        `distance_irrelevance` of the runs that they published.

    Raises:
        InvalidInput: on logits that are not finite [p, p, p], and on a p that is no prime ≥ 3.
    """
    logits = checked_logits(logits)
    p = len(logits)
    answers = sums(p)
    right = np.take_along_axis(logits, answers[..., None], axis=-1)
    others = logits.copy()
    np.put_along_axis(others, answers[..., None], -np.inf, axis=-1)
    return xr.DataArray(
        [_irrelevance(of) for of in (_by_distance(right[..., 0]), _by_distance(others.max(-1)))],
        dims="form",
        coords={"form": list(FORMS)},
        name="distance_irrelevance",
    )


def distance_map(logits: Any) -> xr.DataArray:
    """The right class's logit by a + b and a − b, both mod p (Zhong et al. 2023, section 4.2).

    `distance_irrelevance` says in a number how alike its columns are: an ideal pizza's logit
    depends on the distance alone, a clock's on neither.

    Args:
        logits: [p, p, p] over a, b and class.

    Returns:
        Over (sum, distance), from 0 to p − 1.

    Raises:
        InvalidInput: as `distance_irrelevance`.
    """
    logits = checked_logits(logits)
    p = len(logits)
    right = np.take_along_axis(logits, sums(p)[..., None], axis=-1)[..., 0]
    return xr.DataArray(
        _by_distance(right),
        dims=("sum", "distance"),
        coords={"sum": np.arange(p), "distance": np.arange(p)},
        name="logit",
    )


def _by_distance(values: Float64[np.ndarray, "p p"]) -> Float64[np.ndarray, "sum distance"]:
    """Values over (a, b) by a + b and a − b, which name one pair, p being odd."""
    p = len(values)
    numbers = np.arange(p)
    table = np.empty((p, p))
    table[sums(p), (numbers[:, None] - numbers[None, :]) % p] = values
    return table


def _irrelevance(table: Float64[np.ndarray, "sum distance"]) -> float:
    whole = table.std()
    if whole <= _ROUNDING * np.sqrt(np.mean(table**2)):
        return 1.0
    return float(table.std(axis=0).mean() / whole)


def _gradients(chosen: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    of_a = of_b = None
    if chosen.requires_grad:
        of_a, of_b = torch.autograd.grad(chosen, (a, b), allow_unused=True)
    if of_a is None or of_b is None:
        raise InvalidInput(
            "the logits have no gradient to the embeddings of a and of b: compute them from both, "
            "by torch operations without detach or no_grad"
        )
    return of_a.double().cpu(), of_b.double().cpu()


def _triples(p: int, n: int, seed: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if positive_integer("n", n) > p**3:
        raise InvalidInput(f"{n} triples are more than p = {p} has: give {p**3} at most")
    if seed is None:
        if p > LARGEST_SHUFFLED:
            raise InvalidInput(
                f"the published triples of p = {p} are drawn by shuffling {p**3}: give a seed"
            )
        # The order of a shuffle depends on the number of items alone.
        every = list(range(p**3))
        with working("shuffling the triples"):
            random.Random(PUBLISHED_SHUFFLE).shuffle(every)
        drawn = np.array(every[:n])
    else:
        drawn = np.random.default_rng(seed_sequence(seed)).choice(p**3, size=n, replace=False)
    a, b, c = np.unravel_index(drawn, (p, p, p))
    return a, b, c
