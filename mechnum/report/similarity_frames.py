"""Tables of similarities: pairs beside chance, matches by number of frequencies, transfer."""

from __future__ import annotations

import pandas as pd
import xarray as xr

MEASURES = {
    "cosine pearson": "cosine, Pearson",
    "cosine spearman": "cosine, Spearman",
    "dot pearson": "dot, Pearson",
    "dot spearman": "dot, Spearman",
    "euclid pearson": "Euclid, Pearson",
    "euclid spearman": "Euclid, Spearman",
    "cka": "CKA",
    "spectra": "frequencies",
    "kendall": "Kendall's τ",
}
"""The measures, and what pages call them."""
DIGITS = "digits alone"  # The place in the map that has no model in it.
NULLS = {"tokens": "random words", "shuffled": "shuffled rows", "gaussian": "Gaussian rows"}


def present_nulls(results: xr.DataTree) -> dict[str, str]:
    """The nulls that were drawn, and what pages call them."""
    mean = results["pairs"].to_dataset()["null_mean"]
    return {null: name for null, name in NULLS.items() if mean.sel(null=null).notnull().any()}


def pair_names(results: xr.DataTree) -> list[str]:
    """The pairs as pages call them, without what is the same in all of them.

    Of one model, the places that one of them is compared with; of several, the models alone where
    each is read at the same place.
    """
    pairs = results["pairs"].to_dataset()
    labels = [[str(name) for name in pairs[side].values] for side in ("a", "b")]
    a, b = ([label.rpartition(", ") for label in side] for side in labels)
    if len({model for model, _, _ in a + b}) == 1 and len(set(a)) == 1:
        return [place for _, _, place in b]
    same = len({place for _, _, place in a + b}) == 1
    return [
        f"{one[0]} – {other[0]}" if same else f"{''.join(one)} – {''.join(other)}"
        for one, other in zip(a, b, strict=True)
    ]


def pair_frame(results: xr.DataTree, measure: str) -> pd.DataFrame:
    """One row for each pair: `name`, `a`, `b`, `value`, and for each null that was drawn
    `NULL_mean`, `NULL_low`, `NULL_high` and `NULL_p`."""
    at = results["pairs"].to_dataset().sel(measure=measure)
    columns = {"name": pair_names(results), "a": at["a"].values, "b": at["b"].values}
    columns["value"] = at["value"].values
    for null in present_nulls(results):
        own = at.sel(null=null)
        columns |= {f"{null}_{end}": own[f"null_{end}"].values for end in ("mean", "low", "high")}
        columns[f"{null}_p"] = own["p"].values
    return pd.DataFrame(columns)


def curve_frame(results: xr.DataTree, pair: int) -> pd.DataFrame:
    """One row for each number of frequencies: `n_top`, `match`, `NULL_low` and `NULL_high`."""
    at = results["pairs"].to_dataset().isel(pair=pair)
    columns = {"n_top": at["n_top"].values, "match": at["match"].values}
    for null in present_nulls(results):
        own = at.sel(null=null)
        columns |= {f"{null}_{end}": own[f"match_{end}"].values for end in ("low", "high")}
    return pd.DataFrame(columns)


def transfer_frame(found: xr.Dataset) -> pd.DataFrame:
    """One row for each place trained on and place tested on, with intervals and controls.

    Columns: `trained_on`, `tested_on`, `trained_model`, `tested_model`, `kind`, `accuracy`, `low`,
    `high`, `absolute_error`, `shuffled`.
    """
    names = ["accuracy", "low", "high", "absolute_error", "shuffled"]
    frame = found[names].reset_coords("kind").to_dataframe().reset_index()
    for side in ("trained", "tested"):
        frame[f"{side}_model"] = frame[f"{side}_on"].str.rpartition(", ")[0]
    first = ["trained_on", "tested_on", "trained_model", "tested_model", "kind"]
    return frame[[*first, *names]]
