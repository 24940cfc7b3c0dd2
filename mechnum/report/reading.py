"""What trees of results hold, read with patience for missing parts.

Those of single measurements are described at `mechnum.patching.results`. A trace is an xarray
DataTree with these groups, each of which may be absent:

- root attributes: model, family, task, template, metric, norm, direction, seed, accuracy,
  n_prompts, versions (JSON), dropped (JSON), and others, which pages show as they are;
- `/prompts`: `a`, `b`, `answer`, `predicted`, `correct` (prompt); `tokens` (position) of an example
  with the coordinate `token` (strings) and the attribute `positions` (JSON {role: position});
- `/errors`: `count` (error), where error = predicted - answer;
- `/effects/heads` (pair, layer, head), `/effects/attn`, `/effects/mlps` (pair, layer);
- `/helix/<site>`: `score` (layer, method, pair), `r2` (layer, method);
- `/helix/planes`: `coordinates` (number, period, axis), `linear` (number);
- `/attention`: `pattern` (layer, head, query, key).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

_SITE_ORDER = ("a", "op", "b", "end")


def group(results: xr.DataTree, path: str) -> xr.Dataset | None:
    """The dataset at `path`, or None where the trace has none there."""
    try:
        node = results[path]
    except KeyError:
        return None
    if not isinstance(node, xr.DataTree) or not node.data_vars:
        return None
    return node.to_dataset()


def attributes(results: xr.DataTree, dataset: xr.Dataset | None = None) -> dict[str, Any]:
    """The root's attributes, overruled by those of `dataset`."""
    said = {**results.attrs, **({} if dataset is None else dataset.attrs)}
    return {str(name): value for name, value in said.items()}


def seed(results: xr.DataTree) -> int:
    """The trace's seed, 0 where it names none; bootstrap intervals are drawn from it."""
    try:
        return abs(int(results.attrs.get("seed", 0)))
    except (TypeError, ValueError):
        return 0


def structured(value: Any) -> Any:
    """An attribute that holds a mapping or list as JSON text, as that mapping or list."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def left_out(
    results: xr.DataTree, names: Mapping[str, str] = MappingProxyType({})
) -> list[tuple[str, str]]:
    """What could not be measured, as points: its name, or that in `names`, and the reason."""
    reasons = structured(results.attrs.get("left_out", {}))
    if not isinstance(reasons, Mapping):
        return []
    return [(f"Left out: {names.get(name, name)}", f"{why}.") for name, why in reasons.items()]


def prompt_frame(results: xr.DataTree) -> pd.DataFrame | None:
    """The variables of all prompts as a table; `predicted` is NaN where no number was predicted.

    The example's tokens are not in it. None where the trace has no prompts.
    """
    prompts = group(results, "prompts")
    if prompts is None:
        return None
    names = [name for name in prompts.data_vars if prompts[name].dims == ("prompt",)]
    if not names:
        return None
    return pd.DataFrame({str(name): prompts[name].values for name in names})


def example_tokens(results: xr.DataTree) -> list[str] | None:
    """The example prompt's tokens as strings; token ids stand in where there is no tokenizer."""
    prompts, attention = group(results, "prompts"), group(results, "attention")
    for dataset in (prompts, attention):
        if dataset is not None and "token" in dataset.variables:
            return [str(token) for token in np.ravel(dataset["token"].values)]
    if attention is not None and attention["pattern"].coords.get("key") is not None:
        keys = attention["pattern"].coords["key"].values
        if keys.dtype.kind in "OUT":
            return [str(token) for token in keys]
    if prompts is not None and "tokens" in prompts:
        tokens = prompts["tokens"]
        first = tokens if tokens.ndim == 1 else tokens[0]
        return [str(token) for token in first.values]
    return None


def example_roles(results: xr.DataTree) -> dict[int, str]:
    """Roles of the example's positions: {0: "a", 1: "op", ...}; several roles are joined."""
    prompts = group(results, "prompts")
    positions = structured(attributes(results, prompts).get("positions", {}))
    roles: dict[int, str] = {}
    if isinstance(positions, Mapping):
        for role, position in positions.items():
            place = int(np.ravel(position)[0])
            roles[place] = f"{roles[place]}, {role}" if place in roles else str(role)
    return roles


def corrupt_tokens(results: xr.DataTree) -> list[str] | None:
    """The tokens of the example's corrupt prompt; None where the results have none."""
    prompts = group(results, "prompts")
    if prompts is None or "corrupt_token" not in prompts.variables:
        return None
    return [str(token) for token in prompts["corrupt_token"].values]


def roles_from_the_end(results: xr.DataTree) -> dict[int, str]:
    """Names of positions that stand equally far from the end in all pairs: {-1: "end", ...}."""
    prompts = group(results, "prompts")
    named = structured(attributes(results, prompts).get("from_the_end", {}))
    return {int(place): str(name) for name, place in named.items()}


def helix_sites(results: xr.DataTree) -> dict[str, xr.Dataset]:
    """The datasets of the helix by site, in the order of the prompt."""
    if "helix" not in results.children:
        return {}
    names = [name for name in results["helix"].children if name != "planes"]
    order = {name: index for index, name in enumerate(_SITE_ORDER)}
    names.sort(key=lambda name: (order.get(name, len(order)), name))
    sites = {name: group(results, f"helix/{name}") for name in names}
    return {name: dataset for name, dataset in sites.items() if dataset is not None}


def error_frame(results: xr.DataTree) -> pd.DataFrame | None:
    """Errors with their counts, as `error` and `count`; None where the trace has no such group."""
    errors = group(results, "errors")
    if errors is None or "count" not in errors:
        return None
    return pd.DataFrame({"error": errors["error"].values, "count": errors["count"].values})
