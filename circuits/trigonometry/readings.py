"""The figures of Kantamneni & Tegmark 2025, read from the results of this circuit's steps."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from mechnum.circuits.running.values import values


def accuracy(results: xr.DataTree) -> float:
    """The share of all prompts that are answered correctly."""
    return float(results.attrs["accuracy"])


def largest_score(results: xr.DataTree, position: str, method: str) -> float:
    """The largest causal score over layers, of the mean over pairs."""
    if position not in results["helix"].children:
        return np.nan
    return _largest(values(results, f"helix/{position}", "score"), method)


def largest_of_variables(results: xr.DataTree, method: str) -> float:
    """The same at the last token, of a fit to the variables that `method` names."""
    if "variables" not in results.children:
        return np.nan
    return _largest(values(results, "variables", "score"), method)


def line_of_numbers(results: xr.DataTree) -> float:
    """R² of a line through the first principal component of the states of 0 to 99, layer 0."""
    if "structure" not in results.children:
        return np.nan
    return float(results["structure"].attrs["pc1_r2"])


def needed(results: xr.DataTree, kind: str, share: str) -> float:
    """How many of the heads or MLPs reach a share of the effect of all of them."""
    path = f"clock/curves/{kind}"
    if kind not in results["clock/curves"].children:
        return np.nan
    k = json.loads(results[path].attrs["k_for"]).get(share)
    return np.nan if k is None else float(k)


def share_of_first(results: xr.DataTree, k: int) -> float:
    """The share of all heads' effect that the first k have together."""
    shares = values(results, "clock/curves/heads", "share")
    return float(shares.sel(k=k)) if k in shares["k"] else np.nan


def heads_of_class(results: xr.DataTree, name: str) -> float:
    """How many of the classified heads are of a class."""
    return float(np.count_nonzero(values(results, "clock/heads", "class").values == name))


def validated(results: xr.DataTree, n_mixed: int | None = None) -> float:
    """The share of the attention effect that heads keep with their class's content alone; their
    true outputs' without a number of mixed heads."""
    shares = values(results, "clock/validation", "share")
    name = "true" if n_mixed is None else f"m={n_mixed}"
    return float(shares.sel(set=name)) if name in shares["set"] else np.nan


def summed(results: xr.DataTree, kind: str, effect: str) -> float:
    """Total or direct effect of attention layers or MLPs, summed over layers."""
    effects = values(results, "clock/sums", effect).mean("pair")
    return float(effects.sel(kind=kind)) if kind in effects["kind"] else np.nan


def direct_of_all(results: xr.DataTree) -> float:
    """Direct effect of all attention layers and MLPs."""
    return float(values(results, "clock/sums", "direct").mean("pair").sum("kind"))


def largest_mlp(results: xr.DataTree) -> float:
    """The largest total effect of an MLP."""
    if "mlps" not in results["clock"].children:
        return np.nan
    return float(values(results, "clock/mlps", "total").mean("pair").max())


def of_mlp(results: xr.DataTree, layer: int, name: str) -> float:
    """A share of an MLP's total effect: `helix_share` or `direct_share`."""
    shares = values(results, "clock/mlps", name)
    node = f"mlp {layer}"
    return float(shares.sel(node=node)) if node in shares["node"] else np.nan


def of_head(results: xr.DataTree, head: str, name: str) -> float:
    """`total`, the mean effect of a classified head, or `direct_share`."""
    of_heads = values(results, "clock/heads", name)
    if head not in of_heads["node"]:
        return np.nan
    own = of_heads.sel(node=head)
    return float(own.mean("pair") if "pair" in own.dims else own)


def errors_of(results: xr.DataTree, error: int) -> float:
    """The share of the numeric errors that are off by this much; NaN without errors."""
    counts = values(results, "errors", "count")
    total = float(counts.sum())
    if not total:
        return np.nan
    return float(counts.sel(error=error)) / total if error in counts["error"] else 0.0


def negative_errors(results: xr.DataTree) -> float:
    """The share of the numeric errors that are too small."""
    counts = values(results, "errors", "count")
    total = float(counts.sum())
    negative = counts.where(counts["error"] < 0, 0)
    return float(negative.sum()) / total if total else np.nan


def n_wrong(results: xr.DataTree, numeric: bool) -> float:
    """How many answers are wrong, or wrong and numbers."""
    if numeric:
        return float(values(results, "errors", "count").sum())
    correct = values(results, "prompts", "correct")
    return float(correct.size - int(correct.sum()))


def kept_neurons(results: xr.DataTree, n: int) -> float:
    """Accuracy where all but the n best neurons are at their mean."""
    return _accuracy_of(results, "kept", "order", "given", n)


def fitted_neurons(results: xr.DataTree, n: int) -> float:
    """The same where the n best neurons have the values of their fit."""
    return _accuracy_of(results, "replaced", "content", "fit", n)


def direct_and_sum(results: xr.DataTree) -> float:
    """R² of the MLPs' share of direct effect and their neurons' share of waves of a + b."""
    return float(results["mlps"].attrs["r2"]) if "mlps" in results.children else np.nan


def _accuracy_of(results: xr.DataTree, group: str, dim: str, value: str, k: int) -> float:
    if group not in results.children:
        return np.nan
    table = values(results, group, "accuracy").sel({dim: value})
    return float(table.sel(k=k)) if k in table["k"] else np.nan


def _largest(scores: xr.DataArray, method: str) -> float:
    # The paper patches the layers' outputs, and no embedding.
    means = scores.mean("pair").sel(layer=scores["layer"] >= 0)
    return float(means.sel({"method": method}).max()) if method in means["method"] else np.nan
