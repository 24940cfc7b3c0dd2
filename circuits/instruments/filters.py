"""What a model answers without some waves over numbers, beside what was published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import xarray as xr

from mechnum.circuits.running.comparison import with_published
from mechnum.fourier import filter_results, filters
from mechnum.fourier.bases import BasisKind
from mechnum.fourier.filters import TauUnit
from mechnum.models import Model
from mechnum.tasks import Task


def measure_filters(
    model: Model,
    task: Task,
    tau: int = 50,
    tau_unit: TauUnit = "row",
    single: Sequence[int] = (),
    without: Sequence[int] = (),
    layers: Sequence[int] | None = None,
    position: str | int = "all",
    basis: BasisKind = "orthonormal",
    n_prompts: int = 500,
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """`mechnum.fourier.filter_results` with the bands of Zhou et al. 2024, section 4.

    Args:
        tau, tau_unit: where low components end; both they and the others are removed.
        single: frequencies that are kept alone, one at a time.
        without: frequencies that are removed together.
        layers, position, basis, n_prompts, seed: as in `filter_results`.
        said: further attributes, such as the command.

    Returns:
        That of `filter_results`, with `/published`, what the paper has of its GPT-2-XL, for sums.

    Raises:
        MechnumError: as `filter_results`.
    """
    bands = [filters.high_pass(tau, tau_unit), filters.low_pass(tau, tau_unit)]
    bands += [filters.single_pass(k) for k in single]
    bands += [filters.without(list(without))] if without else []
    found = filter_results(
        model,
        task,
        bands,
        layers=layers,
        position=position,
        basis=basis,
        n_prompts=n_prompts,
        seed=seed,
    )
    found.attrs.update(tau=tau, tau_unit=tau_unit, **(said or {}))
    return with_published(found, "fourier_features", "filters", model)
