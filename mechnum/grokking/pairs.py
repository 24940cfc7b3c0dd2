"""What a model computes for all pairs, from one run of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.grokking.logits import Logits, checked_logits
from mechnum.grokking.nets import class_tokens, modular_task, prompts_of
from mechnum.inputs import to_numpy
from mechnum.models.decoder import NEURON_STATES, StateName
from mechnum.models.exact import exact
from mechnum.models.model import Model
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.states import activations_of, runs_at


@dataclass(frozen=True, eq=False)
class PairStates:
    """States at the last token over all pairs (a, b).

    Attributes:
        classes: token id of each class.
        logits: of the classes.
        neurons: activations of one layer; no neurons in a layer without an MLP.
        pattern: attention of each head to a.
    """

    classes: Int[Tensor, " p"]
    logits: Logits
    neurons: Float[np.ndarray, "p p neuron"]
    pattern: Float64[np.ndarray, "p p layer head"]


def pair_states(model: Model, task: ModularAddition, layer: int) -> PairStates:
    """Runs all pairs in batches that fit the memory budget.

    Args:
        layer: whose neurons; negative ones count from the last.

    Raises:
        MechnumError: on a layer that does not exist, and on logits that are not finite.
    """
    n_layers, p = model.spec.n_layers, task.p
    _check_layer(model, layer)
    prompts = prompts_of(model, task)
    classes = class_tokens(prompts, p).to(model.device)
    at_a = int(prompts.positions["a"][0])
    keep: tuple[StateName, ...] = ("mlp_hidden", "pattern")
    logits = np.empty((p * p, p))
    pattern = np.empty((p * p, n_layers, model.spec.n_heads))
    neurons: np.ndarray | None = None
    for rows, run in runs_at(model, (prompts,), "end", keep, 8 * p):
        with exact(model.device):
            logits[rows] = model.decoder.logits(run.last[:, 0], classes).double().cpu().numpy()
        hidden = run["mlp_hidden", layer][:, 0].float().cpu().numpy()
        if neurons is None:
            neurons = np.empty((p * p, hidden.shape[1]), dtype=np.float32)
        neurons[rows] = hidden
        for own in range(n_layers):
            pattern[rows, own] = run["pattern", own][:, :, 0, at_a].double().cpu().numpy()
    assert neurons is not None, "a task has prompts"
    return PairStates(
        classes,
        checked_logits(logits.reshape(p, p, p)),
        neurons.reshape(p, p, neurons.shape[1]),
        pattern.reshape(p, p, n_layers, model.spec.n_heads),
    )


def neuron_maps(
    model: Model, task: ModularAddition | None = None, layer: int = 0, name: StateName = "mlp_pre"
) -> Float[np.ndarray, "p p neuron"]:
    """One layer's neurons at the last token over all pairs, as `phase_alignment` takes them.

    Args:
        task: what the model adds by, where it does not say so itself.
        name: "mlp_pre", what the activation function reads, or "mlp_hidden", the activations.

    Raises:
        MechnumError: on a layer that does not exist or has no MLP, on other states, and on a model
            without a modular task of a prime p.
    """
    task = modular_task(model, task)
    _check_layer(model, layer)
    if name not in NEURON_STATES:
        raise MechnumError(f"{name!r} is no state of neurons: use {' or '.join(NEURON_STATES)}")
    if model.decoder.weights.blocks[layer].mlp is None:
        raise MechnumError(f"layer {layer} of {model.name} has no MLP: it has no neurons")
    states = activations_of(model, (prompts_of(model, task),), name)[layer]
    return states.reshape(task.p, task.p, -1)


def readout_rows(
    model: Model, classes: Int[Tensor, " p"], layer: int
) -> Float64[np.ndarray, "p neuron"] | None:
    """W_L = W_U · W_out of one layer, one row for each class, without the final norm; None where
    the layer has no MLP."""
    weights = model.decoder.weights
    mlp = weights.blocks[layer].mlp
    if mlp is None:
        return None
    rows = (to_numpy(mlp.W_out) @ to_numpy(weights.W_U[:, classes])).T
    return np.asarray(rows, dtype=np.float64)


def _check_layer(model: Model, layer: int) -> None:
    n_layers = model.spec.n_layers
    if not -n_layers <= layer < n_layers:
        raise MechnumError(f"{model.name} has no layer {layer}: give 0 to {n_layers - 1}")
