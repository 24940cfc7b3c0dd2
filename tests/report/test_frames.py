from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.report.frames import effect_frame, node_names, ranked, score_frame


@pytest.fixture
def heads() -> xr.Dataset:
    total = np.array([[[1.0, -4.0]], [[3.0, -6.0]]])
    return xr.Dataset({"total": (("pair", "layer", "head"), total), "direct": (
        ("pair", "layer", "head"), total / 2)})  # fmt: skip


def test_effect_frame_has_one_row_for_each_head(heads):
    frame = effect_frame(heads)
    assert frame[["layer", "head"]].to_numpy().tolist() == [[0, 0], [0, 1]]
    assert frame["total"].tolist() == [2.0, -5.0]
    assert frame["direct"].tolist() == [1.0, -2.5]
    assert frame["n"].tolist() == [2, 2]
    assert (frame["total_low"] <= frame["total"]).all()
    assert (frame["total"] <= frame["total_high"]).all()


def test_order_of_dimensions_does_not_matter(heads):
    assert effect_frame(heads.transpose("head", "layer", "pair")).equals(effect_frame(heads))


def test_coordinates_of_layers_are_kept(heads):
    frame = effect_frame(heads.assign_coords(layer=[7]))
    assert frame["layer"].tolist() == [7, 7]


def test_ranked_by_size_without_missing(heads):
    frame = effect_frame(heads)
    assert node_names(ranked(frame, "total"), "heads") == ["0.1", "0.0"]
    frame.loc[1, "total"] = np.nan
    assert node_names(ranked(frame, "total"), "heads") == ["0.0"]


def test_layers_are_named_by_kind(heads):
    frame = effect_frame(heads.isel(head=0, drop=True))
    assert node_names(frame, "mlps") == ["MLP 0"]
    assert node_names(frame, "attn") == ["attention 0"]


def test_other_datasets_are_refused():
    with pytest.raises(MechnumError, match="give a Dataset with total, direct or indirect"):
        effect_frame(xr.Dataset({"x": ("pair", [1.0])}))
    with pytest.raises(MechnumError, match="neither score nor r2"):
        score_frame(xr.Dataset({"x": ("pair", [1.0])}))


def test_score_frame_joins_scores_and_fits():
    site = xr.Dataset(
        {
            "score": (("layer", "method", "pair"), np.arange(8.0).reshape(2, 2, 2)),
            "r2": (("layer", "method"), [[0.5, 0.6], [0.7, 0.8]]),
        },
        coords={"method": ["helix", "full"]},
    )
    frame = score_frame(site)
    assert frame["layer"].tolist() == [0, 0, 1, 1]
    assert frame["method"].tolist() == ["helix", "full"] * 2
    assert frame["score"].tolist() == [0.5, 2.5, 4.5, 6.5]
    assert frame["r2"].tolist() == [0.5, 0.6, 0.7, 0.8]
