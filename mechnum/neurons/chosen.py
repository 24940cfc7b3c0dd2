"""Which neurons a measurement is asked for, and tables of some or of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.patching.edges import named
from mechnum.patching.node_names import NodeNames, as_targets, parse_targets
from mechnum.patching.nodes import Node, label


def chosen_neurons(model: Model, neurons: NodeNames) -> list[Node]:
    """Single neurons by name or as nodes, in their order.

    Args:
        neurons: a list in words, `"neuron 3.17, neuron 4.0-9"`, or nodes or their names.

    Raises:
        MechnumError: on none, on nodes that are no single neurons, on one that is there twice, and
            on neurons that the model does not have.
    """
    spec = model.spec
    targets = parse_targets(neurons, spec) if isinstance(neurons, str) else as_targets(neurons)
    if not targets:
        raise MechnumError("no neurons were named: name at least one, such as 'neuron 3.17'")
    found = []
    for target in targets:
        if not isinstance(target, Node) or target.kind != "neuron":
            said = label(target) or "an empty set"
            raise MechnumError(f"{said} is no single neuron: write neurons as 'neuron 3.17'")
        target.check(spec)
        if target.layer not in layers_with_neurons(model):
            raise MechnumError(f"{target} does not exist: layer {target.layer} has no MLP")
        found.append(target)
    named(found)
    return found


def layers_with_neurons(model: Model, layers: Sequence[int] | None = None) -> list[int]:
    """Those of the layers (all without them) that have an MLP, in order.

    Raises:
        MechnumError: on layers that do not exist or are there twice, and where none has an MLP.
    """
    blocks = model.decoder.weights.blocks
    asked = list(range(len(blocks)) if layers is None else layers)
    for layer in asked:
        if not 0 <= layer < len(blocks) or asked.count(layer) > 1:
            why = "twice there" if asked.count(layer) > 1 else "not there"
            raise MechnumError(
                f"layer {layer} of {model.name} is {why}: give layers of 0 to {len(blocks) - 1}, "
                "each once"
            )
    found = [layer for layer in asked if blocks[layer].mlp is not None]
    if not found:
        raise MechnumError(f"{model.name} has no MLPs in layers {asked}: it has no neurons there")
    return found


def at_nodes(table: xr.Dataset, nodes: Sequence[Node]) -> xr.Dataset:
    """The entries of a table over (layer, neuron) that belong to neurons, over `node`.

    Raises:
        MechnumError: on neurons that the table does not have.
    """
    layers, indices = zip(*((node.layer, node.index) for node in nodes), strict=True)
    labels = [str(node) for node in nodes]
    try:
        return table.sel(
            layer=xr.DataArray(list(layers), dims="node", coords={"node": labels}),
            neuron=xr.DataArray(list(indices), dims="node", coords={"node": labels}),
        )
    except KeyError:
        layers, indices = (set(table[name].values.tolist()) for name in ("layer", "neuron"))
        missing = next(n for n in nodes if n.layer not in layers or n.index not in indices)
        raise MechnumError(
            f"the table has no {missing}: it has neurons {min(indices)} to {max(indices)} of the "
            f"layers {', '.join(map(str, sorted(layers)))}; choose among them"
        ) from None


def check_fit_of(model: Model, fitted: xr.Dataset) -> None:
    """Refuses fits of another model, or of weights that have changed since.

    Raises:
        MechnumError: on these.
    """
    if fitted.attrs.get("model_fingerprint") != model.fingerprint:
        raise MechnumError(
            f"the fits are of {fitted.attrs.get('model', 'another model')}, or of other weights "
            f"than {model.name} has now: fit this model"
        )


def node_coordinates(nodes: Sequence[Node]) -> dict[str, tuple[str, np.ndarray]]:
    """Labels, layers and indices of neurons, as the coordinates of a table over `node`."""
    return {
        "node": ("node", np.array([str(node) for node in nodes])),
        "layer": ("node", np.array([node.layer for node in nodes])),
        "neuron": ("node", np.array([node.index for node in nodes])),
    }
