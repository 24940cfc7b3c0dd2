"""The Fourier lens: logits of number tokens, from the states inside a model, by frequency.

Source: Zhou et al. 2024 (arXiv 2406.03445), sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import xarray as xr
from jaxtyping import Float64, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.fourier.bases import BasisKind, FourierBasis, fourier_basis
from mechnum.fourier.power import check_permutations, outliers
from mechnum.fourier.readings import (
    Reading,
    Stage,
    State,
    all_states,
    check_numbers_of,
    constant_logits,
    logits_by_state,
)
from mechnum.inputs import seed_sequence
from mechnum.models.model import Model
from mechnum.patching.provenance import prompt_attributes
from mechnum.tasks.prompts import Prompts


def fourier_lens(
    model: Model,
    prompts: Sequence[Prompts],
    numbers: Int[Tensor, " number"],
    position: str | int = "end",
    basis: BasisKind = "orthonormal",
    permutations: int = 99,
    seed: int = 0,
) -> xr.Dataset:
    """The logit lens of every state, restricted to number tokens, by frequency.

    Each state passes through the final norm with its own statistics, as if it were the last one:
    after the last layer these are the model's logits. Nothing adds up here: for what each part
    gives to the logits use `fourier_attribution`.

    Args:
        numbers: token ids of 0 … N − 1, see `mechnum.tasks.answer_tokens`.
        position: name of a position of the prompts or an index, negative ones from the end.
        basis: "orthonormal", or "paper" for comparison, see `mechnum.fourier.fourier_basis`.
        permutations: of the number tokens, as a null for outliers; 0 leaves outliers out.
        seed: of the permutations.

    Returns:
        Over (stage, layer, frequency), where stages are "resid" (the residual after a layer, −1 for
        the embedding), "attn" and "mlp" (what these write): `amplitude`, the mean over prompts of
        the root of squared sine and cosine coefficient, in logits; `standard_error` of that mean;
        `power`, the mean square; and what `mechnum.fourier.power.outliers` says, for each state by
        itself: `share`, `robust_z`, `p`, `outlier`, and over (stage, layer) `chance`. Over (stage,
        layer) also `dc`, the mean size of the constant coefficient: it depends on how the
        unembedding was centred, so it is in no share and no ranking. Coordinate `period` over
        frequency, in numbers. NaN where a stage has no such layer.

    Raises:
        MechnumError: on no prompts, on tokens and positions that do not exist, on another basis,
            and on fewer than 19 permutations.
    """
    return _measured(model, prompts, numbers, position, basis, "own", permutations, seed)


def fourier_attribution(
    model: Model,
    prompts: Sequence[Prompts],
    numbers: Int[Tensor, " number"],
    norm: Literal["frozen", "none"] = "frozen",
    position: str | int = "end",
    basis: BasisKind = "orthonormal",
    permutations: int = 99,
    seed: int = 0,
) -> xr.Dataset:
    """What each state gives to the number logits, by frequency; parts add up.

    The coefficients of the embedding and of every attention and MLP write of a prompt add up to
    those of its last residual, and with `constant` to those of the logits (with norm="frozen"):
    see `lens_coefficients`. The amplitudes that are tabulated are means of sizes and do not add up.

    Args:
        norm: "frozen" divides by what the final norm divides the prompt's last residual by, so that
            the parts are parts of the logits. "none" leaves the norm out, as Zhou et al. 2024 do:
            the unembedding alone, whose waves depend on whether the norm was folded into it.
        others: as in `fourier_lens`.

    Returns:
        As `fourier_lens`; in addition `constant` over frequency, the amplitude of the biases of the
        final norm and the unembedding, which belong to no state.

    Raises:
        MechnumError: as `fourier_lens`, and on another norm.
    """
    if norm not in ("frozen", "none"):
        raise MechnumError(f"unknown norm {norm!r}: use 'frozen' or 'none', or fourier_lens")
    found = _measured(model, prompts, numbers, position, basis, norm, permutations, seed)
    waves = fourier_basis(len(numbers), basis)
    constant = waves.power(waves.coefficients(constant_logits(model, numbers, norm)))
    return found.assign(constant=("frequency", np.sqrt(constant)))


def lens_coefficients(
    model: Model,
    prompts: Sequence[Prompts],
    numbers: Int[Tensor, " number"],
    stage: Stage,
    layer: int,
    norm: Reading = "own",
    position: str | int = "end",
    basis: BasisKind = "orthonormal",
) -> xr.DataArray:
    """Coefficients of one state for each prompt.

    Args:
        norm: "own" as in `fourier_lens`, "frozen" or "none" as in `fourier_attribution`.

    Returns:
        Over (prompt, row), prompts group after group and rows those of the basis (the constant,
        then sine and cosine of each frequency), with the coordinate `frequency` over row.

    Raises:
        MechnumError: as `fourier_lens`, and on a stage or layer that the model does not have.
    """
    waves = fourier_basis(len(numbers), basis)
    found = np.empty((sum(map(len, prompts)), len(waves.frequency)))
    state = [State(stage, layer)]
    for rows, _, logits in logits_by_state(model, prompts, numbers, state, norm, position):
        found[rows] = waves.coefficients(logits.T).T
    return xr.DataArray(
        found,
        dims=("prompt", "row"),
        coords={"frequency": ("row", waves.frequency)},
        attrs={"stage": stage, "layer": layer, "norm": norm, "basis": basis},
    )


class _Moments:
    """Sums over prompts of what is tabulated of each state."""

    def __init__(self, n_states: int, basis: FourierBasis) -> None:
        shape = (n_states, len(basis.frequencies))
        self.basis = basis
        self.size, self.square = np.zeros(shape), np.zeros(shape)
        self.dc = np.zeros(n_states)
        self.products = np.zeros((n_states, basis.n_numbers, basis.n_numbers))

    def add(self, state: int, logits: Float64[np.ndarray, "row number"]) -> None:
        coefficients = self.basis.coefficients(logits.T)
        power = self.basis.power(coefficients)
        self.size[state] += np.sqrt(power).sum(axis=1)
        self.square[state] += power.sum(axis=1)
        self.dc[state] += np.abs(coefficients[0]).sum()
        centred = logits - logits.mean(axis=1, keepdims=True)
        self.products[state] += centred.T @ centred


def _measured(
    model: Model,
    prompts: Sequence[Prompts],
    numbers: Int[Tensor, " number"],
    position: str | int,
    kind: BasisKind,
    reading: Reading,
    permutations: int,
    seed: int,
) -> xr.Dataset:
    n_prompts = sum(map(len, prompts))
    if n_prompts == 0:
        raise MechnumError("there are no prompts to look at: give at least one")
    check_numbers_of(model, numbers)
    if permutations:
        check_permutations(permutations)
        seed_sequence(seed)
    basis = fourier_basis(len(numbers), kind)
    states = all_states(model)
    sums = _Moments(len(states), basis)
    for _, state, logits in logits_by_state(model, prompts, numbers, states, reading, position):
        sums.add(state, logits)
    amplitude, power = sums.size / n_prompts, sums.square / n_prompts
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.maximum(power - amplitude**2, 0.0) / np.float64(n_prompts - 1)
    dims = ("state", "frequency")
    table = xr.Dataset(
        {
            "amplitude": (dims, amplitude),
            "standard_error": (dims, np.sqrt(variance)),
            "power": (dims, power),
            "dc": ("state", sums.dc / n_prompts),
        },
        coords={"frequency": basis.frequencies},
    )
    if permutations:
        table = table.merge(outliers(basis, sums.products / n_prompts, permutations, seed))
    return _by_stage(table, states).assign_coords(period=("frequency", basis.periods)).assign_attrs(
        prompt_attributes(model, prompts)
        | {
            "position": str(position),
            "norm": reading,
            "basis": kind,
            "n_numbers": len(numbers),
            "permutations": permutations,
            "seed": seed,
        }
    )  # fmt: skip


def _by_stage(table: xr.Dataset, states: Sequence[State]) -> xr.Dataset:
    """`state` taken apart into stage and layer; stages without a layer are NaN there."""
    stages = list(dict.fromkeys(state.stage for state in states))
    layers = sorted({state.layer for state in states})
    places = [(stages.index(state.stage), layers.index(state.layer)) for state in states]
    rows, columns = map(list, zip(*places, strict=True))
    spread = {}
    for name, values in table.data_vars.items():
        empty = False if values.dtype == bool else np.nan
        cells = np.full((len(stages), len(layers), *values.shape[1:]), empty)
        cells[rows, columns] = values.values
        spread[name] = (("stage", "layer", *values.dims[1:]), cells)
    return xr.Dataset(
        spread, coords={"stage": stages, "layer": layers, "frequency": table["frequency"]}
    )
