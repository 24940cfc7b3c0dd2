"""Tables of spectra: frequencies, waves and residues, one row each."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.report import reading, words

SURE = words.SURE
_SPECTRUM = ["share", "p", "p_family", "null_mean", "null_low", "null_high"]
_RESIDUES = ["kappa", "p", "p_family", "null_mean", "null_high"]


def spectrum_frame(results: xr.DataTree, group: str = "spectrum") -> pd.DataFrame:
    """One row for each (layer and) frequency of `mechnum.fourier.spectrum_test`.

    Columns: `layer` where there are any, `frequency`, `period`, `share` and its null, `flat`, the
    share as a multiple of that of a flat spectrum.
    """
    dataset = _group(results, group)
    frame = _frame(dataset[_SPECTRUM], "frequency")
    return frame.assign(flat=frame["share"] * dataset.sizes["frequency"])


def residue_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each (layer and) modulus of `mechnum.fourier.residue_probe`.

    Columns: `layer` where there are any, `modulus`, `kappa` and its null, `status`.
    """
    dataset = _group(results, "residues")
    return _frame(dataset[_RESIDUES].reset_coords("status"), "modulus")


def wave_frame(results: xr.DataTree) -> pd.DataFrame | None:
    """One row for each (layer and) period of `mechnum.fourier.amplitudes`; None without them.

    Columns: `layer` where there are any, `period`, `on_bin`, `share`, and `r2` of all together.
    """
    dataset = reading.group(results, "amplitudes")
    if dataset is None:
        return None
    return _frame(dataset[["share", "r2"]], "period")


def strongest_frame(results: xr.DataTree) -> pd.DataFrame:
    """One row for each frequency, at the layer where its share is largest; strongest first.

    Columns: `layer` where there are any, `frequency`, `period`, `share`, `flat`, `p`, `p_family`;
    for periods that are whole numbers `kappa` and `kappa_p` of n mod that period at this layer, and
    `kappa_best`, the largest of any layer; NaN where none was read.
    """
    frame = spectrum_frame(results).dropna(subset=["share"])
    best = frame.loc[frame.groupby("frequency")["share"].idxmax()]
    residues = residue_frame(results).dropna(subset=["kappa"])
    at = ["layer"] if "layer" in frame else []
    whole = best["period"].round().astype(int)
    best = best.assign(modulus=np.where(np.isclose(best["period"], whole, atol=1e-9), whole, -1))
    read = residues[[*at, "modulus", "kappa", "p"]].rename(columns={"p": "kappa_p"})
    best = best.merge(read, how="left", on=[*at, "modulus"])
    largest = residues.groupby("modulus")["kappa"].max().rename("kappa_best")
    best = best.merge(largest, how="left", left_on="modulus", right_index=True)
    columns = ["frequency", "period", "share", "flat", "p", "p_family"]
    columns += ["kappa", "kappa_p", "kappa_best"]
    return best.sort_values("share", ascending=False, kind="stable")[[*at, *columns]]


def title_of(attrs: dict[str, object]) -> str:
    """What the rows are of, for titles: `states of adder-gptj`."""
    of = str(attrs.get("of", "rows"))
    return f"{'states' if of == 'resid' else of} of {attrs.get('model', 'the model')}"


def row_name(attrs: dict[str, object], layer: float | int | None) -> str:
    """Where rows are: `in the embedding`, `after layer 3`, `in attn_out of layer 3`."""
    of = str(attrs.get("of", "resid"))
    if layer is None:
        return f"in the {of}"
    if of == "resid":
        return words.after_layer(int(layer))
    return f"in {of} of layer {int(layer)}"


def _frame(dataset: xr.Dataset, last: str) -> pd.DataFrame:
    kept = [name for name in dataset.coords if set(dataset[name].dims) <= {"layer", last}]
    bare = dataset.drop_vars([name for name in dataset.coords if name not in kept])
    dims = [str(dim) for dim in ("layer", last) if dim in bare.dims]
    first = [*dims, *(str(name) for name in bare.coords if name not in dims)]
    if set(bare.dims) - set(dims):
        raise MechnumError(
            f"a page shows spectra by layer, and these have the dimensions {tuple(bare.dims)}: "
            "select one entry of the others"
        )
    frame = bare.to_dataframe(dim_order=dims).reset_index()
    return frame[[*first, *frame.columns.drop(first)]]


def _group(results: xr.DataTree, name: str) -> xr.Dataset:
    dataset = reading.group(results, name)
    if dataset is None:
        raise MechnumError(
            f"the results hold no {name}: make them with mechnum.fourier.number_spectra"
        )
    return dataset
