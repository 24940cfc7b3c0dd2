"""How a model's numbers look in Fourier space: spectrum, waves and residues in one measurement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import SupportsIndex

import numpy as np
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.fourier.inner_rows import RowsOf, number_rows
from mechnum.fourier.least_squares import amplitudes
from mechnum.fourier.model_tables import NUMBERS
from mechnum.fourier.nulls import NullKind, spectrum_test
from mechnum.fourier.periods import periods_within
from mechnum.fourier.probes import MODULI, residue_probe
from mechnum.fourier.tables import NUMBER
from mechnum.models.model import Model
from mechnum.tasks.examples import token_texts
from mechnum.tasks.numbers import check_numbers, some
from mechnum.tasks.single_numbers import BARE_NUMBER, DigitsMode, number_prompts

_SEEDS = ("null_seed", "probe_seed")  # Both are the one seed of the whole.


def number_spectra(
    model: Model,
    numbers: Iterable[SupportsIndex] = NUMBERS,
    of: RowsOf = "resid",
    template: str = BARE_NUMBER,
    digits: DigitsMode = "single",
    periods: Sequence[float | int] | None = None,
    moduli: Sequence[int] | None = None,
    null: NullKind = "shuffled",
    draws: int = 1000,
    permutations: int = 200,
    counts: xr.DataArray | None = None,
    seed: int = 0,
    **said: str | int | float,
) -> xr.DataTree:
    """Spectrum, waves and residues of the rows that a model has for consecutive numbers.

    Args:
        of, template, digits: which rows, see `mechnum.fourier.number_rows`.
        periods: of the waves that are fitted beside a linear trend; by default those of 2, 5, 10
            and 100 that the range holds.
        moduli: whose residues are probed; by default 2 to 10, 20, 25, 50 and 100.
        null, draws: see `mechnum.fourier.spectrum_test`.
        permutations: see `mechnum.fourier.residue_probe`.
        counts: how often each number occurs, see `mechnum.fourier.token_counts`: the spectrum of
            their logarithm is given beside the model's.
        seed: of all that is drawn.
        said: further attributes, such as the command.

    Returns:
        `/spectrum`, `/residues`, `/amplitudes`, `/counts` where counts are given, and `/prompts`,
        the tokens of one text. The root's attributes say where the rows come from.

    Raises:
        MechnumError: on numbers with holes, and as the parts do.
    """
    integers = check_numbers(numbers)
    baseline = None if counts is None else _counted(counts, integers)
    rows = number_rows(model, integers, of, template, digits)
    spectra = spectrum_test(rows, null=null, draws=draws, seed=seed)
    residues = residue_probe(rows, moduli or MODULI, permutations=permutations, seed=seed)
    parts = {"/spectrum": spectra, "/residues": residues}
    waves = periods_within(len(integers)) if periods is None else tuple(periods)
    if waves:
        parts["/amplitudes"] = amplitudes(rows, waves, linear=True)
    if baseline is not None:
        parts["/counts"] = spectrum_test(np.log1p(baseline), null=null, draws=draws, seed=seed)
    attrs = {**residues.attrs, **spectra.attrs, "seed": seed, **said}
    attrs = {name: value for name, value in attrs.items() if name not in _SEEDS}
    bare = {path: part.drop_attrs(deep=False) for path, part in parts.items()}
    if waves:
        bare["/amplitudes"].attrs["dropped"] = parts["/amplitudes"].attrs["dropped"]
    if baseline is not None:
        bare["/counts"].attrs["of"] = baseline.attrs.get("of", "counts")
    bare["/prompts"] = _example(model, integers, template, digits)
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **bare})


def _counted(counts: xr.DataArray, numbers: Sequence[int]) -> xr.DataArray:
    missing = sorted(set(numbers) - set(counts[NUMBER].values.tolist()))
    if missing:
        raise MechnumError(
            f"the counts say nothing of {some(missing)}: add them, with 0 where they do not occur"
        )
    return counts.sel({NUMBER: list(numbers)})


def _example(model: Model, numbers: Sequence[int], template: str, digits: DigitsMode) -> xr.Dataset:
    """The tokens of the last number's text."""
    groups = number_prompts(model, [numbers[-1]], template, digits)
    ids = groups[0].tokens[0].tolist()
    return xr.Dataset(
        {"tokens": ("position", ids)},
        coords={"token": ("position", token_texts(model, ids))},
        attrs={
            "positions": json.dumps({"n": int(groups[0].positions["n"][0])}),
            "text": groups[0].texts[0],
        },
    )
