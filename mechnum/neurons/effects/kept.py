"""Accuracy with the best k neurons kept, or replaced by their fits, and all others ablated.

Source: Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5 and its appendix on neurons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float32, Float64, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.models.decoder import StateName
from mechnum.models.model import Model
from mechnum.neurons.chosen import at_nodes
from mechnum.neurons.effects.keeping import Setting
from mechnum.neurons.effects.order import Order
from mechnum.neurons.states import STATE_OF
from mechnum.neurons.waves.formulas import predict
from mechnum.patching.node_names import NodeNames
from mechnum.patching.nodes import Node
from mechnum.tasks.states import numbers_of, runs_at
from mechnum.tasks.task import Task

# What `replace` puts in the place of the kept neurons: nothing, the ceiling, fits, two controls.
CONTENTS = ("own", "recorded", "fit", "fits of other neurons", "fits of other prompts")


def ablate(
    model: Model,
    task: Task,
    order: NodeNames | xr.DataArray,
    ks: Sequence[int] | None = None,
    n: int = 100,
    n_mean: int = 100,
    draws: int = 3,
    position: str | int = "end",
    seed: int = 0,
) -> xr.Dataset:
    """Accuracy with the best k neurons kept and all others of all layers mean-ablated.

    At `position` the activation (after any gate) of every other neuron is its mean over prompts;
    everything after it is recomputed, the kept neurons too. Each k of each order costs a run of
    the prompts from `position` on; what comes before is run once.

    Args:
        order: neurons, best first; or scores of neurons, the largest first: over (layer, neuron),
            as `rank(...)["neurons"]["estimate_selected"]`, or over node. NaN is left out.
        ks: how many are kept; 0 is none of them. By default the whole order, a half of it, a
            quarter, and so on down to a thousandth.
        n: prompts of the task that are asked, right or wrong ones.
        n_mean: prompts that the means are taken over (100 in the paper); the two may share some.
        draws: random orders of all neurons of the model, as the control.
        seed: draws the prompts and the random orders.

    Returns:
        `accuracy` with `low` and `high` (95 % Wilson intervals over prompts) over (order, k) for
        the order "given" and the random ones; `correct` over (order, k, prompt). `model_accuracy`
        and `ablated_accuracy`, each with `_low` and `_high`: without any edit, and with all neurons
        ablated. Coordinates over prompt: its place in the task, and its numbers.

    Raises:
        MechnumError: on a model without MLPs, neurons that do not exist or are there twice, a k
            beyond the order, and positions that do not exist.
    """
    setting = Setting.of(model, task, order, ks, n, n_mean, position, seed)
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 0:
        raise MechnumError(f"draws={draws!r} is no number of random orders: give 0 or more")
    n_layers, d_mlp = setting.means.shape
    generator = setting.generator("orders")
    orders = {"given": setting.order}
    for draw in range(draws):
        flat = generator.permutation(n_layers * d_mlp)[: max(setting.ks)]
        orders[f"random {draw + 1}"] = np.stack(np.divmod(flat, d_mlp), axis=1)
    edits = [setting.keep(own[:k]) for own in orders.values() for k in setting.ks]
    return setting.judged(edits, "order", list(orders))


def replace(
    model: Model,
    task: Task,
    order: NodeNames | xr.DataArray,
    fitted: xr.Dataset,
    ks: Sequence[int] | None = None,
    n: int = 100,
    n_mean: int = 100,
    position: str | int = "end",
    seed: int = 0,
) -> xr.Dataset:
    """Accuracy with the best k neurons doing what their fits say, and all others mean-ablated.

    As far as this is as accurate as the values that were fitted ("recorded"), the fits say what
    the neurons compute. It can be more accurate than the neurons themselves ("own"): these read
    what the ablated neurons of earlier layers no longer write, and fits do not. What is replaced is
    what was fitted, by the fit's attribute `of`: what the activation function reads ("pre"; in
    gated MLPs the other factor stays the neuron's own), or the activation after any gate
    ("hidden").

    Args:
        fitted: of `mechnum.neurons.fit` for this model, at the same position.
        order, ks, n, n_mean, position, seed: as in `ablate`.

    Returns:
        As `ablate`, over (content, k) in place of (order, k). Contents: "own", the neurons
        themselves, as in `ablate`; "recorded", their values in the model without any edit; "fit";
        and as controls "fits of other neurons" (of the largest
        k), and "fits of other prompts", with which each neuron keeps all its values, but for
        other operands.

    Raises:
        MechnumError: as `ablate`, on prompts without the fit's operands, on neurons that were not
            fitted, and on fewer than two neurons or prompts, which leave no control.
    """
    of = fitted.attrs.get("of")
    if of is None or of not in STATE_OF:
        raise MechnumError(f"the fit is of {of!r}: give a fit of 'pre' or 'hidden' activations")
    setting = Setting.of(model, task, order, ks, n, n_mean, position, seed)
    used = setting.order[: max(*setting.ks, 2)]
    operands = fitted.attrs["operands"].split(", ")
    own = _predicted(fitted, used, numbers_of(setting.prompts, operands))
    if min(own.shape) < 2:
        raise MechnumError(
            f"{own.shape[1]} neurons and {own.shape[0]} prompts leave no others to compare with: "
            "give at least two of each"
        )
    generator = setting.generator("controls")
    contents = (
        None,
        _recorded(setting, STATE_OF[of], used),
        own,
        own[:, _others(own.shape[1], generator)],
        own[_others(len(own), generator)],
    )
    edits = []
    for content in contents:
        values = {} if content is None else _by_layer(used, content)
        edits += [
            changed(setting.keep(used[:k]), of=STATE_OF[of], values=values) for k in setting.ks
        ]
    return setting.judged(edits, "content", list(CONTENTS)).assign_attrs(of=of)


def _recorded(
    setting: Setting, name: StateName, neurons: Order
) -> Float32[np.ndarray, "prompt place"]:
    """What these neurons do for each prompt when nothing is edited."""
    prompts = setting.prompts
    found = np.empty((sum(map(len, prompts)), len(neurons)), dtype=np.float32)
    layers = np.unique(neurons[:, 0]).tolist()
    for rows, run in runs_at(setting.model, prompts, setting.position, (name,)):
        for layer in layers:
            own = neurons[:, 0] == layer
            values = run[name, layer][:, 0].float().cpu().numpy()
            found[np.ix_(rows, own)] = values[:, neurons[own, 1]]
    return found


def _predicted(
    fitted: xr.Dataset, neurons: Order, numbers: Float64[np.ndarray, "prompt operand"]
) -> Float32[np.ndarray, "prompt place"]:
    """What the fits say of these neurons for each prompt."""
    found = np.empty((len(numbers), len(neurons)), dtype=np.float32)
    for layer in np.unique(neurons[:, 0]).tolist():
        own = neurons[:, 0] == layer
        nodes = [Node("neuron", layer, int(index)) for index in neurons[own, 1]]
        found[:, own] = predict(at_nodes(fitted, nodes), numbers).transpose("prompt", "node")
    if not np.isfinite(found).all():
        layer, neuron = neurons[~np.isfinite(found).all(0)][0].tolist()
        raise MechnumError(f"neuron {layer}.{neuron} has no fit: leave it out of the order")
    return found


def _by_layer(
    neurons: Order, values: Float32[np.ndarray, "prompt place"]
) -> dict[int, tuple[Tensor, Tensor]]:
    return {
        layer: (
            torch.from_numpy(neurons[neurons[:, 0] == layer, 1]),
            torch.from_numpy(values[:, neurons[:, 0] == layer]),
        )
        for layer in np.unique(neurons[:, 0]).tolist()
    }


def _others(n: int, generator: np.random.Generator) -> Int[np.ndarray, " row"]:
    """A random permutation that leaves nothing in its place."""
    circle = generator.permutation(n)
    found = np.empty(n, dtype=np.int64)
    found[circle] = np.roll(circle, 1)
    return found
