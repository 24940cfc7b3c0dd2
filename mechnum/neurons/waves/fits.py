"""Fits of neurons as linear terms and waves in a, b and a+b, over a task's prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64

from mechnum.errors import InvalidInput, MechnumError
from mechnum.fourier.periods import PERIODS, default_periods
from mechnum.inputs import numbers_with_states, to_numpy
from mechnum.models.memory import batches
from mechnum.models.model import Model
from mechnum.neurons.chosen import layers_with_neurons
from mechnum.neurons.states import STATE_OF, Of, check_of
from mechnum.neurons.waves.design import operands_in, wave_design
from mechnum.neurons.waves.sums import WaveFits
from mechnum.patching.provenance import prompt_attributes
from mechnum.progress import track
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import numbers_of, runs_at
from mechnum.tasks.task import Task


def fit(
    model: Model,
    task: Task,
    of: Of = "pre",
    periods: Sequence[float | int] | None = None,
    variables: Sequence[str] | None = None,
    linear: bool | None = None,
    layers: Sequence[int] | None = None,
    position: str | int = "end",
    folds: int = 5,
    seed: int = 0,
    prompts: Sequence[Prompts] | None = None,
) -> xr.Dataset:
    """Every neuron as a sum of linear terms and waves in a, b and a+b.

    N(a, b) = Σ_t c_t t̃ + Σ_T Σ_t A_{T,t} cos(2πt/T − φ_{T,t}) + intercept, by least squares
    (Kantamneni & Tegmark 2025, section 5.3, who descend a gradient for each neuron). One pass over
    the prompts, in batches; held are sums of 8 bytes for each neuron, column and fold.

    The operands' linear terms t̃ run from −1 to 1 over the prompts, as in the paper; the linear term
    of a+b is the sum of those of a and b, so that it has no column of its own. Columns that are
    zero (the sine of T = 2) or spanned by others are left out and named.

    Args:
        of: "pre", what the activation function reads (in gated MLPs the gate); "hidden", the
            activation after any gate.
        periods: T ≥ 2; by default those of 2, 5, 10 and 100 that are no longer than the range of
            the operands, and so many that all terms are at most half as many as the prompts
            (attribute `left_out` names the others); of modular nets the periods p/k of the key
            frequencies of their embedding.
        variables: what has waves, sums and differences of operands; by default a, b and a+b. A
            modular net's neurons compute products cos(wa)·cos(wb), which are waves in a+b and a−b:
            these have a-b as well.
        linear: whether operands have linear terms; by default they do, except modulo p, where
            numbers go round.
        layers: by default all.
        position: where the neurons are read.
        folds: parts of the prompts that are held out in turn, drawn over operand pairs.
        seed: of the folds.
        prompts: by default all of the task.

    Returns:
        A Dataset over (layer, neuron), NaN where a layer has no MLP: `amplitude` and `phase` (in
        radians), over (variable, period) as well; `slope` over `linear`, whose coordinates `centre`
        and `half_range` rescale an operand; `intercept`; `r2` and `nrmse` of held-out prompts,
        around the mean and by max − min, `r2_fitted` and `nrmse_fitted` of the fitted ones; `p` of
        the F-test of all terms together and `q`, its Benjamini-Hochberg value over all neurons that
        vary; `sum_share`, Σ_T A²_{T,a+b} over the squares of all amplitudes and slopes; `status`,
        "fitted", "constant" (p and q are then 1, scores NaN) or "no MLP".

    Raises:
        MechnumError: as `mechnum.neurons.fit_values`, and where the model has no such layers or
            cannot read the prompts.
    """
    check_of(of)
    with_mlp = layers_with_neurons(model, layers)
    prompts = task.prompts(model) if prompts is None else prompts
    if not sum(map(len, prompts)):
        raise MechnumError("there are no prompts to fit on: give at least one")
    modular = isinstance(task, ModularAddition)
    given = _default_variables(task, prompts) if variables is None else tuple(variables)
    operands = operands_in(given)
    numbers = numbers_of(prompts, operands)
    if periods is not None:
        chosen = tuple(periods)
    elif modular:
        chosen = default_periods(model, task, numbers[:, 0])
    else:
        chosen = _periods_within(numbers, len(given))
    design = wave_design(
        numbers, operands, given, chosen, not modular if linear is None else linear
    )
    width = model.spec.d_mlp
    fits = WaveFits(design, len(with_mlp) * width, folds, seed)
    name = STATE_OF[of]
    for rows, run in runs_at(model, prompts, position, (name,)):
        for place, layer in enumerate(with_mlp):
            values = run[name, layer][:, 0].float().cpu().numpy()
            fits.add(rows, values, place * width)
    asked = list(range(model.spec.n_layers)) if layers is None else list(layers)
    table = _by_layer(fits.result(), asked, with_mlp, width)
    said = prompt_attributes(model, prompts)
    said |= {"task": task.name, "of": of, "position": str(position)}
    if modular:
        said["modulus"] = task.p
    elif periods is None:
        left_out = [f"{period:g}" for period in PERIODS if period not in chosen]
        said["left_out"] = ", ".join(left_out)
    return table.assign_attrs(said)


def fit_values(
    values: Any,
    numbers: Any,
    periods: Sequence[float | int],
    variables: Sequence[str] = ("a", "b", "a+b"),
    linear: bool = True,
    operands: Sequence[str] = ("a", "b"),
    folds: int = 5,
    seed: int = 0,
) -> xr.Dataset:
    """`fit` for values that are at hand.

    Args:
        values: [prompt, neuron], or [prompt] of one neuron.
        numbers: [prompt, operand].
        operands: their names.

    Returns:
        `fit`'s variables over `neuron`.

    Raises:
        InvalidInput: on values and numbers that are not finite or do not fit each other; on
            variables that are no sums of operands; on periods below 2 or given twice; on waves that
            these prompts cannot tell from other terms, and on too few prompts for the terms, or for
            the terms without a fold's prompts.
    """
    values = np.asarray(to_numpy(values))
    table = values[:, None] if values.ndim == 1 else values
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.number) or not table.shape[1]:
        raise InvalidInput(
            f"values have shape {values.shape} and type {values.dtype}: give numbers "
            "[prompt, neuron]"
        )
    if not np.issubdtype(table.dtype, np.floating):
        table = table.astype(np.float64)
    pairs, _ = numbers_with_states(numbers, table[:, :1])
    if pairs.shape[1] != len(operands):
        raise InvalidInput(
            f"the numbers have {pairs.shape[1]} columns for {len(operands)} operands: give one for "
            f"each of {', '.join(operands)}"
        )
    design = wave_design(pairs, operands, variables, periods, linear)
    fits = WaveFits(design, table.shape[1], folds, seed)
    rows = np.arange(len(table))
    for part in track(list(batches(table.shape[1], 8 * len(table))), "neuron fits"):
        fits.add(rows, table[:, part], part.start)
    return fits.result()


def _periods_within(
    numbers: Float64[np.ndarray, "prompt operand"], n_variables: int
) -> tuple[float, ...]:
    """Periods that these prompts can tell apart; the shortest are the first to go."""
    n_values = min(len(np.unique(column)) for column in numbers.T)
    fitting = [float(period) for period in PERIODS if period <= n_values]
    most = len(np.unique(numbers, axis=0)) / 2
    # The sine of T = 2 is no column.
    while (
        fitting and 1 + numbers.shape[1] + n_variables * (2 * len(fitting) - (2 in fitting)) > most
    ):
        fitting.pop(0)
    return tuple(fitting) or (float(max(n_values, 2)),)


def _default_variables(task: Task, prompts: Sequence[Prompts]) -> tuple[str, ...]:
    """Waves in each operand and, where there are two, in their sum."""
    operands = tuple(name for name in prompts[0].variables if name != "answer")
    if operands != ("a", "b"):
        return operands
    return ("a", "b", "a+b", "a-b") if isinstance(task, ModularAddition) else ("a", "b", "a+b")


def _by_layer(
    flat: xr.Dataset, layers: Sequence[int], with_mlp: Sequence[int], width: int
) -> xr.Dataset:
    """A table over all neurons as one over (layer, neuron), with a row for layers without MLP."""
    present = np.isin(layers, with_mlp)
    found = {}
    for name, variable in flat.data_vars.items():
        own = variable.values.reshape(len(with_mlp), width, *variable.shape[1:])
        absent = "no MLP" if name == "status" else np.nan
        whole = np.full((len(layers), *own.shape[1:]), absent, dtype=own.dtype)
        whole[present] = own
        found[name] = (("layer", *variable.dims), whole)
    coords = {name: coord for name, coord in flat.coords.items() if name != "neuron"}
    return xr.Dataset(
        found,
        coords={"layer": list(layers), "neuron": np.arange(width), **coords},
        attrs=flat.attrs,
    )
