"""Tidy tables of the results: what figures draw, tables show and downloads hold."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.report.intervals import mean_interval

EFFECTS = ("total", "direct", "indirect")


def effect_frame(effects: xr.Dataset, seed: int = 0) -> pd.DataFrame:
    """One row for each node: `layer` (and `head`), and for each of total, direct and indirect the
    mean over pairs with its interval (`total`, `total_low`, `total_high`, ...), and `n` pairs.

    `effects` has the dimensions (pair, layer) or (pair, layer, head).
    """
    names = _present(effects, EFFECTS)
    node = [dim for dim in ("layer", "head") if dim in effects[names[0]].dims]
    table = xr.Dataset()
    for name in names:
        means = mean_interval(effects[name].transpose("pair", *node), seed=seed)
        renamed = means.rename(mean=name, low=f"{name}_low", high=f"{name}_high")
        table = table.assign(renamed.data_vars)
    # Behind the values rather than between them.
    return _tidy(table[[*(name for name in table.data_vars if name != "n"), "n"]], node)


def score_frame(site: xr.Dataset, seed: int = 0) -> pd.DataFrame:
    """One row for each layer and method at one site: causal `score` with interval, held-out `r2`.

    `site` has `score` (layer, method, pair) or `r2` (layer, method), or both.
    """
    if "score" not in site and "r2" not in site:
        raise MechnumError("a helix site has neither score nor r2: give one of them")
    table = xr.Dataset()
    if "score" in site:
        means = mean_interval(site["score"].transpose("pair", "layer", "method"), seed=seed)
        table = means.rename(mean="score", low="score_low", high="score_high")
    if "r2" in site:
        table = table.assign(r2=site["r2"])
    return _tidy(table, ["layer", "method"])


def ranked(frame: pd.DataFrame, effect: str, top: int | None = None) -> pd.DataFrame:
    """The rows of an effect frame in falling order of the absolute mean `effect`, NaN left out."""
    size = frame[effect].abs().dropna().sort_values(ascending=False, kind="stable")
    return frame.loc[size.index if top is None else size.index[:top]]


def node_names(frame: pd.DataFrame, kind: str) -> list[str]:
    """The nodes of an effect frame as people write them: `2.3` (a head), `MLP 2`, `attention 2`."""
    if "head" in frame:
        return [
            f"{layer}.{head}" for layer, head in zip(frame["layer"], frame["head"], strict=True)
        ]
    prefix = {"mlps": "MLP", "attn": "attention"}.get(kind, kind)
    return [f"{prefix} {layer}" for layer in frame["layer"]]


def _present(effects: xr.Dataset, names: Sequence[str]) -> list[str]:
    present = [name for name in names if name in effects]
    if not present:
        raise MechnumError(
            f"effects hold {list(effects.data_vars)}: give a Dataset with total, direct or indirect"
        )
    return present


def _tidy(table: xr.Dataset, dims: list[str]) -> pd.DataFrame:
    for dim in dims:
        if dim not in table.coords:
            table = table.assign_coords({dim: range(table.sizes[dim])})
    keep = table.reset_coords([name for name in table.coords if name not in dims], drop=True)
    return keep.to_dataframe(dim_order=dims).reset_index()
