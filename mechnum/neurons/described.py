"""One row for each neuron: what it does to the answer, and every description of it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mechnum.models.model import Model
from mechnum.neurons.chosen import at_nodes, chosen_neurons
from mechnum.neurons.waves.formulas import formula

_INTERVAL = ("", "_low", "_high")
_FITS = ("r2", "nrmse", "sum_share", "q")


def described(
    model: Model,
    top: xr.Dataset,
    fitted: xr.Dataset,
    bag: xr.Dataset,
    periods: xr.Dataset | None = None,
    judged: xr.Dataset | None = None,
) -> xr.Dataset:
    """All that was found of some neurons, as one table.

    Args:
        top: of `rank`, its part `top`.
        fitted: of `fit`, of all neurons or these.
        bag: of `heuristics` for these neurons.
        periods: of `periods` for these neurons.
        judged: of `adjudicate` for these neurons.

    Returns:
        Over node, in the order of `top`, with the coordinates layer and neuron: `total`, `direct`
        and `estimate`, the two first with `_low`, `_high` and `_q`; the fit as `formula` in words,
        `r2` and `nrmse` held out, `sum_share`, and `fit_q`; `t_in`, `t_out`, and `no_period`, why
        one is missing; `heuristics` in words and `heuristic_score`, that of the best match; and for
        each state adjudicated, `verdict`, `r2_waves`, `r2_heuristics`, `difference` with its ends,
        each followed by ` <state>`.
    """
    nodes = chosen_neurons(model, [str(name) for name in top["node"].values])
    own = at_nodes(fitted, nodes)
    columns: dict[str, np.ndarray | list[str]] = {}
    for name, source in (("total", "total_mean"), ("direct", "direct")):
        columns[name] = top[source].values
        for end in ("_low", "_high", "_q"):
            columns[name + end] = top[name + end].values
    columns["estimate"] = top["estimate"].values
    columns["formula"] = [formula(own.isel(node=row)) for row in range(len(nodes))]
    missing = np.full(len(nodes), np.nan)
    for name in _FITS:
        # Fits in one operand have no waves in a+b.
        columns["fit_q" if name == "q" else name] = own[name].values if name in own else missing
    for name in ("t_in", "t_out"):
        columns[name] = missing if periods is None else periods[name].values
    columns["no_period"] = [""] * len(nodes) if periods is None else list(periods["reason"].values)
    columns["heuristics"] = [str(label) for label in bag["label"].values]
    columns["heuristic_score"] = bag["best_score"].where(bag["match"]).max("kind").values
    states = {} if judged is None else {s: judged.sel(of=s) for s in judged["of"].values.tolist()}
    for state, found in states.items():
        columns[f"verdict {state}"] = [str(verdict) for verdict in found["verdict"].values]
        for name in found["description"].values:
            columns[f"r2_{name} {state}"] = found["r2"].sel(description=name).values
        for end in _INTERVAL:
            columns[f"difference{end} {state}"] = found[f"difference{end}"].values
    return xr.Dataset(
        {name: ("node", values) for name, values in columns.items()},
        coords={name: top[name] for name in ("node", "layer", "neuron")},
    )
