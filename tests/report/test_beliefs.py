"""Pages on beliefs: their planes and colours, and what they say of results that were measured."""

from __future__ import annotations

import io

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from mechnum.circuits.instruments.beliefs import measure_beliefs, measure_process
from mechnum.report import beliefs_summary, page_of, read_netcdf, save
from mechnum.report.belief_frames import (
    colours_of,
    depth_frame,
    followed_frame,
    plane_of,
    position_frame,
    some,
)
from mechnum.report.beliefs import _causal_point
from mechnum.report.figures.beliefs import simplices
from mechnum.tasks import processes as P
from tests.beliefs.planted import random_net

from .test_page import Document


@pytest.fixture(scope="module")
def measured():
    net = random_net(0, n_tokens=3)
    return measure_beliefs(net, P.mess3(), strings=60, n_pairs=5, untrained=random_net(1, 3))


def printed(results) -> str:
    console = Console(file=io.StringIO(), width=110)
    console.print(beliefs_summary(results))
    return console.file.getvalue()


def test_three_states_lie_in_a_triangle_and_keep_their_distances():
    beliefs = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    plane = plane_of(beliefs, np.ones(50), ["A", "B", "C"], None)
    assert plane.names == ("A", "B", "C")
    corners = plane.points(np.eye(3))
    gaps = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1)
    np.testing.assert_allclose(gaps, 1)
    points = plane.points(beliefs)
    across = np.linalg.norm(points[:1] - points[1:], axis=1)
    np.testing.assert_allclose(across, np.linalg.norm(beliefs[:1] - beliefs[1:], axis=1) / 2**0.5)


def test_chosen_states_are_the_corners_or_the_axes():
    beliefs = np.random.default_rng(0).dirichlet(np.ones(5), size=50)
    names = ["S", "0", "1", "T", "F"]
    plane = plane_of(beliefs, np.ones(50), names, ["0", "T"])
    np.testing.assert_array_equal(plane.points(beliefs), beliefs[:, [1, 3]])
    assert plane.axes == ("probability of 0", "probability of T")
    triangle = plane_of(beliefs, np.ones(50), names, ["F", "0", "1"])
    np.testing.assert_allclose(triangle.points(np.eye(5)[[4, 1, 2]]), triangle.corners)
    np.testing.assert_allclose(triangle.points(np.eye(5)[:1])[0], triangle.corners.mean(axis=0))


def test_more_states_are_drawn_where_beliefs_vary_most():
    generator = np.random.default_rng(0)
    beliefs, weights = generator.dirichlet(np.ones(6), size=300), generator.random(300)
    points = plane_of(beliefs, weights, list("abcdef"), None).points(beliefs)
    share = weights / weights.sum()
    np.testing.assert_allclose(share @ points, 0, atol=1e-12)
    spread = np.cov(beliefs.T, aweights=weights, ddof=0)
    largest = np.linalg.eigvalsh(spread)[::-1][:2]
    np.testing.assert_allclose(
        np.cov(points.T, aweights=weights, ddof=0), np.diag(largest), atol=1e-12
    )


def test_colours_are_mixtures_that_differ_at_the_corners():
    corners = colours_of(np.eye(3))
    assert corners[0] == "rgb(47,127,191)"
    assert len(set(corners)) == 3
    parts = [int(v) for v in colours_of(np.array([[0.5, 0.5, 0.0]]))[0][4:-1].split(",")]
    assert parts == pytest.approx([(47 + 207) / 2, (127 + 106) / 2, (191 + 16) / 2], abs=1)


def test_some_rows_are_spread_over_all():
    assert some(5, 10).tolist() == [0, 1, 2, 3, 4]
    rows = some(10_000, 100)
    assert (len(rows), rows[0], rows[-1]) == (100, 0, 9999)


def test_panels_show_the_same_points_with_the_same_colours():
    beliefs = np.random.default_rng(0).dirichlet(np.ones(3), size=20)
    plane = plane_of(beliefs, np.ones(20), list("abc"), None)
    colours = colours_of(beliefs)
    figure = simplices({"true": beliefs, "read": beliefs[::-1]}, plane, colours, ["h"] * 20, 3.0)
    true, read = (trace for trace in figure.data if trace.mode == "markers")
    np.testing.assert_allclose(true.x, plane.points(beliefs)[:, 0], rtol=1e-5)
    np.testing.assert_allclose(read.y, plane.points(beliefs[::-1])[:, 1], rtol=1e-5)
    assert list(true.marker.color) == list(read.marker.color) == colours


def patched(belief: list[list[float]]) -> xr.Dataset:
    """Two layers and three tokens, the last of which both histories predict alike."""
    none = [1.0, 0.5, 1e-6]
    kl = np.array([[none, own, none, none, [0.0] * 3, [0.0] * 3] for own in belief])
    patches = ["none", "belief", "readout", "random", "state", "target run"]
    return xr.Dataset(
        {"kl": (("layer", "patch", "step", "pair"), kl[..., None] * [0.5, 1.5])},
        coords={"layer": [0, 1], "patch": patches},
    )


def test_how_far_predictions_follow_is_a_share_of_sums():
    """A token without a way to go has no share of its own, and does not weigh as much as others."""
    frame = followed_frame(patched([[0.0, 0.5, 1e-3], [0.5, 0.0, 0.0]]))
    table = frame.set_index(["layer", "tokens"])
    assert table.loc[(0, "the next"), "belief"] == pytest.approx(1)
    assert table.loc[(0, "later"), "belief"] == pytest.approx(0, abs=3e-3)
    assert table.loc[(1, "later"), "belief"] == pytest.approx(1)
    assert table.loc[(1, "all"), "belief"] == pytest.approx(1 / 1.5, rel=1e-5)
    assert table["random"].tolist() == [0] * 6
    assert table["state"].tolist() == [1] * 6
    alike = patched([[0.0] * 3] * 2).isel(step=[2])
    assert (len(followed_frame(alike)), _causal_point(alike)) == (0, [])


def test_the_last_residual_is_no_block_s_input():
    ((_, text),) = _causal_point(patched([[1.0, 0.5, 0.0], [0.0, 0.5, 0.0]]))
    assert "in the last residual" in text
    assert "100 % (next token)" in text


def test_the_place_that_is_spoken_of_is_scored_on_other_pairs():
    """By chance of the first half block 1 is best there; what is said is its score in the other."""
    found = patched([[1.0, 0.5, 0.0], [1.0, 0.5, 0.0]])
    kl = found["kl"].copy()
    kl.loc[{"layer": 1, "patch": "belief", "pair": 0}] = 0.0
    ((_, text),) = _causal_point(found.assign(kl=kl))
    assert "in the last residual" in text
    assert "0 % (next token)" in text
    assert "chosen on half of the pairs" in text
    # One pair is no two halves.
    assert _causal_point(found.isel(pair=[0])) == []


def test_a_net_of_another_process_is_introduced_as_one(measured):
    assert "Another process" not in printed(measured)
    other = measured.copy()
    other.attrs["trained_on"] = "rrxor"
    assert "the net was trained on rrxor" in " ".join(printed(other).split())


def test_last_and_joined_are_compared_with_an_interval(measured):
    at = measured["geometry"].to_dataset().sel(layer="last", norm="after")
    text = " ".join(printed(measured).split())
    low, high = float(at["joined_gain_low"]), float(at["joined_gain_high"])
    said = {1: "times that", -1: "smaller than", 0: "not clearly larger than"}
    assert said[int(low > 0) - int(high < 0)] in text
    assert "positions 2 to 5 of 6, counted from 0; from the first one on that has 10" in text


def test_errors_of_positions_average_to_the_whole(measured):
    frame = position_frame(measured)
    at = measured["geometry"].to_dataset().sel(norm="after", predictor="states")
    assert frame["prefixes"].sum() == at.sizes["prefix"]
    # All positions have the same weight.
    assert frame["the last residual"].mean() == pytest.approx(float(at["mse"].sel(layer="last")))
    assert frame["all residuals joined"].mean() == pytest.approx(float(at["mse"].sel(layer="all")))


@pytest.mark.parametrize(
    ("process", "said"), [(P.rrxor(), "It falls to"), (P.carry(2), "In the long run its mean is")]
)
def test_entropy_that_goes_up_and_down_is_not_said_to_fall(process, said):
    assert f"{said} the entropy rate" in page_of(measure_process(process)).html()


@pytest.mark.slow
def test_errors_of_what_never_changes_are_not_compared():
    net = random_net(0)
    found = measure_beliefs(net, P.iid(), strings=40, n_pairs=3, untrained=random_net(1))
    text = printed(found)
    assert "The last residual: undefined" in text
    assert "Beside an untrained net" not in text


@pytest.mark.slow
def test_page_of_a_net_says_what_was_measured(measured, tmp_path):
    page, data = save(measured, tmp_path)
    text = Document(page.read_text(encoding="utf-8")).text
    at = measured["geometry"].to_dataset().sel(layer="last", norm="after")
    assert str(at["reason"].values) in text
    assert "Controls, all residuals joined" in text
    sections = [section.title for section in page_of(measured).sections]
    assert sections == [
        "What was found",
        "Beliefs, true and read from the net",
        "Controls",
        "Layers",
        "Causal test",
        "Mixed-state tree",
        "How well it can be predicted",
        "How it was made",
    ]
    # Every figure says what it shows of how many.
    for section in page_of(measured).sections:
        for block in section.blocks:
            if block.kind == "figure":
                assert block.caption.estimand, block.title
    again = read_netcdf(data)
    assert again["geometry"].to_dataset().identical(measured["geometry"].to_dataset())
    assert [section.title for section in page_of(again).sections] == sections


def test_summary_has_each_layer_with_its_verdict(measured):
    lines = printed(measured).splitlines()
    geometry = measured["geometry"].to_dataset()
    rows = [line.split() for line in lines if line.split()[1:2] in (["before"], ["after"])]
    assert [row[0] for row in rows[::2]] == geometry["layer"].values.tolist()
    for row in rows:
        at = geometry.sel(layer=row[0], norm=row[1])
        assert " ".join(row[5:]) == str(at["verdict"].values)
        own = float(at["mse"].sel(predictor="states"))
        assert float(row[2].replace("\N{MINUS SIGN}", "-")) == pytest.approx(own, rel=5e-3)


@pytest.mark.parametrize("name", ["z1r", "even", "iid", "rrxor"])
def test_page_of_a_process_alone(name):
    found = measure_process(P.find_process(name))
    page = page_of(found)
    titles = [section.title for section in page.sections]
    assert ("Beliefs" in titles) == (name != "iid")
    html = page.html()
    frame = depth_frame(found)
    assert f"{found['mixed_states'].sizes['mixed_state']:,} different beliefs" in html
    assert frame["strings"].iloc[0] == 1
    assert "Mixed states: " in printed(found)


def test_two_states_are_drawn_against_each_other():
    net = random_net(0)
    found = measure_beliefs(net, P.even(), strings=40, n_pairs=3, untrained=random_net(1))
    (figure,) = page_of(found).sections[1].blocks
    diagonal, points = figure.views["the last residual"].data
    assert list(diagonal.x) == [0, 1]
    belief = found["geometry"]["belief"].values[:, -1]
    np.testing.assert_allclose(np.array(points.x, dtype=float), belief, rtol=1e-5)


@pytest.mark.slow
def test_page_opens_in_a_browser_without_complaints(measured, browser, tmp_path):
    page, _ = save(measured, tmp_path)
    browser.open(page)
    browser.wait_for("document.documentElement.dataset.drawn === 'all'")
    assert browser.complaints == []
