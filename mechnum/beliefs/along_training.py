"""How the geometry of beliefs comes about along a net's training.

Source: Shai et al. 2024 (arXiv 2405.15943), figure S2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from mechnum.beliefs.errors import TINY
from mechnum.beliefs.geometry import ALL, LAST, checked_readout, coordinate_names, states_of_places
from mechnum.beliefs.prefixes import prefixes
from mechnum.beliefs.readout import CUTOFFS
from mechnum.beliefs.states import check_reads, norms_of, prefix_states
from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.patching.provenance import model_attributes
from mechnum.tasks.processes.process import Process


def belief_progress(
    snapshots: Iterable[tuple[int, Model]],
    process: Process,
    length: int | None = None,
    strings: int = 1000,
    positions: Sequence[int] | None = None,
    readout: Float[np.ndarray, "state coordinate"] | None = None,
    folds: int = 5,
    cutoffs: Sequence[float] = CUTOFFS,
    seed: int = 0,
) -> xr.Dataset:
    """How well beliefs are read from the joined and the last residuals of a net, step by step.

    Args:
        snapshots: steps done and the net then, in order; read one at a time.
        length, strings, positions, readout, folds, cutoffs, seed: as in `belief_geometry`. All nets
            read the same strings.

    Returns:
        `mse` and `r2`, out of fold, over (step, layer, norm), and `predicted` (step, layer, norm,
        prefix, coordinate), with layers and norms as in `belief_geometry` and of the layers only
        "last" and "all"; `belief` (prefix, coordinate), `weight` and `position` of the prefixes,
        and the `variance` of the beliefs.

    Raises:
        MechnumError: without snapshots, where they differ in shape, and as `belief_geometry`.
        InvalidInput: as `belief_regression`.
    """
    steps, of_steps = [], []
    shape: tuple[str, ...] | None = None
    found = rows = None
    attrs: dict[str, str | int | float] = {}
    matrix = np.eye(process.n_states) if readout is None else checked_readout(readout, process)
    places = None if positions is None else tuple(int(position) for position in positions)
    for step, model in snapshots:
        size = model.spec.n_ctx if length is None else length
        check_reads(model, process, size)
        if found is None or rows is None:
            found = prefixes(process, size, strings, seed, places)
            rows = found.rows(folds, cutoffs, seed)
            shape = norms_of(model)
        elif norms_of(model) != shape or found.strings.shape[1] != size:
            raise MechnumError(f"{model.name} has another shape than the nets before it")
        states = prefix_states(model, found)
        read = [own for norm in states for own in states_of_places(norm)[-2:]]
        of_steps.append(
            [rows.folds.predicted(own.astype(np.float64), found.beliefs) @ matrix for own in read]
        )
        steps.append(step)
        attrs = model_attributes(model)
    if found is None or rows is None or shape is None:
        raise MechnumError("there are no snapshots: give (step, model), at least one")
    truth = found.beliefs @ matrix
    predicted = np.array(of_steps).reshape(len(steps), len(shape), 2, *truth.shape)
    error = np.einsum("p,snlpc->sln", found.weights, (predicted - truth) ** 2)
    variance = rows.variance(truth)
    r2 = 1 - error / (variance if variance > TINY else np.nan)
    return xr.Dataset(
        {
            "mse": (("step", "layer", "norm"), error / truth.shape[1]),
            "r2": (("step", "layer", "norm"), r2),
            "predicted": (
                ("step", "layer", "norm", "prefix", "coordinate"),
                predicted.transpose(0, 2, 1, 3, 4),
            ),
            "belief": (("prefix", "coordinate"), truth),
            "weight": ("prefix", found.weights),
            "position": ("prefix", found.position),
            "variance": ((), variance / truth.shape[1]),
        },
        coords={
            "step": steps,
            "layer": [LAST, ALL],
            "norm": list(shape),
            "coordinate": coordinate_names(process, readout),
        },
        attrs={
            **attrs,
            "process": process.name,
            "length": found.strings.shape[1],
            "n_strings": len(found.strings),
            "n_prefixes": len(truth),
            "positions": sorted({int(position) for position in found.position}),
            "folds": folds,
            "cutoffs": list(cutoffs),
            "seed": seed,
            "estimand": "beliefs from residuals, out of fold",
        },
    )
