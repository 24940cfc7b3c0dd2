"""Tidy tables of steering: every layer and strength, the best ones, and what the probes read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

RANDOM = "random directions"
# In the order of pages, with what each is.
KINDS = {
    "probe": "the state that the probe is surest shows the right answer, among likely states",
    "probe, any state": "the same among all states as far from the mean",
    "class means": "the mean training state of the right answer",
    "helix": "the state that a helix of the answers has at the right answer",
    "decoded": "the probe's vector of the number that the probe reads; no right answer is used",
    "other value": "the probe's vector of another number than the right answer",
    "mean state": "the mean training state, whatever the number",
    RANDOM: "random directions from the mean state, as long as the probe's vectors; mean of draws",
}
SHARES = ("repaired", "broken")


def steering_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each kind of vector, layer and strength: `repaired` and `broken` with their ends,
    and `followed`, the share of all prompts that answer what they are steered towards; of random
    directions the least and the largest draw are the ends."""
    found = results["steering"].to_dataset()
    ends = [f"{share}{end}" for share in SHARES for end in ("", "_low", "_high")]
    table = found[ends].assign(followed=found["followed"].mean("prompt"))
    known = table.drop_vars("oracle", errors="ignore").to_dataframe().reset_index()
    random = xr.Dataset()
    for share in SHARES:
        drawn = found[f"random_{share}"]
        random[share] = drawn.mean("draw")
        random[f"{share}_low"], random[f"{share}_high"] = drawn.min("draw"), drawn.max("draw")
    chance = random.to_dataframe().reset_index().assign(vector=RANDOM, followed=np.nan)
    frame = pd.concat([known, chance[known.columns]], ignore_index=True)
    # No number is what the mean state stands for.
    frame.loc[frame["vector"] == "mean state", "followed"] = np.nan
    order = {name: place for place, name in enumerate(KINDS)}
    return frame.sort_values(
        "vector", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )


def best_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each kind of vector at its chosen layer and strength, with the null's share and
    central 95 %."""
    best = results["best"].to_dataset()
    random = best["random_repaired"]
    table = best.drop_dims("draw").assign(
        random=random.mean("draw"),
        random_low=random.quantile(0.025, "draw", keep_attrs=False).drop_vars("quantile"),
        random_high=random.quantile(0.975, "draw", keep_attrs=False).drop_vars("quantile"),
        random_broken=best["random_broken"].mean("draw"),
    )
    single = [name for name in table.data_vars if table[name].dims == ("vector",)]
    return table[single].to_dataframe().reset_index()


def reading_frame(results: xr.DataTree) -> pd.DataFrame:
    """By layer: how often the probe reads the right answer, where the model is right and wrong."""
    found = results["steering"].to_dataset()
    read = found["decoded"] == found["answer"]
    before = found["right_before"]
    return pd.DataFrame(
        {
            "layer": found["layer"].values,
            "right answers": read.where(before).mean("prompt").values,
            "wrong answers": read.where(~before).mean("prompt").values,
        }
    )


def vector_frame(results: xr.DataTree) -> pd.DataFrame:
    """By layer and kind of vector: the share that the probe reads as their number, mean length from
    the mean state, cosine with the class means."""
    found = results["vectors"].to_dataset()[["read", "length", "cosine"]]
    return found.to_dataframe(dim_order=["layer", "vector"]).reset_index()
