"""Clock or pizza: which algorithm a net adds by, and what disputes the question (Zhong et al.
2023; Moisescu-Pareja et al. 2026)."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

from mechnum.circuits.running.comparison import with_published
from mechnum.grokking import (
    circle_planes,
    clock_or_pizza,
    disc_or_torus,
    distance_map,
    isolate_circles,
    net_from_model,
    net_logits,
    neuron_maps,
    phase_alignment,
)
from mechnum.grokking.nets import modular_task, prompts_of
from mechnum.models import Model
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.examples import bos_policy, example_tokens


def measure_clock_pizza(
    model: Model,
    task: ModularAddition | None = None,
    n: int = 100,
    seed: int | None = None,
    n_circles: int = 6,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """Every figure by which nets are called clock-like or pizza-like, and the later tests.

    Args:
        task: what the model adds by, where it does not say so itself.
        n, seed: triples of the gradient symmetricity; by default the published ones.
        n_circles: circles that are isolated, the strongest.
        said: further attributes, such as the command.

    Returns:
        `/verdict`: `clock_or_pizza`, which isolates circles by Fourier mode; `/components`:
        `isolate_circles` by pairs of principal components; `/circles`: `circle_planes` of the
        embedding of a at the circles' frequencies; `/irrelevance`: `logit` over (sum, distance),
        see `distance_map`; `/alignment`: `phase_alignment` of the first layer's pre-activations,
        and `/cka`: `cka` over (of, frequency, shape) of these and of the logits, see
        `disc_or_torus`, both of nets with neurons there; `/published`, the figures of the paper's
        net of the same configuration; `/prompts`.

    Raises:
        MechnumError: as `clock_or_pizza`.
    """
    task = modular_task(model, task)
    net = net_from_model(model, task)
    verdict = clock_or_pizza(model, n, seed, n_circles, task)
    components = isolate_circles(net, "components", n_circles)
    logits = net_logits(net)
    found = {
        "/verdict": verdict,
        "/components": components,
        "/circles": circle_planes(net.embeddings_a, verdict["embedding_frequency"].values),
        "/irrelevance": distance_map(logits).to_dataset(),
    }
    if model.decoder.weights.blocks[0].mlp is not None:
        first = neuron_maps(model, task)
        found["/alignment"] = phase_alignment(first)
        shapes = {"first layer": disc_or_torus(first), "logits": disc_or_torus(logits)}
        found["/cka"] = xr.concat(
            shapes.values(), dim="of", join="outer", combine_attrs="drop"
        ).assign_coords(of=list(shapes))
    prompts = prompts_of(model, task)
    attrs = {
        **verdict.attrs,
        "task": task.name,
        "template": task.form(model),
        "bos": bos_policy(model, prompts),
        "accuracy": float(verdict["accuracy"]),
        "n_prompts": len(prompts),
        "attention_rate": model.spec.attention_rate,
        **(said or {}),
    }
    root = {"/": xr.Dataset(attrs=attrs), "/prompts": example_tokens(model, prompts)}
    results = xr.DataTree.from_dict(root | found)
    return with_published(results, "clock_pizza", "pizza", model)
