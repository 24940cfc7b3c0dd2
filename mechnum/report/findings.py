"""What a trace found: its effect and helix tables, and sentences about them."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from mechnum.report import reading, words
from mechnum.report.frames import effect_frame, node_names, ranked, score_frame

KINDS = {"heads": "Heads", "attn": "Attention layers", "mlps": "MLPs"}
_SINGULAR = {"heads": "head", "attn": "attention layer", "mlps": "MLP"}
_NAMED = 3  # Nodes that a sentence names.


def effect_frames(results: xr.DataTree) -> dict[str, pd.DataFrame]:
    """The effect frames that the trace holds, by kind: "heads", "attn", "mlps"."""
    frames = {}
    for kind in KINDS:
        dataset = reading.group(results, f"effects/{kind}")
        if dataset is not None:
            frames[kind] = effect_frame(dataset, reading.seed(results))
    return frames


def site_frames(results: xr.DataTree) -> dict[str, pd.DataFrame]:
    """The score frames of the helix, by site."""
    return {
        site: score_frame(dataset, reading.seed(results))
        for site, dataset in reading.helix_sites(results).items()
    }


def best_helix(sites: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """For each site the layer where the helix causes most (or fits best, without scores).

    Columns: site, layer, `score` with interval and `r2` of the helix, and at the same layer
    `full_score` of the true state and `permuted_score` of a helix of shuffled numbers; those that
    are not known are left out.
    """
    rows = []
    for site, frame in sites.items():
        by = "score" if "score" in frame else "r2"
        helix = ranked(frame[frame["method"] == "helix"], by)
        if helix.empty:
            continue
        best = frame.loc[helix[by].idxmax()]
        row = {"site": site, **best.drop(["method", "n"], errors="ignore").to_dict()}
        full = frame[(frame["method"] == "full") & (frame["layer"] == best["layer"])]
        if by == "score" and len(full):
            row["full_score"] = float(full["score"].iloc[0])
        dealt = frame[(frame["method"] == "permuted") & (frame["layer"] == best["layer"])]
        if by == "score" and len(dealt):
            row["permuted_score"] = float(dealt["score"].iloc[0])
        rows.append(row)
    return pd.DataFrame(rows)


def accuracy_sentence(results: xr.DataTree) -> str:
    """How many prompts the model answers correctly; empty where the trace does not say."""
    attrs = results.attrs
    if "accuracy" not in attrs:
        return ""
    share = float(attrs["accuracy"])
    if "n_prompts" not in attrs:
        return f"The model answers {words.percent(share)} of the prompts correctly."
    count = int(attrs["n_prompts"])
    right = round(share * count)
    return f"The model answers {right:,} of {count:,} prompts correctly ({words.percent(share)})."


def effect_points(frames: dict[str, pd.DataFrame]) -> list[tuple[str, str]]:
    """For each kind of node the largest total and direct effects whose interval excludes 0.

    Pairs of the kind's name and a sentence. The last pair is about sums over layers.
    """
    points = []
    for kind, frame in frames.items():
        parts = [
            f"largest {effect} effects {_largest(frame, kind, effect)}"
            for effect in ("total", "direct")
            if effect in frame
        ]
        points.append((KINDS[kind], f"{'; '.join(parts)}."))
    sums = [
        f"{KINDS[kind]} {_sums(frames[kind])}"
        for kind in ("mlps", "attn")
        if kind in frames and len(frames[kind]) > 1
    ]
    if sums:
        points.append(("Summed over layers", f"{'; '.join(sums)}."))
    return points


def helix_points(sites: dict[str, pd.DataFrame]) -> list[tuple[str, str]]:
    """For each site how well the best layer's helix stands in for the state.

    Pairs of the site's name and a sentence.
    """
    points = []
    for row in best_helix(sites).to_dict("records"):
        parts = []
        if pd.notna(row.get("r2")):
            parts.append(f"explains R² = {words.number(row['r2'])} of the states")
        if pd.notna(row.get("score")):
            score = words.interval(row["score"], row["score_low"], row["score_high"])
            part = f"has a causal score of {score}"
            if pd.notna(row.get("full_score")):
                part += f", where the true state has {words.number(row['full_score'], sign=True)}"
            if pd.notna(row.get("permuted_score")):
                dealt = words.number(row["permuted_score"], sign=True)
                part += f" and the helix of shuffled numbers {dealt}"
            parts.append(part)
        text = f"{words.after_layer(int(row['layer']))} it {words.listed(parts)}."
        points.append((f"Helix at {row['site']}", text))
    return points


def joined(points: list[tuple[str, str]]) -> str:
    """Points as running text."""
    return " ".join(f"{name}: {text}" for name, text in points)


def _largest(frame: pd.DataFrame, kind: str, effect: str) -> str:
    sure = frame[(frame[f"{effect}_low"] > 0) | (frame[f"{effect}_high"] < 0)]
    top = ranked(sure, effect, _NAMED)
    if top.empty:
        return f"none (no {_SINGULAR[kind]}'s interval excludes 0)"
    named = [
        f"{name} ({words.interval(*values)})"
        for name, values in zip(
            node_names(top, kind),
            top[[effect, f"{effect}_low", f"{effect}_high"]].to_numpy(dtype=float),
            strict=True,
        )
    ]
    return words.listed(named)


def _sums(frame: pd.DataFrame) -> str:
    parts = [
        f"{effect} {words.number(float(frame[effect].sum()), sign=True)}"
        for effect in ("total", "direct")
        if effect in frame
    ]
    return ", ".join(parts)
