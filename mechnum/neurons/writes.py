"""How much of what a neuron writes lies in a given subspace."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float64

from mechnum.errors import InvalidInput
from mechnum.inputs import to_numpy
from mechnum.models.model import Model
from mechnum.neurons.chosen import at_nodes, chosen_neurons, layers_with_neurons, node_coordinates
from mechnum.patching.node_names import NodeNames
from mechnum.patching.provenance import model_attributes

# Directions whose part outside the others is smaller, beside the longest, count as dependent.
_INDEPENDENT = 1e-6


def write_score(model: Model, basis: Any, neurons: NodeNames | None = None) -> xr.Dataset:
    """The neuron write score ω = ‖w Q‖ / ‖w‖ of Feucht et al. 2026 (arXiv 2605.01148).

    w is a neuron's row of W_out, Q an orthonormal basis of the directions: ω is 1 for a neuron that
    writes into their span alone, and √(r / d_model) on average for r random directions.

    Args:
        basis: directions [d_model, r] as columns, of any length and angle, or one [d_model].
        neurons: by default all.

    Returns:
        `score` over (layer, neuron), or over `node` for chosen neurons; `status`: "written", "zero
        row" where the neuron writes nothing, "no MLP". The score is NaN but for "written".

    Raises:
        InvalidInput: on directions that are not finite, of another width, zero, or spanned by the
            others.
        MechnumError: on neurons that do not exist.
    """
    directions = _orthonormal(basis, model.spec.d_model)
    nodes = None if neurons is None else chosen_neurons(model, neurons)
    with_mlp = layers_with_neurons(model)
    shape = (model.spec.n_layers, model.spec.d_mlp)
    score, status = np.full(shape, np.nan), np.full(shape, "no MLP", dtype="<U8")
    for layer in with_mlp:
        mlp = model.decoder.weights.blocks[layer].mlp
        assert mlp is not None, "layers with neurons have an MLP"
        rows = to_numpy(mlp.W_out)
        length = np.linalg.norm(rows, axis=1)
        inside = np.linalg.norm(rows @ directions, axis=1)
        np.divide(inside, length, out=score[layer], where=length > 0)
        status[layer] = np.where(length > 0, "written", "zero row")
    table = xr.Dataset(
        {"score": (("layer", "neuron"), score), "status": (("layer", "neuron"), status)},
        coords={"layer": np.arange(shape[0]), "neuron": np.arange(shape[1])},
        attrs=model_attributes(model) | {"n_directions": directions.shape[1]},
    )
    return table if nodes is None else at_nodes(table, nodes).assign_coords(node_coordinates(nodes))


def _orthonormal(basis: Any, d_model: int) -> Float64[np.ndarray, "d_model r"]:
    """Checked directions as orthonormal columns of the same span."""
    try:
        directions = np.asarray(to_numpy(basis), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput("the directions are no numbers: give an array [d_model, r]") from error
    directions = directions[:, None] if directions.ndim == 1 else directions
    if directions.ndim != 2 or len(directions) != d_model or not directions.shape[1]:
        raise InvalidInput(
            f"directions have shape {directions.shape}: give [{d_model}, r], one column for each"
        )
    if not np.isfinite(directions).all():
        raise InvalidInput("the directions are not finite: give finite numbers")
    length = np.linalg.norm(directions, axis=0)
    if not length.all():
        zero = int(np.flatnonzero(length == 0)[0])
        raise InvalidInput(f"direction {zero} is zero: leave it out")
    rotated, sizes, _ = np.linalg.svd(directions / length, full_matrices=False)
    rank = int((sizes > _INDEPENDENT * sizes[0]).sum())
    if rank < directions.shape[1]:
        raise InvalidInput(
            f"{directions.shape[1]} directions span {rank} dimensions: leave out those that the "
            "others span"
        )
    return rotated
