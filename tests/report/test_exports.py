from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.report.exports import (
    read_netcdf,
    write_csv,
    write_json,
    write_netcdf,
    write_parquet,
)


@pytest.fixture
def frame() -> pd.DataFrame:
    """Columns of every kind that results have: text, whole numbers, bfloat16, missing values."""
    half = torch.tensor([0.1, -2.5, 3.0], dtype=torch.bfloat16)
    return pd.DataFrame(
        {
            "node": pd.Series(["0.1", 'a "quoted", one', "naïve"]),
            "layer": np.arange(3),
            "effect": half.float().numpy(),
            "scalar": [np.float64(0.1), np.float64(1 / 3), np.nan],
            "sure": [True, False, True],
        }
    )


def test_csv_round_trip(frame, tmp_path):
    path = write_csv(frame, tmp_path / "table.csv")
    assert "np." not in path.read_text(encoding="utf-8")
    # Not by pandas, whose reader rounds the last digit.
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    back = pd.DataFrame(rows, columns=names).replace("", "nan")
    types = {"layer": int, "effect": float, "scalar": float}
    back = back.astype(types).assign(sure=back["sure"] == "True")
    pd.testing.assert_frame_equal(back, frame, check_dtype=False, rtol=0, atol=0)


def test_parquet_round_trip_keeps_types(frame, tmp_path):
    back = pd.read_parquet(write_parquet(frame, tmp_path / "table.parquet"))
    pd.testing.assert_frame_equal(back, frame, rtol=0, atol=0)
    assert not list(tmp_path.glob("*tmp*"))


def test_json_round_trip(frame, tmp_path):
    path = write_json(frame, tmp_path / "table.json")
    text = path.read_text(encoding="utf-8")
    assert "np." not in text
    assert "NaN" not in text
    back = pd.DataFrame(json.loads(text))
    pd.testing.assert_frame_equal(back, frame, check_dtype=False, rtol=0, atol=0)


def test_netcdf_round_trip(results, tmp_path):
    path = write_netcdf(results, tmp_path / "results.nc")
    back = read_netcdf(path)
    assert set(back.groups) == set(results.groups)
    for node in results.subtree:
        there = back[node.path].to_dataset()
        xr.testing.assert_equal(there, node.to_dataset())
        for name, variable in node.data_vars.items():
            if variable.dtype.kind in "fib":
                assert there[name].dtype == variable.dtype
    assert back.attrs == results.attrs


def test_what_was_read_can_be_written_again(results, tmp_path):
    first = read_netcdf(write_netcdf(results, tmp_path / "a.nc"))
    second = read_netcdf(write_netcdf(first, tmp_path / "b.nc"))
    xr.testing.assert_identical(first, second)


def test_attributes_and_types_that_netcdf_lacks(tmp_path):
    tree = xr.DataTree(
        xr.Dataset(
            {
                "half": ("x", np.array([0.5, 0.25], dtype=np.float16)),
                "text": ("x", pd.array(["a", "b"], dtype="str")),
                "flag": ("x", [True, False]),
            },
            attrs={
                "none": None,
                "yes": True,
                "mapping": {"a": np.int64(1)},
                "count": np.int64(3),
                "share": np.float32(0.5),
                "periods": (2.0, 5.0),
                "names": ["a", "b"],
                "missing": float("nan"),
            },
        )
    )
    back = read_netcdf(write_netcdf(tree, tmp_path / "x.nc"))
    assert back["half"].dtype == np.float32
    assert back["half"].values.tolist() == [0.5, 0.25]
    assert back["text"].values.tolist() == ["a", "b"]
    assert back["flag"].values.tolist() == [True, False]
    assert back.attrs["none"] == "null"
    assert back.attrs["yes"] == "true"
    assert json.loads(back.attrs["mapping"]) == {"a": 1}
    assert back.attrs["count"] == 3
    assert back.attrs["share"] == 0.5
    assert list(back.attrs["periods"]) == [2.0, 5.0]
    assert json.loads(back.attrs["names"]) == ["a", "b"]
    assert np.isnan(back.attrs["missing"])


def test_everything_is_in_memory_and_the_file_is_closed(tmp_path):
    """Also a variable that has the name of a group: read later, it crashes the interpreter."""
    tree = xr.DataTree.from_dict(
        {"/one": xr.Dataset({"two": ("x", np.arange(3.0))}), "/two": xr.Dataset({"y": 1.0})}
    )
    path = write_netcdf(tree, tmp_path / "a.nc")
    back = read_netcdf(path)
    path.unlink()
    assert back["one"]["two"].variable._in_memory
    np.testing.assert_array_equal(back["one"]["two"], np.arange(3.0))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(MechnumError, match="there is no file"):
        read_netcdf(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("not netCDF")
    with pytest.raises(MechnumError, match="is not a netCDF file of results: give"):
        read_netcdf(tmp_path / "text.nc")
