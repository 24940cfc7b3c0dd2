"""Results that no page of ours knows are shown as tables; those that only look like ours are
refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.report import read_netcdf, save
from mechnum.report.blocks import Facts, Table
from mechnum.report.saving import _PAGES, page_of


def tree(group: str) -> xr.DataTree:
    dataset = xr.Dataset(
        {
            "accuracy": ("layer", [0.25, 0.75]),
            "n": ("layer", [10, 20]),
            "seconds": 1.5,
            "wide": (("row", "column"), np.zeros((2000, 1000))),
        },
        coords={"layer": [0, 3], "place": "end"},
    )
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs={"model": "net"}), f"/{group}": dataset})


def test_variables_over_the_same_dims_share_a_table():
    page = page_of(tree("parity/of_the_sum"))
    first = page.sections[0]
    assert first.title == "parity/of_the_sum"
    facts, table = first.blocks
    assert isinstance(facts, Facts)
    assert dict(facts.rows) == {
        "seconds": "1.50",
        "wide": "2,000 row × 1,000 column: in results.nc alone",
    }
    assert isinstance(table, Table)
    assert table.frame.to_dict("list") == {"layer": [0, 3], "accuracy": [0.25, 0.75], "n": [10, 20]}
    assert "0.75" in page.html()


# Pages of ordinals are made of whatever families of words there are.
@pytest.mark.parametrize("group", sorted({*_PAGES, "steps", "attention"} - {"ordinals"}))
def test_groups_that_have_our_names_alone_are_refused_in_one_line(group):
    own = {"ablation": "a helix site has neither score nor r2"}
    said = own.get(group, "not what mechnum measures|hold no")
    with pytest.raises(MechnumError, match=said) as refused:
        page_of(tree(group))
    assert "\n" not in str(refused.value)


def test_results_are_written_before_a_page_that_cannot_be_made(tmp_path):
    with pytest.raises(MechnumError, match="the group 'pairs' of these results is not what"):
        save(tree("pairs"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["results.nc"]
    assert float(read_netcdf(tmp_path / "results.nc")["pairs/seconds"]) == 1.5
