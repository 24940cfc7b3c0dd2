"""Operand maps: what chosen neurons are at every prompt, and what they add to its answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.model import Model
from mechnum.models.norms import at_least_float32
from mechnum.neurons.chosen import chosen_neurons, node_coordinates
from mechnum.neurons.states import STATE_OF, Of, check_of
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
    of: Of = "hidden",
    position: str | int = "end",
) -> xr.Dataset:
    """Activations of chosen neurons over the operands, and what they write to the answer's logit.

    The operand plots of Ameisen et al. 2025, and the maps A and A ⊙ L of Nikankin et al. 2025
    (section 4). Held are 8 bytes for each neuron and prompt.

    Args:
        task: a task, or prompts of one.
        neurons: "neuron 3.17, neuron 4.0-9", or nodes.
        of: which activation: "hidden" after the activation function and any gate, "pre" before.

    Returns:
        Over (node, prompt), prompts in the task's order: `activation`, and `logit`, the neuron's
        activation ("hidden", whatever `of` says) × W_out row · W_U column of the prompt's answer
        token, without the final norm. Coordinates `a`, `b` (what the task has of them) and
        `answer`, integers.

    Raises:
        MechnumError: on neurons that do not exist, on no prompts, and as
            `mechnum.tasks.activations_of`.
    """
    check_of(of)
    nodes = chosen_neurons(model, neurons)
    prompts = task.prompts(model) if isinstance(task, Task) else list(task)
    n_prompts = sum(map(len, prompts))
    if n_prompts == 0:
        raise MechnumError("there are no prompts to run: give at least one")
    groups = grouped(enumerate(nodes))
    activation, logit = (np.empty((len(nodes), n_prompts), dtype=np.float32) for _ in range(2))
    for rows, run in runs_at(model, prompts, position, tuple({STATE_OF[of], STATE_OF["hidden"]})):
        for group in groups:
            own = np.ix_(group.rows, rows)
            for name, table in ((STATE_OF[of], activation), (STATE_OF["hidden"], logit)):
                table[own] = run[name, group.layer][:, 0, group.parts].float().cpu().numpy().T
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
            "activation": (("node", "prompt"), activation[:, order]),
            "logit": (("node", "prompt"), logit[:, order]),
        },
        coords={
            **node_coordinates(nodes),
            **{name: ("prompt", values.numpy()[order]) for name, values in numbers.items()},
        },
        attrs=prompt_attributes(model, prompts) | {"of": of, "position": str(position)},
    )
