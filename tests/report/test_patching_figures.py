"""Maps and bars of effects show the means on one scale, and what is impossible as such."""

from __future__ import annotations

import json
import time

import numpy as np
import pandas as pd
import pytest

from mechnum.report import figures
from mechnum.report.blocks import Caption, Figure
from mechnum.report.figures.paths import _diagonal_runs
from mechnum.report.measured import edge_frame, node_frame

from .measurements import edge_results, node_results


def content(figure) -> dict:
    """The figure as a page carries it; strict JSON by construction."""
    block = Figure("x", {"x": figure}, Caption(""), "", pd.DataFrame())
    return json.loads(json.dumps(block.payload["x"], allow_nan=False))


def test_maps_of_the_three_effects_stand_side_by_side_on_one_scale():
    frame = node_frame(node_results())
    drawn = content(figures.node_maps(frame, "layer", "head"))
    assert [note["text"] for note in drawn["layout"]["annotations"]] == [
        "<b>total</b>", "<b>direct</b>", "<b>indirect</b>"
    ]  # fmt: skip
    for heat, name in zip(drawn["data"], ("total", "direct", "indirect"), strict=True):
        expected = frame.pivot(index="layer", columns="head", values=name)
        np.testing.assert_allclose(heat["z"], expected, rtol=1e-5)
        assert heat["coloraxis"] == "coloraxis"
        assert "head 2.1" in heat["hovertext"][2][1]
    axis = drawn["layout"]["coloraxis"]
    largest = frame[["total", "direct", "indirect"]].abs().max(axis=None)
    assert -axis["cmin"] == axis["cmax"] == pytest.approx(largest, rel=1e-5)


def test_hover_gives_interval_and_q():
    frame = node_frame(node_results())
    row = frame[frame["node"] == "head 1.2"].iloc[0]
    text = content(figures.node_maps(frame, "layer", "head"))["data"][0]["hovertext"][1][2]
    assert text.startswith("<b>head 1.2</b><br>total: ")
    assert "direct (norm frozen): " in text
    assert f"{row['total']:+.2f}".replace("-", "−") in text
    assert text.count(", q ") == 4


def test_small_values_beside_large_ones_have_no_digits_of_their_own():
    frame = node_frame(node_results(layer=1, head=2))
    frame["total"] = [12.3456, -1.9e-7]
    texts = content(figures.node_maps(frame, "layer", "head"))["data"][0]["text"]
    assert texts == [["12.3", "0.0"]]


def test_labels_of_positions_follow_their_order():
    frame = node_frame(node_results("mlps", position=2, layer=3))
    labels = ["−2<br>b", "−1<br>end"]
    drawn = content(figures.node_maps(frame, "layer", "position", column_labels=labels))
    assert drawn["layout"]["xaxis"]["ticktext"] == labels
    np.testing.assert_allclose(
        drawn["data"][0]["z"],
        frame.pivot(index="layer", columns="position", values="total")[[-2, -1]],
        rtol=1e-5,
    )


def test_bars_have_their_intervals():
    frame = node_frame(node_results("mlp 0, mlp 1", node=2))
    drawn = content(figures.node_bars(frame))
    assert drawn["layout"]["yaxis"]["ticktext"] == ["mlp 0", "mlp 1"]
    for bar, name in zip(drawn["data"], figures.SHOWN, strict=True):
        np.testing.assert_allclose(bar["x"], frame[name], rtol=1e-5)
        np.testing.assert_allclose(
            np.add(bar["x"], bar["error_x"]["array"]), frame[f"{name}_high"], rtol=1e-4
        )


def test_one_estimand_is_one_panel():
    frame = node_frame(node_results())
    frame = frame[[name for name in frame if not name.startswith(("direct", "indirect"))]]
    assert len(content(figures.node_maps(frame, "layer", "head"))["data"]) == 1


def test_impossible_edges_are_gaps_and_hatched_never_zero():
    frame = edge_frame(edge_results())
    drawn = content(figures.path_map(frame))
    grey, heat, hatching = drawn["data"]
    gone = np.tril(np.ones((5, 6), dtype=bool), -1)
    assert [[cell is None for cell in line] for line in heat["z"]] == gone.tolist()
    assert [[cell == 1 for cell in line] for line in grey["z"]] == gone.tolist()
    assert "impossible" in grey["hovertext"][4][0]
    assert "impossible" not in grey["hovertext"][0][0]
    # Each line begins at the lower left corner of an impossible cell and ends at the upper right.
    crossed = np.zeros((5, 6), dtype=int)
    x, y = (hatching[axis] for axis in "xy")
    for start in range(0, len(x), 3):
        column, row = x[start] + 0.5, y[start] - 0.5
        for step in range(int(x[start + 1] - x[start])):
            crossed[int(row) - step, int(column) + step] += 1
        assert x[start + 2] is None
    assert (crossed == gone).all()


def test_a_matrix_without_gaps_is_not_hatched():
    frame = edge_frame(edge_results()).query("sender == 'head 0.0'")
    heat, hatching = content(figures.path_map(frame))["data"]
    assert len(heat["z"]) == 1
    assert hatching["x"] == []


def test_runs_along_diagonals_cover_every_cell_once():
    cells = np.random.default_rng(0).random((7, 5)) < 0.5
    found = np.zeros(cells.shape, dtype=int)
    for row, first, last in _diagonal_runs(cells):
        for step in range(last - first + 1):
            found[row - step, first + step] += 1
    assert (found == cells).all()


def test_a_large_matrix_is_quick():
    """300 senders x 480 receivers, as components of 30 layers with 9 heads have."""
    missing = np.tril(np.ones((300, 480), dtype=bool))
    started = time.perf_counter()
    assert len(list(_diagonal_runs(missing))) < 1000
    assert time.perf_counter() - started < 2
