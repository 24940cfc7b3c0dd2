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
    tables = []
    for name in names:
        table = mean_interval(effects[name].transpose("pair", *node), seed=seed)
        table = table.rename(mean=name, low=f"{name}_low", high=f"{name}_high")
        tables.append(table if name == names[-1] else table.drop_vars("n"))
    return _tidy(xr.merge(tables, compat="override", join="exact"), node)


def score_frame(site: xr.Dataset, seed: int = 0) -> pd.DataFrame:
    """One row for each layer and method at one site: causal `score` with interval, held-out `r2`.

    `site` has `score` (layer, method, pair) or `r2` (layer, method), or both.
    """
    tables = []
    if "score" in site:
        score = mean_interval(site["score"].transpose("pair", "layer", "method"), seed=seed)
        tables.append(score.rename(mean="score", low="score_low", high="score_high"))
    if "r2" in site:
        tables.append(site[["r2"]].transpose("layer", "method"))
    if not tables:
        raise MechnumError("a helix site has neither score nor r2: give one of them")
    return _tidy(xr.merge(tables, compat="override", join="exact"), ["layer", "method"])


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
