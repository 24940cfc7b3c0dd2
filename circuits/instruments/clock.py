"""The clock: how a model adds on circles, from the number tokens to the logits.

The recipe of Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5, for any model and task with
two operands, beside the figures that they published for GPT-J.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from mechnum.circuits.running.comparison import with_published
from mechnum.errors import MechnumError
from mechnum.fourier.periods import default_periods
from mechnum.helix import Helix
from mechnum.helix.clock import (
    Fits,
    check_n_mixed,
    head_classes,
    head_effects,
    joint_validation,
    mlp_stages,
)
from mechnum.inputs import positive_integer
from mechnum.models import Model
from mechnum.patching import Circuit, cumulative, effects, faithfulness, path_effects
from mechnum.patching.circuit.exact import with_exact_effects
from mechnum.patching.circuit.results import circuit_files, circuit_results
from mechnum.patching.metrics import MetricName
from mechnum.patching.node_names import parse_node
from mechnum.patching.nodes import Node, NodeKind, all_nodes
from mechnum.patching.tree import results
from mechnum.tasks import Accuracy, Pairs, Task, parse, sample_prompts
from mechnum.tasks.arithmetic import ModularAddition

# As many as the paper finds in GPT-J: heads, MLPs, and the share of the heads that is mixed.
N_HEADS, N_MLPS, MIXED = 20, 11, 0.2


def trace_clock(
    model: Model,
    task: Task | None = None,
    n_pairs: int = 200,
    periods: Sequence[float | int] | None = None,
    n_heads: int = N_HEADS,
    n_mlps: int = N_MLPS,
    n_edges: int = 60,
    n_mixed: int | None = None,
    folds: int = 5,
    metric: MetricName = "logit_diff",
    correct_only: bool = True,
    seed: int = 0,
    accuracy: Accuracy | None = None,
    **said: str | int | float,
) -> xr.DataTree:
    """Trace the clock algorithm: which heads move helix(a, b), what builds and writes helix(a+b).

    One half of the pairs chooses: heads and MLPs by their total effect at the last position, edges
    by their exact effect. On the other half everything is measured: cumulative curves, classes of
    heads and their joint validation, stages of MLPs, effects of edges and faithfulness. Helices are
    fitted to other prompts' numbers than those that they are scored on (`mechnum.helix.clock`).

    Args:
        task: by default the one that the model was trained on, else addition of 0 to 99.
        n_pairs: pairs at most, half of which are measured; fewer where the model answers too few
            prompts correctly.
        periods: of the helices; by default those of `mechnum.trace`. Modular nets have their own,
            and no linear column.
        n_heads, n_mlps: heads to classify, and heads and MLPs that the circuit is drawn among; all
            of them where the model has fewer.
        n_edges: edges of the circuit.
        n_mixed: heads that are "mixed"; by default a fifth, as in the paper.
        folds: see `mechnum.helix.clock.Fits`.
        correct_only: whether only prompts that the model answers correctly are used.
        accuracy: of the model on the task, where it is known.
        said: further attributes of the results, such as the command.

    Returns:
        `/clock/heads` (over pair and node, as `head_effects` and `head_classes`),
        `/clock/validation`, `/clock/curves/heads` and `/clock/curves/mlps` (`mechnum.cumulative`),
        `/clock/mlps` (`mlp_stages`), `/clock/sums` (total and direct effect of attention and MLPs,
        summed over layers), `/published`; `/circuit`, `/effects` (of its edges, over pair),
        `/faithfulness` and `/prompts`. A net without MLPs has no groups of them.
        `mechnum.patching.circuit.results.circuit_of(tree["circuit"])` gives the `Circuit`.

    Raises:
        MechnumError: where the model cannot read or do the task, there are too few pairs for two
            halves or too few numbers for the fits, and on impossible sizes.
    """
    for name, size in (("n_heads", n_heads), ("n_mlps", n_mlps), ("n_edges", n_edges)):
        positive_integer(name, size)
    check_n_mixed(n_mixed or 0)
    task = task or parse(model.default_task or "addition")
    accuracy = accuracy or task.accuracy(model)
    if not {"a", "b"} <= accuracy.variables.keys():
        raise MechnumError(
            f"{task.name} has one operand, and a clock adds two: use addition or modular_addition:P"
        )
    answered = accuracy if correct_only else None
    pairs = task.pairs_at_most(model, n_pairs, "any", seed, correct_only, answered)
    if len(pairs) < 4:
        raise MechnumError(
            f"{len(pairs)} pairs are too few: half of them choose and half are measured, give 4"
        )
    chosen_on, tested_on = pairs.split(seed=seed)
    periods = tuple(periods or default_periods(model, task, accuracy.variables["a"]))
    helix = Helix(periods, linear=not isinstance(task, ModularAddition))
    prompts = sample_prompts(task.prompts(model), seed=seed, accuracy=answered)
    fits = Fits(prompts, helix, folds, seed)

    ranked = {kind: _ranked(model, chosen_on, kind, metric) for kind in _kinds(model)}
    heads = ranked["head"]["node"].values[:n_heads].tolist()
    curves = {
        f"{kind}s": cumulative(
            model, tested_on, scores["node"].values.tolist(), scores, metric=metric, seed=seed
        )
        for kind, scores in ranked.items()
    }
    nodes = [parse_node(name) for name in heads]
    measured, values = head_effects(model, tested_on, nodes, fits, metric)
    mixed = round(MIXED * len(nodes)) if n_mixed is None else n_mixed
    classes = head_classes(measured, mixed, seed)
    validation = joint_validation(
        model, tested_on, classes, values, curves["heads"]["whole"], metric, seed
    )
    parts = {
        "/clock/heads": measured.assign(chosen_by=ranked["head"][: len(heads)]).merge(classes),
        "/clock/validation": validation,
        **{f"/clock/curves/{name}": curve for name, curve in curves.items()},
        "/clock/sums": _sums(model, tested_on, metric),
    }
    if model.spec.d_mlp:
        parts["/clock/mlps"] = mlp_stages(model, tested_on, fits, metric, seed)
        nodes += [parse_node(name) for name in ranked["mlp"]["node"].values[:n_mlps]]
    circuit, edges = _circuit(model, chosen_on, tested_on, nodes, n_edges, metric, seed)
    tree = results(
        model,
        tested_on,
        edges,
        seed,
        periods=", ".join(f"{period:g}" for period in periods),
        linear=str(helix.linear),
        folds=folds,
        n_fit=sum(map(len, prompts)),
        n_mixed=mixed,
        n_pairs_found_on=len(chosen_on),
        n_edges=len(circuit),
        accuracy=accuracy.share,
        n_prompts=len(accuracy),
        answered="correctly" if correct_only else "all",
        template=task.form(model),
        **said,
    )
    kept = faithfulness(model, tested_on, circuit, metric, seed=seed)
    parts |= {
        "/circuit": circuit_results(circuit, model.spec),
        "/files": circuit_files(circuit, model.spec),
        "/effects": edges,
    }
    measured = xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=tree.attrs),
            **{path: _with(one, "k_for") for path, one in parts.items()},
            "/faithfulness": kept.drop_attrs(deep=False),
            "/prompts": tree["prompts"].to_dataset(),
        }
    )
    return with_published(measured, "trigonometry", "clock", model)


def _with(measured: xr.Dataset, *attributes: str) -> xr.Dataset:
    """With these attributes alone: the others are the root's, and some are no netCDF."""
    kept = {name: measured.attrs[name] for name in attributes if name in measured.attrs}
    return measured.drop_attrs(deep=False).assign_attrs(kept)


def _kinds(model: Model) -> list[NodeKind]:
    return ["head", "mlp"] if model.spec.d_mlp else ["head"]


def _ranked(model: Model, pairs: Pairs, kind: NodeKind, metric: MetricName) -> xr.DataArray:
    """Mean total effect of all nodes of a kind, the largest first."""
    nodes = all_nodes(kind, model.spec)
    total = effects(model, pairs, nodes, metric=metric, estimands=("total",))["total"].mean("pair")
    return total[np.argsort(-total.values, kind="stable")]


def _sums(model: Model, pairs: Pairs, metric: MetricName) -> xr.Dataset:
    """Total and direct effect over (pair, kind), summed over layers."""
    kinds = ["attn", "mlps"] if model.spec.d_mlp else ["attn"]
    found = [effects(model, pairs, kind, metric=metric)[["total", "direct"]] for kind in kinds]
    summed = [one.sum("layer").drop_attrs(deep=False) for one in found]
    return xr.concat(summed, "kind").assign_coords(kind=kinds).transpose("pair", "kind")


def _circuit(
    model: Model,
    chosen_on: Pairs,
    tested_on: Pairs,
    nodes: Sequence[Node],
    n_edges: int,
    metric: MetricName,
    seed: int,
) -> tuple[Circuit, xr.Dataset]:
    """The edges with the largest effect among embedding, nodes and logits."""
    receivers: dict[Node, None] = {}
    for node in nodes:
        if node.kind == "mlp":
            receivers[Node("mlp_in", node.layer)] = None
            continue
        group = (node.index or 0) // model.spec.heads_per_group
        receivers |= {Node("q", node.layer, node.index): None}
        receivers |= {Node(kind, node.layer, group): None for kind in ("k", "v")}
    receivers[Node("logits")] = None
    found = path_effects(
        model, chosen_on, [Node("embed"), *nodes], list(receivers), metric=metric, seed=seed
    )
    scores = found["effect"].mean("pair")
    chosen = Circuit.from_scores(scores, n=min(n_edges, int(np.isfinite(scores).sum())))
    return with_exact_effects(model, tested_on, chosen, metric, seed=seed, found_by="exact")
