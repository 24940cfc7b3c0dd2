"""Figures that papers published, beside what was measured here."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import xarray as xr

# Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5: GPT-J, addition of 0 to 99, 100 pairs.
_HEADS_FOR = {"0.5": 8, "0.7": 13, "0.8": 17, "0.9": 31}
_MLPS_FOR = {"0.7": 3, "0.8": 4, "0.9": 6, "0.95": 11, "0.99": 15}
_CLASSES = {"a,b": 11, "a+b": 5, "mixed": 4}
_SUMS = {"attn": (5.40, 1.20), "mlps": (20.21, 8.20)}


def clock_figures(measured: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """What was published of GPT-J's clock, beside the same of this model.

    The two are other models, prompts and metrics, so that agreement is of the shape at most.

    Args:
        measured: groups of `mechnum.trace_clock` by path, with their attributes.

    Returns:
        `published` and `measured` over quantity; NaN where there is no such number.
    """
    rows: list[tuple[str, float, float]] = []
    for kind, levels in (("heads", _HEADS_FOR), ("mlps", _MLPS_FOR)):
        curve = measured.get(f"/clock/curves/{kind}")
        reached = {} if curve is None else json.loads(curve.attrs["k_for"])
        name = "heads" if kind == "heads" else "MLPs"
        of = "attention" if kind == "heads" else "MLP"
        rows += [
            (f"{name} for {float(level):.0%} of the {of} effect", k, _number(reached.get(level)))
            for level, k in levels.items()
        ]
    heads = measured["/clock/heads"]
    rows += [
        (f"heads of class {name}", count, float((heads["class"].values == name).sum()))
        for name, count in _CLASSES.items()
    ]
    validation = measured["/clock/validation"]
    shares = validation["share"].to_series()
    mixed = f"m={int(heads['class'].isin(['mixed']).sum())}"
    rows += [
        ("share of the attention effect by classes, none mixed", 0.71, shares["m=0"]),
        ("share of the attention effect by classes, mixed as above", 0.79, shares[mixed]),
        ("share of the attention effect by the heads' true outputs", 0.834, shares["true"]),
    ]
    sums = measured["/clock/sums"].mean("pair")
    for kind, (total, direct) in _SUMS.items():
        there = kind in sums["kind"].values
        for name, value in (("total", total), ("direct", direct)):
            own = float(sums[name].sel(kind=kind)) if there else np.nan
            what = {"attn": "attention", "mlps": "MLPs"}[kind]
            rows.append((f"{name} effect of {what}, summed over layers", value, own))
    names, published, own = zip(*rows, strict=True)
    return xr.Dataset(
        {"published": ("quantity", list(published)), "measured": ("quantity", list(own))},
        {"quantity": list(names)},
    )


def _number(k: int | None) -> float:
    return np.nan if k is None else float(k)
