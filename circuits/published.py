"""Figures that papers published, beside what was measured here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

# Kantamneni & Tegmark 2025 (arXiv 2502.00873), section 5: GPT-J, addition of 0 to 99, 100 pairs.
_HEADS_FOR = {"0.5": 8, "0.7": 13, "0.8": 17, "0.9": 31}
_MLPS_FOR = {"0.7": 3, "0.8": 4, "0.9": 6, "0.95": 11, "0.99": 15}
_CLASSES = {"a,b": 11, "a+b": 5, "mixed": 4}
_SUMS = {"attn": (5.40, 1.20), "mlps": (20.21, 8.20)}

# The same paper, section 4: largest score over layers of the full state, PCA, helix, circle and
# polynomial at the operand.
_LARGEST_SCORES = {
    "addition": (8.34, 6.13, 7.21, 6.83, 3.09),
    "a-23": (7.45, 6.16, 7.05, 6.52, 2.93),
    "a//5": (5.48, 5.24, 4.55, 4.25, 4.55),
    "1.5a": (7.86, 6.65, 5.16, 4.85, 4.84),
    "a_mod_2": (0.98, 1.00, 1.11, 1.12, 0.88),
    "x-a=0": (6.70, 4.77, 4.56, 4.34, 2.98),
}
# Zhou et al. 2024 (arXiv 2406.03445), table 1: a GPT-2-XL that was fine-tuned to add.
_ACCURACY_WITHOUT = {
    ("both", "low removed"): 0.0594,
    ("both", "high removed"): 0.2708,
    ("attn", "low removed"): 0.9912,
    ("attn", "high removed"): 0.7836,
    ("mlp", "low removed"): 0.3589,
    ("mlp", "high removed"): 0.9810,
}


def clock_figures(measured: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """What was published of GPT-J's clock, beside the same of this model.

    The two are other models, prompts and metrics, so that agreement is of the shape at most.

    Args:
        measured: groups of `mechnum.trace_clock` by path, with their attributes.

    Returns:
        `published` and `measured` over quantity; NaN where there is no such number.
    """
    rows: list[tuple[str, float | int, float]] = []
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
    return _table(
        rows,
        of="GPT-J",
        source="Kantamneni & Tegmark 2025, section 5, on the raw logit of the answer",
        measure="on the metric of this page",
    )


def helix_figures(scores: xr.Dataset, task: str) -> xr.Dataset | None:
    """Largest causal scores over layers as shares of the full state's, beside those of GPT-J.

    Shares, since the scores themselves are in logits of another model.

    Args:
        scores: of `mechnum.helix.causal_scores`, with the method "full".
        task: name of the task.

    Returns:
        As `clock_figures`; None for tasks without published figures.
    """
    if task not in _LARGEST_SCORES:
        return None
    largest = scores["score"].mean("pair").max("layer").to_series()
    full, *rivals = _LARGEST_SCORES[task]
    rows = [
        (
            f"{method} / full state, largest over layers",
            score / full,
            largest[method] / largest["full"],
        )
        for method, score in zip(("pca", "helix", "circle", "polynomial"), rivals, strict=True)
        if method in largest
    ]
    return _table(
        rows,
        of="GPT-J",
        source="Kantamneni & Tegmark 2025, section 4, at the operand a, on the raw logit of the "
        "answer, in sample",
        measure="on the metric of this page, each pair by fits that have not seen its numbers "
        "unless the settings say otherwise",
    )


def filter_figures(table: xr.Dataset, d_model: int, task: str) -> xr.Dataset | None:
    """Accuracy without low or high components, beside that of a fine-tuned GPT-2-XL.

    Args:
        table: of `mechnum.fourier.filter_table`.
        d_model: conditions that remove all of these directions measure nothing.
        task: name of the task.

    Returns:
        As `clock_figures`; None for other tasks than addition and where neither was removed.
    """
    if task != "addition":
        return None
    # Random projections are the control.
    accuracy = table["mean"].sel(measure="accuracy")
    accuracy = accuracy[
        ((accuracy["projection"] == "filter") & (accuracy["rank"] < d_model)).values
    ]
    rows, cuts = [], {}
    for modules, band, share in zip(
        accuracy["modules"].values, accuracy["band"].values, accuracy.values, strict=True
    ):
        removed = str(band).split(",")[0]
        place = (str(modules), removed)
        if place in _ACCURACY_WITHOUT:
            what = {"both": "attention and MLPs", "attn": "attention", "mlp": "MLPs"}[place[0]]
            rows.append((f"accuracy, {removed}, {what}", _ACCURACY_WITHOUT[place], float(share)))
            cuts[removed] = str(band).removeprefix(f"{removed}, ")
    if not rows:
        return None
    return _table(
        rows,
        of="GPT-2-XL, fine-tuned",
        source="Zhou et al. 2024, table 1: numbers 0 to 260, cut at component 50 of 520",
        measure="share of the prompts of this page that are answered correctly, cut "
        + " and ".join(cuts.values()),
    )


def _table(
    rows: Sequence[tuple[str, float | int, float]], of: str, source: str, measure: str
) -> xr.Dataset:
    names, published, own = zip(*rows, strict=True)
    return xr.Dataset(
        {"published": ("quantity", list(published)), "measured": ("quantity", list(own))},
        {"quantity": list(names)},
        {"of": of, "source": source, "measure": measure},
    )


def _number(k: int | None) -> float:
    return np.nan if k is None else float(k)
