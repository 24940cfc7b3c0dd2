"""Runs in which some neurons are kept and all others are ablated, and how accurate they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int
from torch import Tensor

from mechnum.inputs import positive_integer, seed_sequence
from mechnum.intervals import share_interval
from mechnum.models.decoder import StateName
from mechnum.models.model import Model
from mechnum.neurons.chosen import layers_with_neurons
from mechnum.neurons.edited_runs import answers_with, mean_activations
from mechnum.neurons.effects.order import Order, ordered_neurons, sizes_of
from mechnum.patching.node_names import NodeNames
from mechnum.patching.provenance import prompt_attributes
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import sample_prompts
from mechnum.tasks.task import Task


@dataclass(frozen=True)
class Keep:
    """An edit that keeps some neurons, or puts other values in for them, and ablates all others.

    Attributes:
        kept: which neurons.
        means: what all others become.
        of: the state whose values are replaced.
        values: layer → neurons, and their values for every prompt.
    """

    kept: Bool[Tensor, "layer neuron"]
    means: Float[Tensor, "layer neuron"]
    of: StateName | None = None
    values: Mapping[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def __call__(
        self,
        name: StateName,
        layer: int,
        value: Float[Tensor, "row neuron"],
        rows: Int[Tensor, " row"],
    ) -> Float[Tensor, "row neuron"]:
        """The layer's neurons for these prompts."""
        if name == self.of and layer in self.values:
            neurons, given = self.values[layer]
            value = value.clone()
            value[:, neurons.to(value.device)] = given[rows].to(value)
        if name != "mlp_hidden":
            return value
        return torch.where(self.kept[layer], value, self.means[layer])


@dataclass(frozen=True)
class Setting:
    """What all runs of a measurement share."""

    model: Model
    task: Task
    prompts: tuple[Prompts, ...]
    order: Order
    ks: tuple[int, ...]
    means: Float[Tensor, "layer neuron"]
    position: str | int
    seed: int
    said: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        model: Model,
        task: Task,
        order: NodeNames | xr.DataArray,
        ks: Sequence[int] | None,
        n: int,
        n_mean: int,
        position: str | int,
        seed: int,
    ) -> Setting:
        """Draws the prompts and takes the means."""
        layers_with_neurons(model)
        neurons = ordered_neurons(model, order)
        sizes = sizes_of(len(neurons), ks)
        everything = task.prompts(model)
        streams = [int(part.generate_state(1)[0]) for part in seed_sequence(seed).spawn(2)]
        prompts = sample_prompts(everything, positive_integer("n", n), streams[0])
        averaged = sample_prompts(everything, positive_integer("n_mean", n_mean), streams[1])
        means = mean_activations(model, averaged, position)
        said = {
            **prompt_attributes(model, prompts),
            "task": task.name,
            "position": str(position),
            "ablated": "mean",
            "n_mean": sum(map(len, averaged)),
            "n_neurons": len(neurons),
            "seed": seed,
        }
        return cls(model, task, prompts, neurons, sizes, means, position, seed, said)

    def generator(self, what: str) -> np.random.Generator:
        """A stream of its own, apart from the one of the prompts."""
        return np.random.default_rng([self.seed, *what.encode()])

    def keep(self, neurons: Order) -> Keep:
        """The edit that keeps these neurons alone."""
        kept = torch.zeros(self.means.shape, dtype=torch.bool)
        kept[neurons[:, 0], neurons[:, 1]] = True
        device = self.model.device
        return Keep(kept.to(device), self.means.to(device, self.model.dtype))

    def judged(self, edits: Sequence[Keep], dim: str, labels: Sequence[str]) -> xr.Dataset:
        """Accuracies of the edits, for every label one of each k, beside those of the ends."""
        nothing = self.keep(self.order[:0])
        ends = (replace(nothing, kept=torch.ones_like(nothing.kept)), nothing)
        predicted = answers_with(self.model, self.prompts, [*edits, *ends], self.position)
        right = predicted == torch.cat([group.answers for group in self.prompts])
        correct = right.numpy()[:-2].reshape(len(labels), len(self.ks), -1)
        found = xr.Dataset(
            {
                "correct": ((dim, "k", "prompt"), correct),
                **accuracies(correct, (dim, "k")),
                **accuracies(right.numpy()[-2], (), "model_"),
                **accuracies(right.numpy()[-1], (), "ablated_"),
            },
            coords={
                dim: list(labels),
                "k": list(self.ks),
                "prompt": torch.cat([group.index for group in self.prompts]).numpy(),
                **{
                    name: ("prompt", torch.cat([own.variables[name] for own in self.prompts]))
                    for name in self.prompts[0].variables
                },
            },
            attrs=dict(self.said),
        )
        return found.sortby("prompt")


def accuracies(
    correct: Bool[np.ndarray, "*run prompt"], dims: tuple[str, ...], prefix: str = ""
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Shares of correct prompts with their Wilson intervals."""
    names = ("accuracy", "low", "high")
    return {
        f"{prefix}{name}": (dims, values)
        for name, values in zip(names, share_interval(correct), strict=True)
    }
