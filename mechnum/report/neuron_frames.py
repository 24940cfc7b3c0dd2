"""What a neuron report holds, as tables and maps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.report import reading
from mechnum.report.maps import Maps

MOST_MAPS = 100  # Rows of the table whose maps a page carries: about 13 kB for each map.
_VIEWS = {"activation": "activation", "pre": "pre-activation", "logit": "logit of the answer"}
STATE_NAMES = {"pre": "pre-activation", "activation": "activation"}


def neuron_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each described neuron, in the order of the rank, with every column."""
    table = results["neurons"].to_dataset()
    order = ["node", "layer", "neuron", *table.data_vars]
    return table.to_dataframe().reset_index()[order]


def shown_frame(results: xr.DataTree) -> pd.DataFrame:
    """The columns of the page's table: what a reader sorts and filters by."""
    frame = neuron_frame(results)
    names = {
        "layer": "layer",
        "neuron": "neuron",
        "total": "total",
        "total_q": "q",
        "direct": "direct",
        "t_in": "T_in",
        "t_out": "T_out",
        "sum_share": "a+b_share",
        "r2": "R²",
        "heuristics": "heuristics",
        "formula": "fit",
        "verdict pre": "better_for_pre",
        "verdict activation": "better_for_activation",
        "total_low": "total_low",
        "total_high": "total_high",
        "direct_low": "direct_low",
        "direct_high": "direct_high",
        "direct_q": "direct_q",
        "estimate": "estimate",
        "nrmse": "NRMSE",
        "no_period": "no_period",
    }
    # Without a+b there is nothing to say about it.
    frame = frame.dropna(axis="columns", how="all")
    return frame[[name for name in names if name in frame]].rename(columns=names)


def neuron_maps(results: xr.DataTree) -> Maps | None:
    """The operand maps of the first neurons; None where prompts have one operand."""
    maps = results["maps"].to_dataset().isel(node=slice(MOST_MAPS))
    if not {"a", "b"} <= set(maps.coords):
        return None
    a, rows = np.unique(maps["a"].values, return_inverse=True)
    b, columns = np.unique(maps["b"].values, return_inverse=True)
    views = {}
    for name, title in _VIEWS.items():
        grid = np.full((maps.sizes["node"], len(a), len(b)), np.nan)
        grid[:, rows, columns] = maps[name].transpose("node", "prompt").values
        views[title] = grid
    return Maps(
        column="map",
        names=[f"operand map of {name}" for name in maps["node"].values],
        views=views,
        x=b.tolist(),
        y=a.tolist(),
        titles=("b", "a"),
    )


def layer_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each layer: how much of the best 1 % of all neurons it has, by each ranking."""
    share = results["rank/neurons"]["top_share"].transpose("layer", "ranking").to_pandas()
    return share.reset_index()


def accuracy_frame(results: xr.DataTree) -> pd.DataFrame | None:
    """Accuracy with the best k neurons: columns curve, k, accuracy and the ends of its interval.

    The random orders are one curve, their mean, with the lowest and highest end of any.
    """
    kept, replaced = reading.group(results, "kept"), reading.group(results, "replaced")
    if kept is None:
        return None
    parts = [_curve(kept, "order", "given", "kept as they are")]
    if replaced is not None:
        parts += [
            _curve(replaced, "content", "fit", "replaced by their fits"),
            _curve(replaced, "content", "fits of other prompts", "fits of other prompts"),
            _curve(replaced, "content", "fits of other neurons", "fits of other neurons"),
        ]
    drawn = [name for name in kept["order"].values if str(name).startswith("random")]
    if drawn:
        random = kept.sel(order=drawn)
        parts.append(
            pd.DataFrame(
                {
                    "curve": "random neurons kept",
                    "k": random["k"].values,
                    "accuracy": random["accuracy"].mean("order").values,
                    "accuracy_low": random["low"].min("order").values,
                    "accuracy_high": random["high"].max("order").values,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _curve(measured: xr.Dataset, dim: str, name: str, curve: str) -> pd.DataFrame:
    own = measured.sel({dim: name})
    return pd.DataFrame(
        {
            "curve": curve,
            "k": own["k"].values,
            "accuracy": own["accuracy"].values,
            "accuracy_low": own["low"].values,
            "accuracy_high": own["high"].values,
        }
    )


def period_counts(results: xr.DataTree) -> pd.DataFrame | None:
    """How many of the described neurons have each T_in (rows) and each group of T_out (columns)."""
    periods = reading.group(results, "periods")
    if periods is None:
        return None
    counts = periods["count"].transpose("period", "written").to_pandas()
    order = np.argsort(counts.index.to_numpy(dtype=float))
    counts = counts.iloc[order, [*order, len(order)]]
    counts.index = [f"{period:.4g}" for period in counts.index]
    counts.columns = [*counts.index, *counts.columns[len(counts.index) :]]
    return counts


def mlp_frame(results: xr.DataTree) -> pd.DataFrame | None:
    """One row for each MLP: DE/TE with its ends, and the a+b share of its best neurons."""
    mlps = reading.group(results, "mlps")
    if mlps is None:
        return None
    names = {"low": "direct_share_low", "high": "direct_share_high"}
    own = mlps[["direct_share", "low", "high", "sum_share", "n_neurons", "status"]]
    return own.to_dataframe().reset_index().rename(columns=names)


def kind_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each kind of heuristic: how many of the described neurons match one."""
    match = results["heuristics"]["match"]
    counts = match.sum("node").to_series()
    frame = counts.rename("neurons").rename_axis("kind").reset_index()
    frame["neurons"] = frame["neurons"].astype(int)
    some = int(match.any("kind").sum())
    frame.loc[len(frame)] = {"kind": "any", "neurons": some}
    return frame.assign(share=frame["neurons"] / match.sizes["node"])


def knock_out_frame(results: xr.DataTree) -> pd.DataFrame | None:
    """One row for each kind, sort of prompts and control: accuracy with its ends, and n."""
    found = reading.group(results, "knock_out")
    if found is None:
        return None
    frame = found[["accuracy", "low", "high", "n", "n_neurons"]].to_dataframe().reset_index()
    frame = frame.dropna(subset=["accuracy"])
    names = {"heuristic": "their neurons", "random": "random neurons"}
    frame["prompts"] = [
        f"{sort} prompts, {names[str(ablated)]}"
        for sort, ablated in zip(frame["prompts"], frame["ablated"], strict=True)
    ]
    ends = {"low": "accuracy_low", "high": "accuracy_high"}
    return frame.drop(columns="ablated").rename(columns=ends)


def verdict_frame(results: xr.DataTree, state: str) -> pd.DataFrame:
    """One row for each neuron: held-out R² of both descriptions of a state, and the verdict."""
    found = results["adjudication"].to_dataset().sel(of=state)
    columns = {"node": found["node"].values, "verdict": found["verdict"].values}
    for name in found["description"].values:
        own = found.sel(description=name)
        for end in ("", "_low", "_high"):
            columns[f"r2_{name}{end}"] = own[f"r2{end}"].values
        columns[f"parameters_{name}"] = own["n_parameters"].values
    for end in ("", "_low", "_high"):
        columns[f"difference{end}"] = found[f"difference{end}"].values
    return pd.DataFrame(columns)
