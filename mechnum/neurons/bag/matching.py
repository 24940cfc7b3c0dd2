"""Which heuristics a neuron's map matches: the bag of heuristics.

Source: Nikankin et al. 2025 (arXiv 2410.21272), section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Float64
from scipy.stats import false_discovery_control

from mechnum.errors import InvalidInput, MechnumError
from mechnum.neurons.bag.checked_maps import map_numbers, map_values
from mechnum.neurons.bag.kinds import (
    KINDS,
    LENGTHS,
    MODULI,
    MOST,
    Heuristic,
    Numbers,
    all_heuristics,
    parse_heuristic,
)
from mechnum.neurons.bag.overlap import (
    chance,
    expected_overlap,
    p_of_either_end,
    p_values,
    ranks,
)
from mechnum.neurons.bag.result_sets import COVERED, best_sets
from mechnum.progress import track

THRESHOLD = 0.6
_NULL = (
    "exchangeable prompts: the overlap of k top prompts with the k prompts of a heuristic is "
    "hypergeometric; for results the larger p of that of the logits and that of the activation; "
    "for sets of results times the number of sets that could have been chosen; q is of Benjamini "
    "and Hochberg over all neurons, heuristics and signs"
)
# Neurons at a time: their ranks stay in the processor's cache while all heuristics look at them.
_CHUNK_VALUES = 2**20


class _Found(NamedTuple):
    """Over (node, heuristic, sign), the last heuristic being the neuron's own set of results."""

    score: Float64[np.ndarray, "node heuristic sign"]
    p: Float64[np.ndarray, "node heuristic sign"]
    sets: list[list[str]]


def heuristics(
    maps: xr.Dataset,
    threshold: float = THRESHOLD,
    alpha: float = 0.05,
    negative: bool = False,
    lengths: Sequence[int] = LENGTHS,
    moduli: Sequence[int] = MODULI,
) -> xr.Dataset:
    """Score every heuristic on every neuron and say which it matches.

    The score is |top-k ∩ H| / k, where H are the k prompts for which the heuristic holds, and
    top-k the k prompts with the largest value: of the activation for heuristics of operands, of
    the logit that the neuron writes to the right answer for those of the result. Prompts of the
    very same value, such as the zeros of a ReLU, count by their expected overlap. A match needs a
    score of `threshold` and a q-value of `alpha`. For heuristics of the result p is the larger of
    two: the activation alone has to overlap with H as well, by its largest or its smallest values,
    since a neuron of the same activation everywhere would match what its output weights say.

    Sets of results ("multi-result") are chosen for each neuron: the 2 to 4 results to which it
    writes most on average, where they stand out from all other results (by half of the way to the
    median one: the crest of a wave has neighbours) and cover .95 of its top prompts. Nikankin et
    al. 2025 use them for quotients alone, of which there are few; here they are tested on every
    task, with p times the number of sets that could have been chosen.
    Heuristics that cannot tell the prompts apart are left out, see `all_heuristics`.

    Args:
        maps: what `operand_maps` gave: `activation` and `logit` over (node, prompt), with the
            coordinates `a`, `b` (absent in tasks with one operand) and `answer`.
        negative: look at the smallest values as well, where neurons of gated MLPs also work
            (`model.spec.gated`).
        lengths, moduli: of ranges and residues, as in `all_heuristics`.

    Returns:
        Over (node, heuristic, sign): `score`, `p`, `q` and `matched`. The coordinate `heuristic` is
        in words, with `heuristic_kind`, `variable` and `n_prompts` (k) beside; `sign` is
        "positive", with "negative" where asked. Over (node, kind): `match`, and of the best
        heuristic of each kind `best` in words, `best_score`, `best_p`, `best_q`, `best_sign` and
        `best_explained`, the share of the variance of what it is scored on that it has;
        matches come before others, then the score decides, then p. Where a kind has no heuristic
        on these prompts, `best` is empty and the numbers are NaN. `label` over node: the best
        match of each kind in words, what explains most first; empty for none. The attributes state
        the null.

    Raises:
        MechnumError: on maps without these variables, on values that are not finite, on thresholds
            that are no shares, and on prompts that no heuristic tells apart.
    """
    for name, share in (("threshold", threshold), ("alpha", alpha)):
        if not 0 < share <= 1:
            raise InvalidInput(f"{name} is {share}: give a share above 0, such as 0.6")
    activation, logit = map_values(maps, "activation"), map_values(maps, "logit")
    numbers = map_numbers(maps)
    every = all_heuristics(numbers, lengths, moduli)
    if not every:
        raise MechnumError(
            f"no heuristic tells these {maps.sizes['prompt']} prompts apart: give more prompts, "
            "or shorter lengths"
        )
    signs = ("positive", "negative") if negative else ("positive",)
    found = _scored(activation, logit, numbers, every, len(signs))
    tested = np.isfinite(found.p)
    q = np.full_like(found.p, np.nan)
    q[tested] = false_discovery_control(found.p[tested], method="bh")
    needed = np.full(len(every) + 1, threshold)
    needed[-1] = max(threshold, COVERED)
    matched = (found.score >= needed[:, None] - 1e-9) & (q <= alpha)
    dims = ("node", "heuristic", "sign")
    table = xr.Dataset(
        {
            "score": (dims, found.score[:, :-1].astype(np.float32)),
            "p": (dims, found.p[:, :-1]),
            "q": (dims, q[:, :-1]),
            "matched": (dims, matched[:, :-1]),
            **_by_kind(every, found, q, matched, signs),
        },
        coords={
            **{name: c for name, c in maps.coords.items() if c.dims == ("node",)},
            "heuristic": [one.words for one in every],
            "heuristic_kind": ("heuristic", [one.kind for one in every]),
            "variable": ("heuristic", [one.variable for one in every]),
            "n_prompts": ("heuristic", [int(one.holds(numbers).sum()) for one in every]),
            "sign": list(signs),
            "kind": list(KINDS),
        },
        attrs={
            **maps.attrs,
            "threshold": threshold,
            "threshold_multi_result": float(needed[-1]),
            "alpha": alpha,
            "null": _NULL,
            "n_tested": int(tested.sum()),
            "left_out": f"heuristics of one prompt or none, or of more than {MOST:.0%} of them",
        },
    )
    return _with_labels(table, activation, logit, numbers)


def _scored(
    activation: Float[np.ndarray, "node prompt"],
    logit: Float[np.ndarray, "node prompt"],
    numbers: Numbers,
    every: Sequence[Heuristic],
    n_signs: int,
) -> _Found:
    n_nodes, n_prompts = activation.shape
    held = [np.flatnonzero(one.holds(numbers)) for one in every]
    chances = {k: chance(n_prompts, k) for k in {len(rows) for rows in held}}
    score = np.full((n_nodes, len(every) + 1, n_signs), np.nan)
    p = np.full_like(score, np.nan)
    sets = [[""] * n_signs for _ in range(n_nodes)]
    size = max(1, _CHUNK_VALUES // n_prompts)
    parts = [slice(first, first + size) for first in range(0, n_nodes, size)]
    for part in track(parts, "matching heuristics"):
        read, written = ranks(activation[part]), ranks(logit[part])
        for sign in range(n_signs):
            for column, (one, rows) in enumerate(zip(every, held, strict=True)):
                overlap = expected_overlap(written if one.direct else read, rows)
                score[part, column, sign] = overlap / len(rows)
                own = p_values(overlap, chances[len(rows)])
                if one.direct:
                    own = np.maximum(own, p_of_either_end(read, rows, chances[len(rows)]))
                p[part, column, sign] = own
            means = logit[part] if sign == 0 else -logit[part]
            sets_here = best_sets(means, written, read, numbers["result"])
            for node, best in enumerate(sets_here, part.start):
                if best is not None:
                    score[node, -1, sign], p[node, -1, sign] = best.score, best.p
                    sets[node][sign] = best.heuristic.words
            read, written = read.opposite, written.opposite
    return _Found(score, p, sets)


def _by_kind(
    every: Sequence[Heuristic],
    found: _Found,
    q: Float64[np.ndarray, "node heuristic sign"],
    matched: Bool[np.ndarray, "node heuristic sign"],
    signs: Sequence[str],
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """The best heuristic of each kind, and all of them as a label."""
    n_nodes = len(q)
    kinds = np.array([*(one.kind for one in every), KINDS[-1]])
    words = np.array([one.words for one in every], dtype=object)
    shape = (n_nodes, len(KINDS))
    numbers = {name: np.full(shape, np.nan) for name in ("best_score", "best_p", "best_q")}
    match = np.zeros(shape, dtype=bool)
    best, best_sign = (np.full(shape, "", dtype=object) for _ in range(2))
    nodes = np.arange(n_nodes)
    for place, kind in enumerate(KINDS):
        (columns,) = np.nonzero(kinds == kind)
        if not len(columns):
            continue
        flat = [
            table[:, columns].reshape(n_nodes, -1) for table in (found.score, found.p, q, matched)
        ]
        # The last key counts most; NaN, a neuron without a set of results, comes last.
        first = np.lexsort((flat[1], -flat[0], ~flat[3]), axis=1)[:, 0]
        for name, table in zip(numbers, flat, strict=False):
            numbers[name][:, place] = table[nodes, first]
        match[:, place] = flat[3][nodes, first]
        column, sign = columns[first // len(signs)], first % len(signs)
        if kind == KINDS[-1]:
            best[:, place] = [sets[own] for sets, own in zip(found.sets, sign, strict=True)]
        else:
            best[:, place] = words[column]
        said = np.isfinite(numbers["best_score"][:, place])
        best_sign[said, place] = np.array(signs, dtype=object)[sign[said]]
    dims = ("node", "kind")
    return {
        "match": (dims, match),
        "best": (dims, best.astype(str)),
        **{name: (dims, table) for name, table in numbers.items()},
        "best_sign": (dims, best_sign.astype(str)),
    }


def _with_labels(
    table: xr.Dataset,
    activation: Float[np.ndarray, "node prompt"],
    logit: Float[np.ndarray, "node prompt"],
    numbers: Numbers,
) -> xr.Dataset:
    """How much of a neuron its best heuristics explain, and those that match, most first."""
    best, signs = table["best"].values, table["best_sign"].values
    explained = np.full(best.shape, np.nan)
    for words in set(best.ravel()) - {""}:
        one = parse_heuristic(words)
        held = one.holds(numbers).astype(np.float64)
        nodes, kinds = np.nonzero(best == words)
        values = (logit if one.direct else activation)[nodes].astype(np.float64)
        explained[nodes, kinds] = _squared_correlation(values, held)
    match = table["match"].values
    labels = []
    for node, own in enumerate(explained):
        order = [kind for kind in np.argsort(-own, kind="stable") if match[node, kind]]
        low = {kind: " (negative)" if signs[node, kind] == "negative" else "" for kind in order}
        labels.append("; ".join(best[node, kind] + low[kind] for kind in order))
    return table.assign(
        best_explained=(("node", "kind"), explained), label=("node", np.array(labels))
    )


def _squared_correlation(
    values: Float64[np.ndarray, "node prompt"], held: Float64[np.ndarray, " prompt"]
) -> Float64[np.ndarray, " node"]:
    """Share of each neuron's variance that the indicator has; NaN where a neuron is constant."""
    centred = values - values.mean(axis=1, keepdims=True)
    indicator = held - held.mean()
    size = np.square(centred).sum(axis=1) * np.square(indicator).sum()
    with np.errstate(invalid="ignore"):
        return np.square(centred @ indicator) / np.where(size > 0, size, np.nan)
