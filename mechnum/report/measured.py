"""Tables of what was measured: one row for each node or edge, with its interval and q-value."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.report import reading, words

ESTIMANDS = ("total", "direct", "indirect", "direct_frozen", "effect")
# How the nodes of a table are called; lists of nodes bring their names.
_NAMES = {
    "heads": "head {layer}.{head}",
    "attn": "attn {layer}",
    "mlps": "mlp {layer}",
    "neurons": "neuron {layer}.{neuron}",
    "q": "q {layer}.{head}",
    "k": "k {layer}.g{group}",
    "v": "v {layer}.g{group}",
    "kv": "kv {layer}.g{group}",
    "pattern": "pattern {layer}.{head}",
    "residual": "resid_post {layer}",
}


def node_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each node (and position): `node`, its coordinates, and the statistics.

    Columns: `node`; `layer`, `head`, `group`, `neuron`, `position` where the table has them; for
    each of total, direct, indirect and direct_frozen the mean over pairs, the ends of its interval
    and its q-value (`total`, `total_low`, `total_high`, `total_q`, ...); `n` pairs.
    """
    frame = _frame(results)
    if "node" not in frame:
        kind = str(results.attrs.get("nodes"))
        if kind not in _NAMES:
            raise MechnumError(
                f"nodes {kind!r} have no names: give a list of nodes, or one of {', '.join(_NAMES)}"
            )
        dims = [name for name in ("layer", "head", "group", "neuron") if name in frame]
        names = [
            _NAMES[kind].format(**dict(zip(dims, row, strict=True)))
            for row in frame[dims].itertuples(index=False, name=None)
        ]
        if kind == "residual":
            names = ["embed" if name.endswith(" -1") else name for name in names]
        frame["node"] = names
    return frame[["node", *frame.columns.drop("node")]]


def edge_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each edge (and position): `sender`, `receiver`, and the statistics.

    Columns as in `node_frame`, for the variable `effect`. Impossible edges are rows with NaN.
    """
    frame = _frame(results)
    return frame[["sender", "receiver", *frame.columns.drop(["sender", "receiver"])]]


def estimands(frame: pd.DataFrame) -> list[str]:
    """The estimands that a frame holds."""
    return [name for name in ESTIMANDS if name in frame]


def sure(frame: pd.DataFrame, estimand: str) -> pd.DataFrame:
    """The rows whose effect is not 0, at a false discovery rate of 5 %."""
    return frame[frame[f"{estimand}_q"] < words.SURE]


def _frame(results: xr.DataTree) -> pd.DataFrame:
    if "statistics" not in results.children:
        raise MechnumError(
            "the results hold no statistics: make them with mechnum.patching.results"
        )
    tables = {name: results["statistics"][name].to_dataset() for name in _ordered(results)}
    columns: dict[str, xr.DataArray] = {}
    for name, table in tables.items():
        columns |= {name: table["mean"], f"{name}_low": table["low"], f"{name}_high": table["high"]}
        columns[f"{name}_q"] = table["q"]
    first = next(iter(tables.values()))
    frame = xr.Dataset({**columns, "n": first["n"]})
    dims = [str(dim) for dim in first["mean"].dims]
    return frame.to_dataframe(dim_order=dims).reset_index()


def _ordered(results: xr.DataTree) -> Sequence[str]:
    there = [str(name) for name in results["statistics"].children]
    return [name for name in ESTIMANDS if name in there]


def base_metrics(results: xr.DataTree) -> dict[str, tuple[float, float, float]]:
    """Mean metric of the unpatched runs with its interval: {"clean": ..., "corrupt": ...}."""
    from mechnum.report.intervals import mean_interval

    found = {}
    for group in ("nodes", "edges"):
        dataset = reading.group(results, group)
        for side in ("clean", "corrupt"):
            if dataset is not None and f"{side}_metric" in dataset:
                table = mean_interval(dataset[f"{side}_metric"], seed=reading.seed(results))
                ends = (table["mean"], table["low"], table["high"])
                found[side] = tuple(float(value) for value in ends)
    return found
