"""Made-up measurements of the shape that `mechnum.fourier.number_spectra` gives."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from mechnum.fourier import amplitudes, residue_probe, spectrum_test
from tests.fourier.rows import circles


def spectra_results(layers: int | None = 3, n: int = 100, counts: bool = False) -> xr.DataTree:
    """Circles of T = 5 and 10 that fade with the layer; with `layers=None` an embedding."""
    numbers = np.arange(n)
    tables = [
        circles(numbers, (5, 10), 16, 0.3 + layer, seed=layer) for layer in range(layers or 1)
    ]
    dims = ("number", "dimension")
    if layers is None:
        rows = xr.DataArray(tables[0], dims=dims, coords={"number": numbers})
    else:
        rows = xr.DataArray(
            np.stack(tables),
            dims=("layer", *dims),
            coords={"layer": np.arange(layers) - 1, "number": numbers},
        )
    parts = {
        "/spectrum": spectrum_test(rows, draws=99),
        "/residues": residue_probe(rows, (2, 5, 10, 30), permutations=39),
        "/amplitudes": amplitudes(rows, (2, 5, 7, 10), linear=True),
        "/prompts": xr.Dataset(
            {"tokens": ("position", [7, 8])},
            coords={"token": ("position", ["5", "9"])},
            attrs={"positions": json.dumps({"n": 1}), "text": "59"},
        ),
    }
    if counts:
        parts["/counts"] = spectrum_test(np.where(numbers % 10, 1.0, 9.0), draws=99)
        parts["/counts"].attrs["of"] = "counts in text.csv"
    attrs = {
        **parts["/spectrum"].attrs,
        **parts["/residues"].attrs,
        "model": "adder-gptj",
        "of": "embedding" if layers is None else "resid",
        "template": "{n}",
        "bos": "none: the tokenizer has no such token",
        "digits": "last",
        "numbers_at": json.dumps({"0": 10, "1": n - 10}),
        "seed": 0,
        "command": "mechnum fourier adder-gptj",
        "versions": json.dumps({"mechnum": "0.1.0"}),
    }
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **parts})
