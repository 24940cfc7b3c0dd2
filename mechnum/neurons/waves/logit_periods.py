"""The period that a neuron reads beside the period that it writes."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Float64, Int
from scipy.stats import random_table
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.fourier.model_tables import as_numpy
from mechnum.fourier.output_rows import neuron_logits
from mechnum.fourier.readings import check_numbers_of
from mechnum.fourier.spectra import power_of
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.models.memory import batches
from mechnum.models.model import Model
from mechnum.neurons.chosen import (
    at_nodes,
    check_fit_of,
    chosen_neurons,
    layers_with_neurons,
    node_coordinates,
)
from mechnum.neurons.waves.sums import FITTED
from mechnum.patching.node_names import NodeNames
from mechnum.patching.provenance import model_attributes
from mechnum.progress import track
from mechnum.tasks.single_numbers import number_tokens

# a + b of two operands up to 99 (Kantamneni & Tegmark 2025).
SUMS = range(199)
ALPHA = 0.05
LEAST_SHARE = 0.01  # Of the squared terms: below it a neuron does not read a+b.
OTHER = "other"
# How far, in waves over all numbers, a period that is no bin of theirs may be from the one found.
_TOLERANCE = 1.0
_LONG = 100
_ROUNDING = 1e-12  # Share of squares that a spectrum or a fit has where there is nothing.


def periods(
    model: Model,
    fitted: xr.Dataset,
    neurons: NodeNames | None = None,
    numbers: Int[Tensor, " number"] | None = None,
    permutations: int = 9999,
    seed: int = 0,
) -> xr.Dataset:
    """Does a neuron write waves of the period that it reads? (Kantamneni & Tegmark 2025, 5.3.)

    T_in is the fit's period with the largest amplitude in a+b. T_out is N / argmax over k ≥ 1 of
    the spectrum of what the neuron writes to the logits of N consecutive numbers, W_out · W_U
    without the final norm: the activation only scales it. T_out belongs to the fit's period T that
    is nearest in frequency, where |k − N/T| is at most 1; the longest that there is, N, stands for
    every T ≥ 100. Of a modular net, whose numbers are its p classes, the periods p/k are exact, and
    no other belongs to them; their neurons' waves in a+b are in the activations, so fit those
    (`of="hidden"`).

    Args:
        fitted: what `mechnum.neurons.fit` gave for this model, with waves in a+b.
        neurons: by default all that were fitted.
        numbers: token ids of 0 … N − 1, see `mechnum.tasks.answer_tokens`; by default the p classes
            of a modular net, and the sums 0 to 198 of other models, each number by itself.
        permutations: of T_out among the neurons.
        seed: of the permutations.

    Returns:
        Over (layer, neuron), or over `node` for chosen neurons: `t_in`, NaN where the fit explains
        nothing (q > .05, or a held-out R² of 0 or less) or has less than .01 of its squared terms
        in waves of a+b; `t_out`, NaN where a neuron writes the same to all
        numbers; `group`, the fit's period that T_out belongs to, NaN for none; `reason`, why one is
        missing. `count` over (period, written): neurons by T_in and group. `agreement`, the share
        of those counted whose group is their T_in; `agreement_null` and `agreement_p`, its mean
        over all permutations and how often one reaches it; NaN where none is counted.

    Raises:
        MechnumError: on fits without waves in a+b or of another model, on neurons that were not
            fitted, and on numbers that have no single token or no logit.
    """
    positive_integer("permutations", permutations)
    stream = seed_sequence(seed)
    _check(model, fitted)
    nodes = None if neurons is None else chosen_neurons(model, neurons)
    modulus = fitted.attrs.get("modulus")
    if numbers is None:
        own = SUMS if modulus is None else range(modulus)
        numbers = torch.tensor(list(number_tokens(model, own).values()))
    check_numbers_of(model, numbers)
    table = fitted[["amplitude", "sum_share", "r2", "q", "status"]].sel(variable="a+b")
    asked = layers_with_neurons(model) if nodes is None else [node.layer for node in nodes]
    layers = [layer for layer in table["layer"].values.tolist() if layer in asked]
    t_out = xr.full_like(table["q"], np.nan)
    for layer in track(layers, "periods of neurons' logits"):
        rows = as_numpy(neuron_logits(model, layer, numbers))
        t_out.loc[{"layer": layer}] = len(numbers) / _strongest(rows)
    table = table.assign(t_out=t_out)
    if nodes is not None:
        table = at_nodes(table, nodes).assign_coords(node_coordinates(nodes))
    fitted_periods = fitted["period"].values
    found = _read_and_written(table, len(numbers), modulus is not None)
    counts = _counts(found, fitted_periods)
    said = model_attributes(model) | {
        "n_numbers": len(numbers),
        "permutations": permutations,
        "seed": seed,
        "tolerance": 0.0 if modulus is not None else _TOLERANCE,
        "null": "T_out permuted among the neurons that are counted",
    }
    found = found.assign(count=(("period", "written"), counts)).assign_coords(
        period=fitted_periods, written=[*(f"{period:g}" for period in fitted_periods), OTHER]
    )
    agreement = _agreement(counts, permutations, np.random.default_rng(stream))
    return found.assign(agreement).assign_attrs(said)


def _check(model: Model, fitted: xr.Dataset) -> None:
    if "variable" not in fitted.coords or "a+b" not in fitted["variable"].values:
        raise MechnumError(
            "the fits have no waves in a+b, of which the period is read: fit with 'a+b' among the "
            "variables"
        )
    if not {"layer", "neuron"} <= set(fitted["q"].dims):
        raise MechnumError("the fits are no table over layer and neuron: give what `fit` returned")
    check_fit_of(model, fitted)


def _strongest(rows: Float[np.ndarray, "neuron number"]) -> Float64[np.ndarray, " neuron"]:
    """The k ≥ 1 of most power in each neuron's row; NaN where a row is constant."""
    found = np.empty(len(rows))
    for part in batches(len(rows), 8 * 4 * rows.shape[1]):
        own = rows[part].astype(np.float64)
        power = power_of(own[..., None])
        varies = power.sum(axis=1) > _ROUNDING * np.sum(own**2, axis=1)
        found[part] = np.where(varies, 1 + power.argmax(axis=1), np.nan)
    return found


def _read_and_written(table: xr.Dataset, n_numbers: int, exact: bool) -> xr.Dataset:
    """`t_in`, `t_out`, `group` and `reason` of every neuron."""
    fitted_periods = table["period"].values
    waves = table["sum_share"] >= LEAST_SHARE
    explains = (table["q"] <= ALPHA) & (table["r2"] > 0)
    fits = (table["status"] == FITTED) & explains & waves
    # Neurons without a fit have amplitudes that are not numbers.
    strongest = table["amplitude"].fillna(0).argmax("period").values
    t_in = xr.where(fits, table["q"].copy(data=fitted_periods[strongest]), np.nan)
    bins = n_numbers / table["t_out"].values[..., None]
    distance = np.abs(bins - n_numbers / fitted_periods)
    longest = (bins == 1) & (fitted_periods >= _LONG)
    distance = np.where(longest, 0.0, distance)
    nearest = np.nan_to_num(distance, nan=np.inf).argmin(axis=-1)
    # Periods p/k are whole numbers of waves up to rounding.
    near = distance.min(axis=-1) <= (1e-6 if exact else _TOLERANCE)
    group = table["t_out"].copy(data=np.where(near, fitted_periods[nearest], np.nan))
    reason = np.where(table["t_out"].isnull(), "writes the same to all numbers", "")
    reason = np.where(waves, reason, f"waves in a+b are below {LEAST_SHARE:.0%} of the fit")
    reason = np.where(explains, reason, "the fit explains nothing")
    reason = np.where(table["status"] == FITTED, reason, table["status"])
    return xr.Dataset(
        {
            "t_in": t_in,
            "t_out": table["t_out"],
            "group": group,
            "reason": (table["q"].dims, reason),
        }
    ).drop_vars(["variable", "period"], errors="ignore")


def _counts(
    found: xr.Dataset, fitted_periods: Float64[np.ndarray, " period"]
) -> Int[np.ndarray, "period written"]:
    """Neurons by T_in and by the period that T_out belongs to, the last column for none."""
    t_in, t_out = found["t_in"].values.ravel(), found["t_out"].values.ravel()
    group = found["group"].values.ravel()
    counted = np.isfinite(t_in) & np.isfinite(t_out)
    read = t_in[counted][:, None] == fitted_periods
    written = group[counted][:, None] == fitted_periods
    written = np.column_stack([written, ~written.any(axis=1)])
    return read.T.astype(np.int64) @ written.astype(np.int64)


def _agreement(
    counts: Int[np.ndarray, "period written"], permutations: int, generator: np.random.Generator
) -> dict[str, float]:
    """Share on the diagonal, and how likely neurons that write at random reach it.

    A permutation of T_out among the neurons is a random table of the same margins.
    """
    n = int(counts.sum())
    if n == 0:
        return dict.fromkeys(("agreement", "agreement_null", "agreement_p"), np.nan)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    on_diagonal = int(np.trace(counts))
    drawn = random_table(rows, columns).rvs(permutations, random_state=generator)
    reached = np.sum(np.trace(drawn, axis1=1, axis2=2) >= on_diagonal)
    return {
        "agreement": on_diagonal / n,
        "agreement_null": float(rows @ columns[:-1]) / n**2,
        "agreement_p": float(1 + reached) / (1 + permutations),
    }
