"""The circles that a net's embeddings lie on, and what the net computes from each alone."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Float64, Int
from scipy import fft
from torch import Tensor

from mechnum.errors import InvalidInput
from mechnum.fourier.bases import fourier_basis
from mechnum.fourier.spectra import strongest_frequencies
from mechnum.fourier.tables import centred
from mechnum.grokking.logits import Logits
from mechnum.grokking.modulus import check_prime
from mechnum.grokking.nets import EmbeddingNet, net_logits
from mechnum.inputs import positive_integer, to_numpy
from mechnum.progress import track

N_COMPONENTS = 4
FORMULAS = ("clock", "pizza", "accompanying")
CircleKind = Literal["components", "fourier"]
_ROUNDING = 1e-9
_ABSENT = 1e-6  # Of the largest wave's length, as float32 tables round: no circle.


def circularity(embeddings: Any) -> float:
    """How much the first four principal components of a table are waves (Zhong et al. 2023, 4.3).

    For the unit vector v of each over the numbers, the largest (2/p)|Σ_t v_t e^(2πikt/p)|² over
    k, and the mean of these: 1 for circles. Where b has tokens of its own, give one table: both
    together hold every number twice, which the authors' figures of such nets do not allow for.
    Circles of equal variance share their components, so that these are mixtures of waves and the
    figure is below 1.

    Args:
        embeddings: [p, d], one row for each number.

    Raises:
        InvalidInput: on tables that are not finite [p, d], that are the same for all numbers, and
            on a p that is no prime of 3 or more.
    """
    table = np.asarray(to_numpy(embeddings), dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise InvalidInput(f"the table of shape {table.shape} is not finite [p, d]: give one")
    p = check_prime(len(table))
    vectors = _components(table, N_COMPONENTS)
    power = 2 / p * np.abs(fft.rfft(vectors, axis=0)) ** 2
    return float(np.minimum(power[1:].max(axis=0), 1).mean())


def isolate_circles(net: EmbeddingNet, by: CircleKind = "components", n: int = 4) -> xr.Dataset:
    """What the net computes where its embeddings keep one circle alone (Zhong et al. 2023, 4.4).

    The tables of a and b are projected on two directions over the numbers, their means stay, and
    the logits of all pairs are compared with three formulas, at the frequency that fits best:

    - clock: cos w(a + b − c).
    - pizza: |cos(w(a − b)/2)| (|cos(w(a + b − c)/2)| − |sin(w(a + b − c)/2)|), which is what
      the absolute values of sums of E_a + E_b give.
    - accompanying: −cos w(a − b) · cos w(a + b − c), from a circle at twice the frequency, where a
      pizza is blind (a − b near p/2).

    Args:
        by: "components" takes principal components 2i and 2i + 1, as the paper; of both tables side
            by side where they differ. "fourier" takes cosine and sine of a frequency, which stays
            one circle where two have equal variance.
        n: circles at most; the strongest, without those that are mere rounding.

    Returns:
        Over (circle, formula): `explained`, 1 − Var(z − q) = 2·corr(z, q) − 1 of the z-scored
        logits z and formula q, and `best_frequency`, the k of w = 2πk/p at which it is largest.
        Over circle: `embedding_frequency`, which holds most of the circle's power, and `power`,
        its share of the tables'. NaN where the logits do not depend on the circle.

    Raises:
        InvalidInput: on another `by`, on tables that are the same for all numbers.
        MechnumError: on logits that are not finite.
    """
    if by not in get_args(CircleKind):
        raise InvalidInput(f"unknown circles by {by!r}: use 'components' or 'fourier'")
    positive_integer("n", n)
    tables = [net.embeddings_a, net.embeddings_b]
    p = check_prime(len(tables[0]))
    both = centred(np.hstack([table.detach().double().cpu().numpy() for table in tables]))
    circles = _component_pairs(both, n) if by == "components" else _fourier_circles(both, n)
    explained, best = [], []
    for directions in track(circles, "isolating circles"):
        kept = [_projected(table, directions) for table in tables]
        found = formula_fits(net_logits(net, *kept))
        explained.append(found.max(axis=1))
        best.append(1 + np.argmax(np.nan_to_num(found, nan=-2), axis=1))
    held = [np.sum((directions.T @ both) ** 2) / np.sum(both**2) for directions in circles]
    spectra = [np.sum(np.abs(fft.rfft(v @ (v.T @ both), axis=0)) ** 2, axis=1) for v in circles]
    return xr.Dataset(
        {
            "explained": (("circle", "formula"), np.array(explained)),
            "best_frequency": (("circle", "formula"), np.array(best)),
            "embedding_frequency": ("circle", [1 + int(np.argmax(s[1:])) for s in spectra]),
            "power": ("circle", held),
        },
        coords={"circle": np.arange(len(circles)), "formula": list(FORMULAS)},
        attrs={"circles_by": by, "p": p},
    )


def formula_fits(logits: Logits) -> Float64[np.ndarray, "formula frequency"]:
    """1 − Var(z − q) for each formula of `isolate_circles` and each k = 1 … (p − 1)/2.

    The formulas depend on a − b and a + b − c alone, so that means over these decide.
    """
    p = len(logits)
    spread = logits.std()
    if spread <= _ROUNDING * np.sqrt(np.mean(logits**2)):
        return np.full((len(FORMULAS), p // 2), np.nan)
    a, distance, error = np.ogrid[:p, :p, :p]
    b = (a - distance) % p
    means = logits[a, b, (a + b - error) % p].mean(axis=0)
    means -= means.mean()
    w = 2 * np.pi * np.outer(np.arange(1, p // 2 + 1), np.arange(p)) / p
    waves, halves = np.cos(w), np.abs(np.cos(w / 2))
    factors = (
        (np.ones_like(w), waves),
        (halves, halves - np.abs(np.sin(w / 2))),
        (-waves, waves),
    )
    found = []
    for of_distance, of_error in factors:
        product = np.einsum("kd,de,ke->k", of_distance, means, of_error, optimize=True) / p**2
        mean = of_distance.mean(axis=1) * of_error.mean(axis=1)
        square = np.mean(of_distance**2, axis=1) * np.mean(of_error**2, axis=1)
        found.append(2 * product / (spread * np.sqrt(square - mean**2)) - 1)
    return np.array(found)


def _projected(
    table: Float[Tensor, "p d"], directions: Float64[np.ndarray, "p circle"]
) -> Float[Tensor, "p d"]:
    over = torch.from_numpy(directions).to(table.device)
    precise = table.detach().double()
    mean = precise.mean(dim=0)
    return (over @ (over.T @ (precise - mean)) + mean).to(table.dtype)


def _components(table: Float64[np.ndarray, "p d"], n: int) -> Float64[np.ndarray, "p component"]:
    """Unit vectors over the numbers of the first principal components that there are."""
    vectors, sizes, _ = np.linalg.svd(centred(table), full_matrices=False)
    present = int(np.sum(sizes > _ABSENT * sizes[0])) if sizes[0] > 0 else 0
    if not present:
        raise InvalidInput("all numbers have the same embedding: there are no circles")
    return vectors[:, : min(n, present)]


def _component_pairs(both: np.ndarray, n: int) -> list[Float64[np.ndarray, "p _"]]:
    vectors = _components(both, 2 * n)
    return [vectors[:, i : i + 2] for i in range(0, vectors.shape[1], 2)]


def _fourier_circles(both: np.ndarray, n: int) -> list[Float64[np.ndarray, "p 2"]]:
    _components(both, 1)
    basis = fourier_basis(len(both))
    frequencies: Int[np.ndarray, " frequency"] = strongest_frequencies(both, n)
    waves = [basis.matrix[basis.frequency == k].T for k in frequencies]
    sizes = np.array([np.linalg.norm(wave.T @ both) for wave in waves])
    return [wave for wave, size in zip(waves, sizes, strict=True) if size > _ABSENT * sizes.max()]
