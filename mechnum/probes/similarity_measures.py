"""What is compared of two tables of rows, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Float64, Int
from scipy import fft
from scipy.stats import kendalltau, rankdata

from mechnum.cka import gram_cosine

CORRELATIONS = ("pearson", "spearman")
SIMILARITIES = ("dot", "cosine", "euclid")
MEASURES = (
    *(f"{similarity} {kind}" for similarity in SIMILARITIES for kind in CORRELATIONS),
    "cka",
    "spectra",
    "kendall",
)
"""The measures of `number_similarity`."""


@dataclass(frozen=True, eq=False)
class Described:
    """What the measures need of one table.

    Attributes:
        pairs: for each kind of similarity and of correlation, what is correlated: the values or
            ranks of all pairs of rows, with a mean of 0 and a length of 1.
        gram: inner products of the centred rows.
        scores: of the first principal components.
    """

    pairs: Mapping[str, Float[np.ndarray, " pair"]]
    gram: Float64[np.ndarray, "number number"]
    scores: Float64[np.ndarray, "number component"]

    @classmethod
    def of(cls, rows: Float64[np.ndarray, "number d"], components: int) -> Described:
        """Everything, from scratch."""
        spread = rows - rows.mean(axis=0)
        gram = spread @ spread.T
        pairs = {
            f"{name} {kind}": _unit(values if kind == "pearson" else rankdata(values))
            for name, values in _similarities(rows, gram).items()
            for kind in CORRELATIONS
        }
        return cls(pairs, gram, principal_scores(spread, components))

    @cached_property
    def spectrum(self) -> Float64[np.ndarray, " frequency"]:
        """The largest amplitude of any component at frequency 1 … N/2; those above mirror them."""
        return np.abs(fft.rfft(self.scores, axis=0))[1:].max(axis=1)

    def shuffled(self, order: Int[np.ndarray, " number"]) -> Described:
        """Of the same rows in another order, from which nothing has to be computed again."""
        n = len(order)
        place = np.zeros((n, n), dtype=np.int64)
        above = np.triu_indices(n, 1)
        place[above] = np.arange(len(above[0]))
        place += place.T
        moved = place[order[:, None], order][above]
        pairs = {name: values[moved] for name, values in self.pairs.items()}
        return Described(pairs, self.gram[order[:, None], order], self.scores[order])


def compare(
    a: Described, b: Described, top: int
) -> tuple[Float64[np.ndarray, " measure"], Float64[np.ndarray, " top"]]:
    """The values of `MEASURES`, and `match_curve` of the spectra.

    NaN where something is the same for all pairs or frequencies, and for "spectra" where `top` is
    all frequencies.
    """
    curve = match_curve(a.spectrum, b.spectrum)
    values = [
        *(float(a.pairs[name] @ b.pairs[name]) for name in a.pairs),
        gram_cosine(a.gram, b.gram),
        curve[top - 1] if top <= len(curve) else np.nan,
        float(kendalltau(a.spectrum, b.spectrum).statistic),
    ]
    return np.array(values), curve


def principal_scores(
    spread: Float64[np.ndarray, "number d"], components: int
) -> Float64[np.ndarray, "number component"]:
    """Centred rows along their first principal axes.

    By a full decomposition, since randomised ones differ from call to call.
    """
    left, sizes, _ = np.linalg.svd(spread, full_matrices=False)
    return left[:, :components] * sizes[:components]


def match_curve(
    a: Float64[np.ndarray, " frequency"], b: Float64[np.ndarray, " frequency"]
) -> Float64[np.ndarray, " top"]:
    """Intersection over union of the n strongest frequencies of both, n = 1 … all but one.

    All of them match in any two spectra.
    """
    # A frequency is among the n strongest of both from its later place on.
    later = np.sort(np.maximum(_places(a), _places(b)))
    n = np.arange(1, len(a))
    common = np.searchsorted(later, n)
    return common / (2 * n - common)


def _places(spectrum: Float64[np.ndarray, " frequency"]) -> Int[np.ndarray, " frequency"]:
    """How many frequencies are stronger than each."""
    places = np.empty(len(spectrum), dtype=np.int64)
    places[np.argsort(-spectrum, kind="stable")] = np.arange(len(spectrum))
    return places


def _similarities(
    rows: Float64[np.ndarray, "number d"], gram: Float64[np.ndarray, "number number"]
) -> dict[str, Float64[np.ndarray, " pair"]]:
    """Of all pairs of different rows, each pair once."""
    above = np.triu_indices(len(rows), 1)
    products = rows @ rows.T
    lengths = np.sqrt(np.diag(products))
    # From centred rows, whose squares do not drown the differences.
    squares = np.diag(gram)
    distances = np.sqrt((squares[:, None] + squares - 2 * gram)[above].clip(0))
    return {
        "dot": products[above],
        "cosine": (products / lengths / lengths[:, None])[above],
        "euclid": distances,
    }


def _unit(values: Float64[np.ndarray, " pair"]) -> Float64[np.ndarray, " pair"]:
    """With a mean of 0 and a length of 1, so that a product is a correlation; NaN if constant."""
    spread = values - values.mean()
    length = np.linalg.norm(spread)
    rounding = 1e-12 * np.linalg.norm(values)
    return spread / length if length > rounding else np.full_like(values, np.nan)
