"""Published figures stand beside the same quantities of this model, where there are any."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from mechnum.circuits.published import filter_figures, helix_figures


@pytest.fixture
def scores():
    methods = ["full", "pca", "helix", "circle", "polynomial", "permuted"]
    means = np.array([[10.0, 8, 9, 7, 2, 1], [4.0, 3, 9.5, 1, 1, 0]])
    values = means[:, :, None] + np.array([-1.0, 1.0])
    return xr.Dataset(
        {"score": (("layer", "method", "pair"), values)}, {"method": methods, "layer": [0, 1]}
    )


def test_shares_of_the_largest_scores(scores):
    table = helix_figures(scores, "addition")
    assert table is not None
    np.testing.assert_allclose(table["measured"], [0.8, 0.95, 0.7, 0.2])
    np.testing.assert_allclose(table["published"], np.array([6.13, 7.21, 6.83, 3.09]) / 8.34)
    assert table.attrs["of"] == "GPT-J"
    assert helix_figures(scores, "modular_addition:113") is None


def test_accuracies_of_filters_without_their_controls():
    bands = ["nothing", "low removed, below row 20", "low removed, below row 20",
             "high removed, from row 20", "frequency 3 removed"]  # fmt: skip
    table = xr.Dataset(
        {"mean": (("condition", "measure"), np.arange(10.0).reshape(5, 2) / 10)},
        {
            "measure": ["loss", "accuracy"],
            "band": ("condition", bands),
            "modules": ("condition", ["nothing", "both", "both", "mlp", "attn"]),
            "projection": ("condition", ["nothing", "filter", "random", "filter", "filter"]),
            "rank": ("condition", [0, 19, 19, 100, 2]),
        },
    )
    found = filter_figures(table, 128, "addition")
    assert found is not None
    assert found["quantity"].values.tolist() == [
        "accuracy, low removed, attention and MLPs",
        "accuracy, high removed, MLPs",
    ]
    np.testing.assert_allclose(found["published"], [0.0594, 0.9810])
    np.testing.assert_allclose(found["measured"], [0.3, 0.7])
    assert found.attrs["measure"].endswith("cut below row 20 and from row 20")
    assert filter_figures(table.isel(condition=[0, 4]), 128, "addition") is None
    assert filter_figures(table, 128, "modular_addition:113") is None
    # What takes everything measures nothing.
    rest = filter_figures(table, 100, "addition")
    assert rest is not None
    assert rest.sizes["quantity"] == 1
