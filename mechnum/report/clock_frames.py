"""What a clock holds, as tables: classes of heads, stages of MLPs, curves, validation."""

from __future__ import annotations

import json

import pandas as pd
import xarray as xr

from mechnum.report import reading

CLASSES = ("a,b", "a+b", "mixed", "unclear")
# Where the nodes of a class or stage stand in the picture.
COLUMNS = ("embed", "move", "compute", "read out", "logits")
_COLUMN_OF = {
    "a,b": "move",
    "mixed": "move",
    "unclear": "move",
    "a+b": "read out",
}
LEVELS = ("0.5", "0.7", "0.8", "0.9")


def heads_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each head, in the order of the rank: its class, how sure it is, and why.

    Columns: `node`, `class`, `sure` (the share of resamples that give this class), one column for
    the share of each class, `c_ab` and `c_sum` with their ends, `direct_share`, means over pairs of
    `total`, `direct` and what each content does, the published c_ab and c_sum, and `status`.
    """
    heads = results["clock/heads"].to_dataset()
    frame = pd.DataFrame({"node": heads["node"].values, "class": heads["class"].values})
    shares = heads["class_share"].transpose("node", "class_name").to_pandas()
    frame["sure"] = [
        float(shares.loc[node, own])
        for node, own in zip(frame["node"], frame["class"], strict=True)
    ]
    for name in CLASSES:
        frame[f"share {name}"] = shares[name].to_numpy()
    for name in ("c_ab", "c_sum"):
        for end in ("", "_low", "_high"):
            frame[name + end] = heads[name + end].values
    frame["direct_share"] = heads["direct_share"].values
    for name in ("total", "direct"):
        frame[name] = heads[name].mean("pair").values
    for name in ("fitted", "kept"):
        for content in heads["content"].values:
            frame[f"{name} {content}"] = heads[name].sel(content=content).mean("pair").values
    for name in ("published_c_ab", "published_c_sum"):
        frame[name] = heads[name].values
    frame["status"] = heads["status"].values
    return frame


def mlps_frame(results: xr.DataTree) -> pd.DataFrame | None:
    """One row for each MLP: its stage, ratios with their ends, and status; None without MLPs."""
    mlps = reading.group(results, "clock/mlps")
    if mlps is None:
        return None
    frame = pd.DataFrame({"node": mlps["node"].values, "stage": mlps["stage"].values})
    frame["layer"] = [int(str(name).split()[-1]) for name in frame["node"]]
    for name in ("direct_share", "helix_share", "mean_share", "permuted_share"):
        for end in ("", "_low", "_high"):
            frame[name + end] = mlps[name + end].values
    for name in ("total", "direct"):
        frame[name] = mlps[name].mean("pair").values
    frame["status"] = mlps["status"].values
    return frame


def curve_frames(results: xr.DataTree) -> dict[str, pd.DataFrame]:
    """Share of the whole effect by number of nodes, with its ends, for "heads" and "mlps"."""
    frames = {}
    for kind in ("heads", "mlps"):
        curve = reading.group(results, f"clock/curves/{kind}")
        if curve is not None:
            names = ("share", "low", "high", "added")
            frames[kind] = pd.DataFrame(
                {"k": curve["k"].values, **{name: curve[name].values for name in names}}
            )
    return frames


def sizes_for(results: xr.DataTree, kind: str) -> dict[str, int | None]:
    """How many nodes first reach each of the levels."""
    curve = reading.group(results, f"clock/curves/{kind}")
    reached = {} if curve is None else json.loads(str(curve.attrs.get("k_for", "{}")))
    return {level: reached.get(level) for level in LEVELS}


def validation_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each set that was patched together."""
    found = results["clock/validation"].to_dataset()
    names = [
        f"{share}{end}" for share in ("share", "share_of_true") for end in ("", "_low", "_high")
    ]
    return pd.DataFrame(
        {
            "set": found["set"].values,
            "effect": found["effect"].mean("pair").values,
            **{name: found[name].values for name in names},
        }
    )


def column_of(name: str, classes: dict[str, str], stages: dict[str, str]) -> str:
    """The column of a node of the circuit; groups of keys and values stand with the heads."""
    if name in ("embed", "logits"):
        return name
    if name in stages:
        return "read out" if stages[name] == "read out" else "compute"
    return _COLUMN_OF.get(classes.get(name, "unclear"), "move")
