"""Operand maps: what chosen neurons are at every prompt, and what they add to its answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.decoder import StateName
from mechnum.models.model import Model
from mechnum.models.norms import at_least_float32
from mechnum.neurons.chosen import chosen_neurons, node_coordinates
from mechnum.neurons.states import STATE_OF
from mechnum.patching.node_names import NodeNames
from mechnum.patching.nodes import grouped
from mechnum.patching.provenance import prompt_attributes
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import runs_at
from mechnum.tasks.task import Task


def operand_maps(
    model: Model,
    task: Task | Sequence[Prompts],
    neurons: NodeNames,
    position: str | int = "end",
) -> xr.Dataset:
    """Activations of chosen neurons over the operands, and what they write to the answer's logit.

    The operand plots of Ameisen et al. 2025, and the maps A and A ⊙ L of Nikankin et al. 2025
    (section 4). Held are 12 bytes for each neuron and prompt.

    Args:
        task: a task, or prompts of one.
        neurons: "neuron 3.17, neuron 4.0-9", or nodes.

    Returns:
        Over (node, prompt), prompts in the task's order: `activation`, after the activation
        function and any gate; `pre`, what the activation function reads; and `logit`, activation ×
        W_out row · W_U column of the prompt's answer token, without the final norm. Coordinates
        `a`, `b` (what the task has of them) and `answer`, integers.

    Raises:
        MechnumError: on neurons that do not exist, on no prompts, and as
            `mechnum.tasks.activations_of`.
    """
    nodes = chosen_neurons(model, neurons)
    prompts = task.prompts(model) if isinstance(task, Task) else list(task)
    n_prompts = sum(map(len, prompts))
    if n_prompts == 0:
        raise MechnumError("there are no prompts to run: give at least one")
    groups = grouped(enumerate(nodes))
    tables = {
        name: np.empty((len(nodes), n_prompts), dtype=np.float32) for name in ("activation", "pre")
    }
    states: dict[str, StateName] = {"activation": STATE_OF["hidden"], "pre": STATE_OF["pre"]}
    for rows, run in runs_at(model, prompts, position, tuple(states.values())):
        for group in groups:
            at = np.array(group.rows)[:, None], rows
            for name, state in states.items():
                own = run[state, group.layer][:, 0, group.parts]
                tables[name][at] = own.float().cpu().numpy().T
    logit = tables["activation"].copy()
    tokens, which = np.unique(
        np.concatenate([group.answers.numpy() for group in prompts]), return_inverse=True
    )
    W_U = at_least_float32(model.decoder.weights.W_U[:, torch.from_numpy(tokens)])
    for group in groups:
        mlp = model.decoder.weights.blocks[group.layer].mlp
        assert mlp is not None, "chosen neurons exist"
        written = at_least_float32(mlp.W_out[group.parts]) @ W_U
        logit[group.rows] *= written.float().cpu().numpy()[:, which.reshape(-1)]
    order = np.argsort(np.concatenate([group.index.numpy() for group in prompts]), kind="stable")
    names = list(prompts[0].variables)
    numbers = {name: torch.cat([group.variables[name] for group in prompts]) for name in names}
    return xr.Dataset(
        {
            name: (("node", "prompt"), values[:, order])
            for name, values in {**tables, "logit": logit}.items()
        },
        coords={
            **node_coordinates(nodes),
            **{name: ("prompt", values.numpy()[order]) for name, values in numbers.items()},
        },
        attrs=prompt_attributes(model, prompts) | {"position": str(position)},
    )
