"""What each neuron computes: a neuron-level attribution report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models import Model
from mechnum.neurons import (
    ablate,
    adjudicate,
    fit,
    frequency_share,
    heuristics,
    knock_out,
    knock_out_by_prompt,
    mlp_shares,
    operand_maps,
    periods,
    phase_sums,
    rank,
    replace,
)
from mechnum.neurons.described import described
from mechnum.neurons.effects.scores import Ranking
from mechnum.neurons.states import Of
from mechnum.patching.metrics import MetricName
from mechnum.patching.tree import example_prompts
from mechnum.tasks import Accuracy, Pairs, Task, answer_tokens
from mechnum.tasks.arithmetic import ModularAddition
from mechnum.tasks.examples import bos_policy, example_pair


def measure_neurons(
    model: Model,
    task: Task,
    pairs: Pairs,
    accuracy: Accuracy,
    top: int = 100,
    by: Ranking = "estimate",
    of: Of = "pre",
    fit_periods: Sequence[float] | None = None,
    metric: MetricName = "logit_diff",
    seed: int = 0,
    said: Mapping[str, str | int | float] | None = None,
) -> xr.DataTree:
    """Everything about the neurons at the last position (Kantamneni & Tegmark 2025, section 5.3 and
    5.4; Nikankin et al. 2025, section 4).

    What the model or the prompts do not allow is left out, and the attribute `left_out` says why.

    Args:
        pairs: to patch; one half chooses the neurons, the other measures them.
        accuracy: of the model on the task.
        top: how many neurons, the first of the ranking `by`, are described.
        of: what is fitted, as in `mechnum.neurons.fit`.
        fit_periods: of the waves; by default those of `mechnum.neurons.fit`.
        said: further attributes, such as the command.

    Returns:
        `/neurons`: one row for each described neuron (see `mechnum.neurons.described`); `/rank`:
        `rank`; `/fits`: `fit` of all neurons; `/periods`, `/maps`, `/heuristics` and
        `/adjudication` of the described ones; `/kept` and `/replaced`: accuracy with only
        these; `/mlps`: `mlp_shares`;
        `/knock_out` and `/by_prompt`; of modular nets `/frequencies` and `/phases`; `/prompts`.

    Raises:
        MechnumError: on a model without MLPs, too few pairs, and prompts that it cannot read.
    """
    modular, prompts = isinstance(task, ModularAddition), task.prompts(model)
    # First, since it refuses periods that these prompts cannot tell apart.
    fitted = fit(model, task, of, fit_periods, seed=seed)
    ranked = rank(model, pairs, top, by=by, metric=metric, seed=seed)
    top_table = ranked["top"].to_dataset()
    names = [str(name) for name in top_table["node"].values]
    maps = operand_maps(model, prompts, names)
    gated = model.spec.gated
    bag = heuristics(maps, negative=gated)
    # A modular net's products of waves in a and in b are waves in a+b after the activation only.
    read = fit(model, task, "hidden", fit_periods, seed=seed) if modular else fitted
    scores = ranked["neurons"][f"{by}_selected"] * ranked.attrs["sign"]
    waves = {
        "periods": [float(period) for period in fitted["period"].values],
        "variables": [str(variable) for variable in fitted["variable"].values],
        "linear": "slope" in fitted,
    }
    parts: dict[str, Callable[[], xr.Dataset]] = {
        "/periods": lambda: periods(model, read, names, answer_tokens(model, prompts), seed=seed),
        "/adjudication": lambda: adjudicate(
            maps, **waves, of=("pre", "activation"), negative=gated, seed=seed
        ),
        "/kept": lambda: ablate(model, task, scores, seed=seed),
        "/replaced": lambda: replace(model, task, scores, fitted, seed=seed),
        "/mlps": lambda: mlp_shares(model, pairs, scores, fitted, metric=metric, seed=seed),
        "/knock_out": lambda: knock_out(model, task, bag, seed=seed, accuracy=accuracy),
        "/by_prompt": lambda: knock_out_by_prompt(model, task, bag, seed=seed, accuracy=accuracy),
    }
    if modular:
        parts |= {
            "/frequencies": lambda: frequency_share(model, task),
            "/phases": lambda: phase_sums(model, task),
        }
    found: dict[str, xr.Dataset] = {}
    left_out = {}
    for path, measured in parts.items():
        try:
            found[path] = measured()
        except MechnumError as reason:
            left_out[path.strip("/")] = str(reason)
    judged = found.get("/adjudication")
    table = described(model, top_table, fitted, bag, found.get("/periods"), judged)
    example, _ = example_pair(pairs)
    attrs = {
        **ranked.attrs,
        "family": model.spec.family,
        "task": task.name,
        "of": of,
        "bos": bos_policy(model, example),
        "accuracy": accuracy.share,
        "n_prompts": len(accuracy),
        "dropped": json.dumps(dict(pairs.dropped)),
        **(said or {}),
    }
    if left_out:
        attrs["left_out"] = json.dumps(left_out)
    return xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=attrs),
            "/neurons": table,
            "/rank/neurons": ranked["neurons"].to_dataset(),
            "/rank/top": top_table,
            "/fits": fitted,
            "/maps": maps,
            "/heuristics": bag,
            **found,
            "/prompts": example_prompts(model, pairs),
        }
    )
