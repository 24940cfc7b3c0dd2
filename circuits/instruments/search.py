"""A circuit for any task: found on one half of the pairs, and tested on the other."""

from __future__ import annotations

from typing import Literal

import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models import Model
from mechnum.patching import (
    Circuit,
    completeness,
    faithfulness,
    faithfulness_curve,
    minimality,
    path_effects,
)
from mechnum.patching.attribution.attribution import attribute
from mechnum.patching.batches import Direction
from mechnum.patching.circuit.exact import with_exact_effects
from mechnum.patching.circuit.graph import graph_of
from mechnum.patching.circuit.results import circuit_files, circuit_results
from mechnum.patching.metrics import MetricName
from mechnum.patching.tree import results
from mechnum.patching.values import ValueName
from mechnum.tasks import Pairs

SearchMethod = Literal["eap", "eap-ig", "exact"]


def find_circuit(
    model: Model,
    pairs: Pairs,
    n_edges: int = 50,
    method: SearchMethod = "eap-ig",
    metric: MetricName = "logit_diff",
    direction: Direction = "denoise",
    values: ValueName = "other",
    seed: int = 0,
    **said: str | int | float,
) -> tuple[Circuit, xr.DataTree]:
    """The edges of the largest absolute score, and how much of the model they are.

    Edges are scored on one half of the pairs. On the other half their exact effects are measured,
    and the circuit's faithfulness, completeness, minimality and curve over sizes, so that an edge
    that is large by chance gains nothing.

    Args:
        n_edges: size of the circuit.
        method: scores are estimates by `mechnum.attribute` ("eap", "eap-ig"), or "exact" effects
            by `mechnum.path_effects`, which take a suffix run for each edge.
        values: what cut edges carry when the circuit is tested, see `mechnum.faithfulness`. Edges
            are always scored by what the other prompt's values do.
        said: further attributes of the results, such as the command.

    Returns:
        The circuit, whose scores are the exact effects with their intervals, and the tree that
        `mechnum.report` draws: `/circuit`, `/faithfulness`, `/completeness`, `/minimality`,
        `/curve`, `/prompts`, and `/effects`, the exact effects of each pair over edge.

    Raises:
        MechnumError: on sizes that no circuit of the model has, and where there are too few pairs
            for two halves.
    """
    n_all = graph_of(model.spec, ()).n_edges
    if not 1 <= n_edges <= n_all:
        raise MechnumError(f"a circuit of {n_edges} edges is none: give 1 to {n_all}")
    chosen_on, tested_on = pairs.split(seed=seed)
    if method == "exact":
        found = path_effects(
            model, chosen_on, "components", "components", metric=metric, direction=direction
        )["effect"]
    else:
        found = attribute(model, chosen_on, method, metric=metric, direction=direction)["estimate"]
    scores = found.mean("pair")
    chosen = Circuit.from_scores(scores, n=n_edges)
    circuit, effects = with_exact_effects(
        model, tested_on, chosen, metric, direction, seed, found_by=method
    )
    # The prompts and attributes are those of the pairs that were tested on.
    tree = results(
        model,
        tested_on,
        effects,
        seed,
        found_by=method,
        n_pairs_found_on=len(chosen_on),
        n_edges=n_edges,
        n_edges_of_the_model=n_all,
        cut_edges_carry=values,
        **said,
    )
    tests = {
        "/faithfulness": faithfulness(model, tested_on, circuit, metric, values, seed=seed),
        "/completeness": completeness(model, tested_on, circuit, metric, values, seed=seed),
        "/minimality": minimality(model, tested_on, circuit, metric, values, seed=seed),
        "/curve": faithfulness_curve(
            model, tested_on, scores, metric=metric, values=values, seed=seed
        ),
    }
    return circuit, xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=tree.attrs),
            "/circuit": circuit_results(circuit, model.spec),
            "/files": circuit_files(circuit, model.spec),
            "/effects": effects.drop_attrs(deep=False),
            "/prompts": tree["prompts"].to_dataset(),
            **{path: measured.drop_attrs(deep=False) for path, measured in tests.items()},
        }
    )
