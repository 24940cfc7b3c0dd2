"""Instruments that look for waves over numbers."""

from __future__ import annotations

from typing import Literal

import xarray as xr
from pydantic import Field

from mechnum.circuits.instruments.filters import measure_filters
from mechnum.circuits.running.context import Context, SeededSettings
from mechnum.fourier import lens_results, number_spectra
from mechnum.tasks.single_numbers import own_numbers

Basis = Literal["orthonormal", "paper"]


class SpectraSettings(SeededSettings):
    """Of `mechnum.fourier.number_spectra`."""

    of: Literal[
        "embedding", "unembedding", "resid", "resid_mid", "attn_out", "mlp_out", "mlp_hidden"
    ] = "resid"
    """Whose rows: a matrix, or what each layer holds at the number."""
    periods: tuple[float, ...] | None = None
    """Of the waves that are fitted."""
    draws: int = Field(default=1000, ge=19)
    """Spectra of chance."""
    permutations: int = Field(default=200, ge=19)
    """Of the residues, for their p-values."""


def spectra(context: Context, settings: SpectraSettings) -> xr.DataTree:
    """The spectrum of the numbers in a model, and which residues can be read."""
    return number_spectra(
        context.model,
        own_numbers(context.model),
        settings.of,
        periods=settings.periods,
        draws=settings.draws,
        permutations=settings.permutations,
        seed=settings.seed,
    )


class LensSettings(SeededSettings):
    """Of `mechnum.fourier.lens_results`."""

    position: str | int = "end"
    """Where: a, op, b, end, or an index."""
    basis: Basis = "orthonormal"
    """Waves over numbers; paper is that of Zhou et al. 2024."""
    permutations: int = Field(default=99, ge=19)
    """Of the number tokens, for chance."""
    n_prompts: int = Field(default=500, gt=0)
    """Prompts, at most."""


def lens(context: Context, settings: LensSettings) -> xr.DataTree:
    """Which waves over numbers each layer writes."""
    return lens_results(
        context.model,
        context.task,
        settings.n_prompts,
        settings.position,
        settings.basis,
        settings.permutations,
        settings.seed,
    )


class FiltersSettings(SeededSettings):
    """Of `mechnum.circuits.instruments.filters.measure_filters`."""

    tau: int = Field(default=50, gt=0)
    """Where low components end."""
    tau_unit: Literal["row", "frequency"] = "row"
    """What tau counts: rows of the basis, two for a frequency, or waves."""
    single: tuple[int, ...] = ()
    """Frequencies that are kept alone, one at a time."""
    without: tuple[int, ...] = ()
    """Frequencies that are removed together."""
    position: str | int = "all"
    """Where: all, or one position."""
    basis: Basis = "orthonormal"
    """Waves over numbers; paper is that of Zhou et al. 2024."""
    n_prompts: int = Field(default=500, gt=0)
    """Prompts, at most."""


def filters(context: Context, settings: FiltersSettings) -> xr.DataTree:
    """What is answered without some waves over numbers."""
    return measure_filters(
        context.model,
        context.task,
        settings.tau,
        settings.tau_unit,
        settings.single,
        settings.without,
        position=settings.position,
        basis=settings.basis,
        n_prompts=settings.n_prompts,
        seed=settings.seed,
    )
