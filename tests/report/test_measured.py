"""Tables of measurements have one row for each node or edge, under the names that users type."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.models.wrap import wrap
from mechnum.patching.selection import TABLES, select
from mechnum.report.measured import base_metrics, edge_frame, estimands, node_frame, sure
from tests import fixtures

from .measurements import edge_results, node_results


def test_rows_are_the_statistics():
    results = node_results()
    frame = node_frame(results)
    assert len(frame) == 12
    assert estimands(frame) == ["total", "direct", "indirect", "direct_frozen"]
    row = frame[frame["node"] == "head 2.1"].iloc[0]
    statistics = results["statistics/direct"].to_dataset().sel(layer=2, head=1)
    for column, name in (("direct", "mean"), ("direct_low", "low"), ("direct_high", "high"),
                         ("direct_q", "q"), ("n", "n")):  # fmt: skip
        assert row[column] == float(statistics[name])


@pytest.mark.parametrize("table", TABLES)
def test_nodes_of_tables_are_named_as_the_parser_reads_them(table):
    """Each name selects the node whose coordinates the row has."""
    spec = wrap(fixtures.llama(), name="tiny").spec
    selection = select(table, spec)
    sizes = {dim: len(selection.coords[dim]) for dim in selection.dims}
    frame = node_frame(node_results(table, **sizes))
    assert frame["layer"].min() == selection.coords["layer"][0]
    assert frame["node"].is_unique
    for row in frame.to_dict("records"):
        cell = select([row["node"]], spec).cells[0]
        assert cell.kind == ("embed" if row["layer"] == -1 else TABLES[table])
        assert cell.layer == max(row["layer"], 0)
        part = next((row[name] for name in ("head", "group", "neuron") if name in row), None)
        assert (cell.parts is None) == (part is None)
        assert part is None or cell.parts.tolist() == [part]


def test_lists_keep_their_names_and_sweeps_their_positions():
    assert node_frame(node_results("mlp 0, mlp 1", node=2))["node"].tolist() == ["mlp 0", "mlp 1"]
    frame = node_frame(node_results("mlps", position=3, layer=2))
    assert frame["position"].tolist() == [-3, -3, -2, -2, -1, -1]


def test_edges_keep_the_impossible_ones_as_gaps():
    frame = edge_frame(edge_results())
    assert len(frame) == 30
    gaps = frame[frame["effect"].isna()]
    assert len(gaps) == 10
    assert {("head 4.0", "q 1.0"), ("head 1.0", "q 1.0")} <= set(
        zip(gaps["sender"], gaps["receiver"])
    )
    assert gaps["effect_q"].isna().all()


def test_sure_are_those_below_the_false_discovery_rate():
    frame = node_frame(node_results())
    found = sure(frame, "total")
    assert 0 < len(found) < len(frame)
    assert found["total_q"].max() < 0.05 <= frame.drop(found.index)["total_q"].min()


def test_metrics_of_the_unpatched_runs():
    results = node_results()
    found = base_metrics(results)
    assert found["clean"][0] == pytest.approx(float(results["nodes/clean_metric"].mean()))
    assert found["corrupt"][1] < found["corrupt"][0] < found["corrupt"][2]
    assert base_metrics(xr.DataTree()) == {}


def test_other_results_are_refused():
    with pytest.raises(MechnumError, match="hold no statistics: make them with"):
        node_frame(xr.DataTree())
    with pytest.raises(MechnumError, match="nodes 'things' have no names: give a list"):
        node_frame(node_results("things"))


def test_nothing_is_missing_where_pairs_are():
    results = edge_results(positions=2)
    frame = edge_frame(results)
    assert set(frame["position"]) == {-2, -1}
    assert np.isfinite(frame.loc[frame["effect"].notna(), ["effect_low", "effect_q"]]).all(
        axis=None
    )
