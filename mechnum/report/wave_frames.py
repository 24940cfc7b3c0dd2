"""Tidy tables of the Fourier lens, of filters and of error signatures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.intervals import wilson
from mechnum.report import words
from mechnum.report.intervals import mean_interval

STAGES = {"resid": "residual", "attn": "attention", "mlp": "MLP"}
MODULES = {"both": "attention & MLPs", "attn": "attention", "mlp": "MLPs", "nothing": "nothing"}


def lens_frame(lens: xr.Dataset) -> pd.DataFrame:
    """One row for each state and frequency: `stage`, `layer`, `frequency`, `period`, and values.

    Values are `share`, `amplitude` with its `standard_error`, `robust_z`, `p` and `outlier`.
    """
    names = [name for name in ("share", "amplitude", "standard_error", "robust_z", "p", "outlier")
             if name in lens]  # fmt: skip
    dims = ["stage", "layer", "frequency"]
    frame = lens[names].reset_coords("period").to_dataframe(dim_order=dims).reset_index()
    # A stage without such a layer.
    frame = frame[frame["amplitude"].notna()].reset_index(drop=True)
    return frame[[*dims, "period", *names]]


def outlier_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a lens frame that stand out, largest share first."""
    if "outlier" not in frame:
        return frame.head(0)
    found = frame[frame["outlier"].astype(bool)].drop(columns="outlier")
    return found.sort_values("share", ascending=False, kind="stable").reset_index(drop=True)


def state_name(stage: str, layer: int) -> str:
    """`attention 3`, `residual after layer 3`, `the embedding`."""
    if stage == "resid":
        return "the embedding" if layer == -1 else f"residual {words.after_layer(layer)}"
    return f"{STAGES.get(stage, stage)} {layer}"


def rebuilt_frame(rebuilt: xr.Dataset, seed: int = 0) -> pd.DataFrame:
    """One row for each ranking and number of frequencies: `accuracy`, its interval, and `n`."""
    means = mean_interval(rebuilt["correct"].astype(float), dim="prompt", seed=seed)
    table = means.rename(mean="accuracy").assign(entered=rebuilt["order"])
    return table.to_dataframe(dim_order=["ranking", "kept"]).reset_index()


def spectrum_frame(logits: xr.Dataset, seed: int = 0) -> pd.DataFrame:
    """One row for each frequency: `period`, mean `amplitude` over prompts, interval, and `n`."""
    means = mean_interval(logits["amplitude"], dim="prompt", seed=seed)
    return means.rename(mean="amplitude").assign_coords(logits["period"].coords)[
        ["amplitude", "low", "high", "n"]
    ].to_dataframe().reset_index()  # fmt: skip


def filter_frame(table: xr.Dataset) -> pd.DataFrame:
    """One row for each condition of the ablation table, means with the ends of their intervals.

    Columns: `band`, `modules`, `projection`, `rank`, and for each measure its mean (`loss`),
    interval (`loss_low`, `loss_high`) and count (`loss_n`).
    """
    columns: dict[str, np.ndarray] = {
        name: table[name].values for name in ("band", "modules", "projection", "rank")
    }
    for measure in table["measure"].values:
        own = table.sel(measure=measure)
        columns[str(measure)] = own["mean"].values
        for end in ("low", "high", "n"):
            columns[f"{measure}_{end}"] = own[end].values
    return pd.DataFrame(columns)


def condition_name(row: pd.Series | dict) -> str:
    """`low removed, below row 50 from attention`, for one row of a filter frame."""
    if row["modules"] == "nothing":
        return "nothing removed"
    control = " (random directions)" if row["projection"] == "random" else ""
    return f"{row['band']}: {MODULES.get(str(row['modules']), str(row['modules']))}{control}"


def kinds_frame(signature: xr.Dataset) -> pd.DataFrame:
    """One row for each kind of answer: `share` with its interval, of `n` answers."""
    return signature[["share", "low", "high", "n"]].to_dataframe().reset_index()


def carry_frame(signature: xr.Dataset) -> pd.DataFrame | None:
    """One row for each threshold of a carry, with the 95 % interval of the share of wrong prompts;
    None where the task carries no tens."""
    if "carry" not in signature.coords:
        return None
    low, high = wilson(signature["carry_wrong"].values, int(signature.attrs["n_wrong"]))
    table = signature.assign(low=("carry", low), high=("carry", high))
    names = ["carry_wrong", "low", "high", "carry_all", "chi2", "chi2_p"]
    return table[names].to_dataframe().reset_index()
