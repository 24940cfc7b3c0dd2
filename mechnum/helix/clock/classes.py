"""Classes of heads: those that move helix(a, b) and those that write helix(a+b) to the logits.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from mechnum.errors import MechnumError
from mechnum.helix.clock.contents import PERMUTED
from mechnum.intervals import CONFIDENCE, RESAMPLES

CLASSES = ("a,b", "a+b", "mixed", "unclear")
MEASURED = "measured"
_HELICES = ("a,b", "a+b", "a,b,a+b")


def head_classes(effects: xr.Dataset, n_mixed: int = 4, seed: int = 0) -> xr.Dataset:
    """The class of each head, and how often resampled pairs give it each class.

    With TE and DE the mean total and direct effect, and E_x what helix(x) keeps of the head in the
    clean run: the metric with helix(x) in its place less that with its mean output there,

    - c_ab = (1 − DE/TE) · E_{a,b}/E_{a,b,a+b}: what helix(a, b) does on indirect paths,
    - c_sum = DE/TE · E_{a+b}/E_{a,b,a+b}: what helix(a+b) does on the direct path,

    each ratio cut to 0 … 1. The larger one is the class; the `n_mixed` heads in which they differ
    least are "mixed". A head is "unclear" where its TE is not above 0, or helix(a, b, a+b) in its
    place keeps no more than its mean output or than the fit to shuffled numbers (the 95 % interval
    of TE or of one of these differences reaches 0): it has no such ratios, its numbers are NaN, and
    `status` says why.

    The paper has TE_x, the total effect of helix(x) in the corrupt run, in place of E_x. Most of
    that is that the corrupt number is gone, which the mean output does as well; and a head that
    brings a correct a beside a wrong b adds nothing to it, since the sum is wrong all the same. So
    contents look alike there, and shuffled numbers as good as true ones. `published_c_ab` and
    `published_c_sum` are the paper's.

    Args:
        effects: `total` and `direct` over (pair, node), `fitted` and `kept` over (pair, node,
            content), as `head_effects` gives them.
        n_mixed: how many of the heads are "mixed" (the paper: 4 of 20).
        seed: of the resamples, which all heads share.

    Returns:
        Over node: `c_ab` and `c_sum` with `_low` and `_high` (95 % percentile bootstrap over
        pairs), `direct_share` (DE/TE, not cut), `class`, `confidence` (|c_ab − c_sum|), `status`,
        `published_c_ab` and `published_c_sum` (NaN where a denominator is not above 0);
        `class_share` over (node, class): the share of the resamples, each of which is classified
        anew, "mixed" ones included.

    Raises:
        MechnumError: on a negative `n_mixed`, and on fewer than 2 pairs.
    """
    check_n_mixed(n_mixed)
    n_pairs, n_nodes = effects["total"].transpose("pair", "node").shape
    if n_pairs < 2:
        raise MechnumError("one pair has no resamples: give 2 or more to classify heads on")
    means = _resampled_means(_stacked(effects), seed)
    scores = _scores(means)
    tail = (1 - CONFIDENCE) / 2
    lowest = np.quantile(means, tail, axis=0)
    status = _status(lowest[:, 0], lowest[:, 4], lowest[:, 5])
    known = status == MEASURED
    labels = np.stack([_classes(*one, known, n_mixed) for one in zip(*scores, strict=True)])
    found: dict[str, tuple[str, np.ndarray]] = {}
    for name, values in zip(("c_ab", "c_sum"), scores, strict=True):
        ends = np.full((2, n_nodes), np.nan)
        for node in np.flatnonzero(known):
            ends[:, node] = np.nanquantile(values[1:, node], (tail, 1 - tail))
        found[name] = ("node", np.where(known, values[0], np.nan))
        found |= {f"{name}_low": ("node", ends[0]), f"{name}_high": ("node", ends[1])}
    with np.errstate(divide="ignore", invalid="ignore"):
        direct_share = np.where(known, means[0, :, 1] / means[0, :, 0], np.nan)
    own = effects["fitted"].mean("pair").transpose("node", "content")
    columns = [effects["total"].mean("pair"), effects["direct"].mean("pair")]
    columns += [own.sel(content=name, drop=True) for name in _HELICES]
    published = _scores(np.stack([one.values for one in columns], axis=-1)[None])
    share = np.stack([(labels[1:] == at).mean(0) for at in range(len(CLASSES))], axis=1)
    return xr.Dataset(
        {
            **found,
            "direct_share": ("node", direct_share),
            "confidence": ("node", np.abs(found["c_ab"][1] - found["c_sum"][1])),
            "class": ("node", np.array(CLASSES)[labels[0]]),
            "class_share": (("node", "class_name"), share),
            "status": ("node", status),
            "published_c_ab": ("node", published[0][0]),
            "published_c_sum": ("node", published[1][0]),
        },
        {"node": effects["node"].values, "class_name": list(CLASSES)},
        {"n_mixed": n_mixed, "resamples": RESAMPLES, "n_pairs": n_pairs},
    )


def check_n_mixed(n_mixed: int) -> None:
    """Refuses a number that is none.

    Raises:
        MechnumError: on a negative one.
    """
    if n_mixed < 0:
        raise MechnumError(f"{n_mixed} mixed heads are none: give 0 or more")


def classes_at(classes: xr.Dataset, n_mixed: int) -> list[str]:
    """The class of each head with another number of mixed ones."""
    known = classes["status"].values == MEASURED
    labels = _classes(classes["c_ab"].values, classes["c_sum"].values, known, n_mixed)
    return [CLASSES[at] for at in labels]


def _stacked(effects: xr.Dataset) -> Float[np.ndarray, "pair node 6"]:
    """TE, DE, the three E, and what helix(a, b, a+b) keeps over the permuted fit."""
    kept = effects["kept"]
    added = kept - kept.sel(content="mean", drop=True)
    columns = [effects["total"], effects["direct"]]
    columns += [added.sel(content=name, drop=True) for name in _HELICES]
    columns.append(kept.sel(content="a,b,a+b", drop=True) - kept.sel(content=PERMUTED, drop=True))
    return np.stack([one.transpose("pair", "node").values for one in columns], axis=-1)


def _resampled_means(
    values: Float[np.ndarray, "pair node 6"], seed: int
) -> Float[np.ndarray, "draw node 6"]:
    """The means over pairs, first as they are and then of each resample."""
    n = len(values)
    (stream,) = np.random.SeedSequence(seed).spawn(1)
    counts = np.random.default_rng(stream).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    weights = np.vstack([np.ones((1, n)), counts]) / n
    return np.tensordot(weights, values, axes=1)


def _scores(
    means: Float[np.ndarray, "draw node part"],
) -> tuple[Float[np.ndarray, "draw node"], Float[np.ndarray, "draw node"]]:
    """c_ab and c_sum; NaN where they would divide by what is not above 0."""
    total, direct, ab, of_sum, full = np.moveaxis(means[..., :5], -1, 0)
    defined = (total > 0) & (full > 0)

    def ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        found = np.full(part.shape, np.nan)
        np.divide(part, whole, out=found, where=defined)
        return found.clip(0, 1)

    share = ratio(direct, total)
    return (1 - share) * ratio(ab, full), share * ratio(of_sum, full)


def _classes(
    c_ab: Float[np.ndarray, " node"],
    c_sum: Float[np.ndarray, " node"],
    known: Bool[np.ndarray, " node"],
    n_mixed: int,
) -> np.ndarray:
    """Places in `CLASSES`."""
    labels = np.full(len(c_ab), CLASSES.index("unclear"))
    gap = c_ab - c_sum
    own = np.flatnonzero(known & np.isfinite(gap))
    labels[own] = np.where(gap[own] > 0, CLASSES.index("a,b"), CLASSES.index("a+b"))
    # Both 0: neither content does anything on its path.
    labels[own[(c_ab[own] == 0) & (c_sum[own] == 0)]] = CLASSES.index("unclear")
    least = own[np.argsort(np.abs(gap[own]), kind="stable")[:n_mixed]]
    labels[least] = CLASSES.index("mixed")
    return labels


def _status(
    total: Float[np.ndarray, " node"],
    over_mean: Float[np.ndarray, " node"],
    over_permuted: Float[np.ndarray, " node"],
) -> np.ndarray:
    """From the lower ends of the intervals; the first reason last, since it overrules."""
    status = np.full(len(total), MEASURED, dtype=object)
    fit = "helix(a, b, a+b) in its place keeps no more than"
    status[over_permuted <= 0] = f"{fit} a fit to shuffled numbers"
    status[over_mean <= 0] = f"{fit} its mean output"
    status[total <= 0] = "its total effect is not above 0"
    return status.astype(str)
