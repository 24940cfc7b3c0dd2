"""Neurons in an order: best first, as they are named or by their scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Int

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.neurons.chosen import chosen_neurons
from mechnum.patching.node_names import NodeNames
from mechnum.tasks.numbers import check_integer

# Layer and index of each neuron: all neurons of a large model are too many for nodes.
Order = Int[np.ndarray, "place 2"]

# To about a thousandth of all neurons: the paper's sets are 0.2 to 2 % of GPT-J's.
_HALVINGS = 10


def ordered_neurons(model: Model, order: NodeNames | xr.DataArray) -> Order:
    """Neurons as named, or by their scores, the largest first.

    Raises:
        MechnumError: on neurons that do not exist or are there twice, on none, and on scores that
            are neither over (layer, neuron) nor over node.
    """
    if not isinstance(order, xr.DataArray):
        return np.array([(node.layer, node.index) for node in chosen_neurons(model, order)])
    if set(order.dims) == {"layer", "neuron"}:
        scores = order.transpose("layer", "neuron").values
        places = np.argwhere(np.isfinite(scores))
        layers, neurons = order["layer"].values, order["neuron"].values
        found = np.stack([layers[places[:, 0]], neurons[places[:, 1]]], axis=1)
        scores = scores[tuple(places.T)]
        shape = (model.spec.n_layers, model.spec.d_mlp)
        if len(found) and ((found < 0) | (found >= shape)).any():
            raise MechnumError(
                f"the scores are not of {model.name}, which has {shape[0]} layers of {shape[1]} "
                "neurons: rank the neurons of this very model"
            )
    elif order.dims == ("node",) and "node" in order.coords:
        own = order[np.isfinite(order.values)]
        nodes = chosen_neurons(model, [str(name) for name in own["node"].values])
        found, scores = np.array([(node.layer, node.index) for node in nodes]), own.values
    else:
        raise MechnumError(
            f"scores over {order.dims} do not order neurons: give them over (layer, neuron), or "
            "over node with the neurons' names"
        )
    if not len(found):
        raise MechnumError("no neuron has a score: give at least one number")
    return found[np.argsort(-scores, kind="stable")]


def sizes_of(n_neurons: int, ks: Sequence[int] | None) -> tuple[int, ...]:
    """How many of the neurons are taken, in order.

    By default all of them, a half, a quarter, and so on down to a thousandth.

    Raises:
        MechnumError: on none, and on numbers below 0 or beyond the neurons.
    """
    if ks is None:
        return tuple(sorted({max(1, n_neurons >> halvings) for halvings in range(_HALVINGS + 1)}))
    sizes = sorted({check_integer(k) for k in ks})
    if not sizes or sizes[0] < 0 or sizes[-1] > n_neurons:
        raise MechnumError(f"ks {list(ks)} are outside 0 to {n_neurons}, the neurons of the order")
    return tuple(sizes)
