"""Do two models, or two places of one, hold numbers alike? With what chance makes of it.

Sources: Štefánik et al. 2026 (arXiv 2510.26285) for similarities of all pairs and for spectra of
principal components; Kornblith et al. 2019 for CKA. The paper's released spectra are all of one
model; these are of the rows that are given, by a full singular value decomposition, and a frequency
and its mirror image count once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int

from mechnum.errors import InvalidInput
from mechnum.fourier.nulls import BAND
from mechnum.fourier.tables import NUMBER, as_rows, centred, consecutive
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.probes.similarity_measures import MEASURES, Described, compare
from mechnum.progress import track
from mechnum.tasks.numbers import some

NULLS = ("tokens", "shuffled", "gaussian")
_TIE = 1e-9  # Rounding that a draw of the null may lack.

Table = Float64[np.ndarray, "_ _"]


def number_similarity(
    rows_a: Any,
    rows_b: Any,
    tokens_a: Any = None,
    tokens_b: Any = None,
    numbers: Any = None,
    top: int = 31,
    components: int = 128,
    draws: int = 99,
    seed: int = 0,
) -> xr.Dataset:
    """How alike two tables of rows are, against rows that have nothing to do with their numbers.

    The measures: "dot", "cosine" and "euclid", each with "pearson" or "spearman", are the
    correlation of the similarities (of the distances, with "euclid") of all pairs of rows, RSA.
    "cka" is linear CKA. "spectra" is |A ∩ B| / |A ∪ B| of the `top` strongest frequencies and
    "kendall" Kendall's τ of all frequencies, where a frequency has the largest amplitude that any
    of the first principal components has at it.

    Each draw of a null compares a with rows in place of b. "shuffled": b's rows in random order,
    for which a p-value is exact. "gaussian": independent rows of b's mean and covariance. "tokens":
    random other tokens, the same in both tables; what a number shares with any other token.

    Args:
        rows_a, rows_b: [number, d] and [number, e], or as `mechnum.fourier.as_rows` reads them;
            the same consecutive numbers.
        tokens_a, tokens_b: [token, d] and [token, e], the same tokens in both, at least as many as
            there are numbers (see `token_rows`); without them that null is NaN.
        numbers: of the rows; 0, 1, 2, ... or those of the DataArrays.
        top: frequencies compared in "spectra". The paper's 63 of 1000 bins are pairs of mirror
            images, so 31 frequencies.
        components: principal components, at most.
        draws: of each null; no p is below 1 / (draws + 1). With a thousand rows of width 600 a draw
            costs 0.1 s shuffled, 0.6 s Gaussian and 1.4 s with tokens, on one core.
        seed: of the draws.

    Returns:
        Over `measure`: `value`. Over (null, measure): `null_mean`, `null_low` and `null_high` (the
        central 95 % of draws) and `p`, how often a draw is as large as the value, which is counted
        with them.

    Raises:
        InvalidInput: on tables of other numbers, with holes, of fewer than 4 numbers, that are not
            finite or all the same, or with a row of 0, which has no direction; on one table of
            tokens without the other, and on too few tokens.
    """
    a, b = _tables(rows_a, rows_b, numbers)
    for name, given in (("top", top), ("components", components), ("draws", draws)):
        positive_integer(name, given)
    own = Described.of(a, components)
    other = Described.of(b, components)
    value = compare(own, other, top)
    shape = (len(NULLS), draws, len(MEASURES))
    drawn = np.full(shape, np.nan)
    tokens = _tokens(tokens_a, tokens_b, a, b)
    streams = seed_sequence(seed).spawn(len(NULLS))
    makers: list[Callable[[np.random.Generator], tuple[Described, Described]] | None] = [
        None
        if tokens is None
        else lambda generator: _token_pair(generator, *tokens, len(a), components),
        lambda generator: (own, other.shuffled(generator.permutation(len(b)))),
        lambda generator: (own, _gaussian(generator, b, components)),
    ]
    for place, stream, make in _tracked(makers, streams, draws):
        first, second = make(stream)
        drawn[place] = compare(first, second, top)
    low, high = np.quantile(drawn, BAND, axis=1)
    reached = (drawn >= value - _TIE * np.abs(value)).sum(axis=1)
    p = np.where(np.isnan(drawn[:, 0]), np.nan, (1 + reached) / (1 + draws))
    return xr.Dataset(
        {
            "value": ("measure", value),
            **{
                name: (("null", "measure"), table)
                for name, table in {
                    "null_mean": drawn.mean(axis=1),
                    "null_low": low,
                    "null_high": high,
                    "p": p,
                }.items()
            },
        },
        coords={"measure": list(MEASURES), "null": list(NULLS)},
        attrs={
            "n_numbers": len(a),
            "widths": f"{a.shape[1]}, {b.shape[1]}",
            "top": top,
            "components": components,
            "draws": draws,
            "seed": seed,
        },
    )


def _tracked(
    makers: list[Any], streams: list[np.random.SeedSequence], draws: int
) -> Iterator[tuple[tuple[int, int], np.random.Generator, Any]]:
    """Every draw of every null that there is."""
    present = [place for place, make in enumerate(makers) if make is not None]
    todo = [(place, draw) for place in present for draw in range(draws)]
    generators = [np.random.default_rng(stream) for stream in streams]
    for place, draw in track(todo, "similarities of chance"):
        yield (place, draw), generators[place], makers[place]


def _gaussian(generator: np.random.Generator, rows: Table, components: int) -> Described:
    """Independent rows of the same mean and covariance."""
    spread = rows - rows.mean(axis=0)
    # A product with white noise has the covariance of the rows that it mixes.
    noise = generator.standard_normal((len(rows), len(rows)))
    return Described.of(rows.mean(axis=0) + noise @ spread / np.sqrt(len(rows)), components)


def _token_pair(
    generator: np.random.Generator, tokens_a: Table, tokens_b: Table, n: int, components: int
) -> tuple[Described, Described]:
    chosen: Int[np.ndarray, " token"] = generator.permutation(len(tokens_a))[:n]
    return Described.of(tokens_a[chosen], components), Described.of(tokens_b[chosen], components)


def _tables(rows_a: Any, rows_b: Any, numbers: Any) -> tuple[Table, Table]:
    a, b = (consecutive(as_rows(rows, numbers)) for rows in (rows_a, rows_b))
    if a.ndim != 2 or b.ndim != 2:
        raise InvalidInput("rows have more than one table: choose one layer of each")
    if not np.array_equal(a[NUMBER], b[NUMBER]):
        raise InvalidInput("the two tables are of other numbers: give rows of the same numbers")
    if len(a) < 4:
        raise InvalidInput(f"{len(a)} numbers have too few pairs: give 4 or more")
    return _checked(a.values, a[NUMBER].values), _checked(b.values, b[NUMBER].values)


def _checked(rows: Any, numbers: Int[np.ndarray, " number"]) -> Table:
    table = np.asarray(rows, dtype=np.float64)
    if not centred(table).any():
        raise InvalidInput("all rows of a table are the same: give rows that differ")
    if len(empty := numbers[~table.any(axis=1)]):
        raise InvalidInput(
            f"the rows of {some(empty.tolist())} are 0 and have no direction: leave them out"
        )
    return table


def _tokens(tokens_a: Any, tokens_b: Any, a: Table, b: Table) -> tuple[Table, Table] | None:
    if tokens_a is None and tokens_b is None:
        return None
    if tokens_a is None or tokens_b is None:
        raise InvalidInput("only one table of tokens: give both, or none")
    first, second = (
        _checked(as_rows(rows).values, np.arange(len(rows))) for rows in (tokens_a, tokens_b)
    )
    if len(first) != len(second) or len(first) < len(a):
        raise InvalidInput(
            f"{len(first)} and {len(second)} tokens for {len(a)} numbers: give the same tokens in "
            "both tables, and no fewer than the numbers"
        )
    if first.shape[1] != a.shape[1] or second.shape[1] != b.shape[1]:
        raise InvalidInput(
            "the rows of tokens have another width than those of numbers: give "
            "rows of the same place"
        )
    return first, second
