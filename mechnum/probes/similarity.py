"""Do two models, or two places of one, hold numbers alike? With what chance makes of it.

Sources: Štefánik et al. 2026 (arXiv 2510.26285) for similarities of all pairs and for spectra of
principal components; Kornblith et al. 2019 for CKA. The paper's released spectra are all of one
model; these are of the rows that are given, by a full singular value decomposition, and a frequency
and its mirror image count once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
TOP, COMPONENTS, DRAWS = 31, 128, 99
_TIE = 1e-9  # Rounding that a draw of the null may lack.

Table = Float64[np.ndarray, "_ _"]
Tables = Float64[np.ndarray, "_ _ _"]


def number_similarity(
    rows_a: Any,
    rows_b: Any,
    tokens_a: Any = None,
    tokens_b: Any = None,
    numbers: Any = None,
    top: int = TOP,
    components: int = COMPONENTS,
    draws: int = DRAWS,
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
        rows_a: [number, d], or [layer, number, d]: several tables, each compared with b, that
            share the draws; or as `mechnum.fourier.as_rows` reads them. One thousand numbers take
            32 MB a table.
        rows_b: [number, e], of the same consecutive numbers.
        tokens_a, tokens_b: [token, d] (or [layer, token, d]) and [token, e], the same tokens in
            both, at least as many as there are numbers (see `token_rows`); without them that null
            is NaN.
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
        with them. Over `n_top`: `match`, "spectra" with each number of frequencies, and over
        (null, n_top) `match_mean`, `match_low` and `match_high`. All these over the layers of
        `rows_a`, where it has any.

    Raises:
        InvalidInput: on tables of other numbers, with holes, of fewer than 4 numbers, that are not
            finite or all the same, or with a row of 0, which has no direction; on one table of
            tokens without the other, and on too few tokens.
    """
    given_a, given_b = (consecutive(as_rows(rows, numbers)) for rows in (rows_a, rows_b))
    if given_b.ndim != 2 or given_a.ndim > 3:
        raise InvalidInput("rows have more than one table: choose one layer of each")
    extra = given_a.dims[:-2]
    _same_numbers(given_a, given_b)
    a, b = _checked(given_a), _checked(given_b)[0]
    for name, given in (("top", top), ("components", components), ("draws", draws)):
        positive_integer(name, given)
    own = [Described.of(table, components) for table in a]
    other = Described.of(b, components)
    value, match = _compared(own, other, top)
    drawn = np.full((len(NULLS), draws, *value.shape), np.nan)
    curves = np.full((len(NULLS), draws, *match.shape), np.nan)
    tokens = _tokens(tokens_a, tokens_b, a, b)
    makers: list[_Maker | None] = [
        None
        if tokens is None
        else lambda generator: _token_tables(generator, *tokens, len(b), components),
        lambda generator: (own, other.shuffled(generator.permutation(len(b)))),
        lambda generator: (own, _gaussian(generator, b, components)),
    ]
    for place, generator, make in _tracked(makers, seed_sequence(seed).spawn(len(NULLS)), draws):
        drawn[place], curves[place] = _compared(*make(generator), top)
    found = _summarised(value, match, drawn, curves).assign_attrs(
        n_numbers=len(b),
        widths=f"{a.shape[2]}, {b.shape[1]}",
        top=top,
        components=components,
        draws=draws,
        seed=seed,
    )
    if not extra:
        return found.squeeze("table", drop=True)
    named = found.rename(table=extra[0])
    return named.assign_coords({extra[0]: given_a[extra[0]]}).transpose("null", extra[0], ...)


def similarity_map(
    tables: Mapping[str, Any], top: int = TOP, components: int = COMPONENTS
) -> xr.Dataset:
    """The measures of `number_similarity` between all tables, without what chance makes of them.

    Args:
        tables: name → [number, d], all of the same consecutive numbers, of any widths. One
            thousand numbers take 32 MB a table.

    Returns:
        `value` over (place, other, measure).

    Raises:
        InvalidInput: on no tables, and as `number_similarity`.
    """
    if not tables:
        raise InvalidInput("there are no tables of rows: give one or more")
    for name, given in (("top", top), ("components", components)):
        positive_integer(name, given)
    given = [consecutive(as_rows(rows)) for rows in tables.values()]
    for rows in given:
        _same_numbers(given[0], rows)
    described = [
        Described.of(_checked(rows)[0], components) for rows in track(given, "describing tables")
    ]
    value = np.empty((len(given), len(given), len(MEASURES)))
    for place, own in enumerate(track(described, "comparing tables")):
        value[place, place:], _ = _compared(described[place:], own, top)
        value[place:, place] = value[place, place:]
    return xr.Dataset(
        {"value": (("place", "other", "measure"), value)},
        {"place": list(tables), "other": list(tables), "measure": list(MEASURES)},
        {"n_numbers": given[0].sizes[NUMBER], "top": top, "components": components},
    )


_Maker = Callable[[np.random.Generator], tuple[list[Described], Described]]


def _compared(
    own: list[Described], other: Described, top: int
) -> tuple[Float64[np.ndarray, "table measure"], Float64[np.ndarray, "table n_top"]]:
    values, curves = zip(*(compare(one, other, top) for one in own), strict=True)
    return np.array(values), np.array(curves)


def _summarised(
    value: Float64[np.ndarray, "table measure"],
    match: Float64[np.ndarray, "table n_top"],
    drawn: Float64[np.ndarray, "null draw table measure"],
    curves: Float64[np.ndarray, "null draw table n_top"],
) -> xr.Dataset:
    """Values beside the mean, the central 95 % and the p of every null."""
    reached = (drawn >= value - _TIE * np.abs(value)).sum(axis=1)
    p = np.where(np.isnan(drawn[:, 0]), np.nan, (1 + reached) / (1 + drawn.shape[1]))
    low, high = np.quantile(drawn, BAND, axis=1)
    curve_low, curve_high = np.quantile(curves, BAND, axis=1)
    by_measure = {"null_mean": drawn.mean(axis=1), "null_low": low, "null_high": high, "p": p}
    by_top = {"match_mean": curves.mean(axis=1), "match_low": curve_low, "match_high": curve_high}
    return xr.Dataset(
        {
            "value": (("table", "measure"), value),
            **{name: (("null", "table", "measure"), table) for name, table in by_measure.items()},
            "match": (("table", "n_top"), match),
            **{name: (("null", "table", "n_top"), table) for name, table in by_top.items()},
        },
        coords={
            "measure": list(MEASURES),
            "null": list(NULLS),
            "n_top": np.arange(1, match.shape[1] + 1),
        },
    )


def _tracked(
    makers: list[_Maker | None], streams: list[np.random.SeedSequence], draws: int
) -> Iterator[tuple[tuple[int, int], np.random.Generator, _Maker]]:
    """Every draw of every null that there is."""
    generators = [np.random.default_rng(stream) for stream in streams]
    todo = [
        ((place, draw), generators[place], make)
        for place, make in enumerate(makers)
        if make is not None
        for draw in range(draws)
    ]
    yield from track(todo, "similarities of chance")


def gaussian_rows(
    generator: np.random.Generator, rows: Float64[np.ndarray, "number d"]
) -> Float64[np.ndarray, "number d"]:
    """Independent rows of the same mean and covariance."""
    spread = rows - rows.mean(axis=0)
    # A product with white noise has the covariance of the rows that it mixes.
    noise = generator.standard_normal((len(rows), len(rows)))
    return rows.mean(axis=0) + noise @ spread / np.sqrt(len(rows))


def _gaussian(generator: np.random.Generator, rows: Table, components: int) -> Described:
    return Described.of(gaussian_rows(generator, rows), components)


def _token_tables(
    generator: np.random.Generator,
    tokens_a: Tables,
    tokens_b: Table,
    n: int,
    components: int,
) -> tuple[list[Described], Described]:
    chosen: Int[np.ndarray, " token"] = generator.permutation(len(tokens_b))[:n]
    first = [Described.of(tokens[chosen], components) for tokens in tokens_a]
    return first, Described.of(tokens_b[chosen], components)


def _same_numbers(a: xr.DataArray, b: xr.DataArray) -> None:
    if not np.array_equal(a[NUMBER], b[NUMBER]):
        raise InvalidInput("the two tables are of other numbers: give rows of the same numbers")
    if a.sizes[NUMBER] < 4:
        raise InvalidInput(f"{a.sizes[NUMBER]} numbers have too few pairs: give 4 or more")


def _checked(rows: xr.DataArray) -> Tables:
    """One table, or those of each layer, in float64."""
    tables = np.asarray(rows.values, dtype=np.float64).reshape(-1, *rows.shape[-2:])
    for table in tables:
        if not centred(table).any():
            raise InvalidInput("all rows of a table are the same: give rows that differ")
        if len(empty := rows[NUMBER].values[~table.any(axis=1)]):
            raise InvalidInput(
                f"the rows of {some(empty.tolist())} are 0 and have no direction: leave them out"
            )
    return tables


def _tokens(tokens_a: Any, tokens_b: Any, a: Tables, b: Table) -> tuple[Tables, Table] | None:
    if tokens_a is None and tokens_b is None:
        return None
    if tokens_a is None or tokens_b is None:
        raise InvalidInput("only one table of tokens: give both, or none")
    first, (second, *more) = (_checked(as_rows(rows)) for rows in (tokens_a, tokens_b))
    if more or len(first) != len(a):
        raise InvalidInput(
            f"tokens of {len(first)} and {1 + len(more)} tables for {len(a)} and 1 of numbers: "
            "give as many"
        )
    if first.shape[1] != len(second) or len(second) < len(b):
        raise InvalidInput(
            f"{first.shape[1]} and {len(second)} tokens for {len(b)} numbers: give the same tokens "
            "in both tables, and no fewer than the numbers"
        )
    if first.shape[2] != a.shape[2] or second.shape[1] != b.shape[1]:
        raise InvalidInput(
            "the rows of tokens have another width than those of numbers: give rows of the same "
            "place"
        )
    return first, second
