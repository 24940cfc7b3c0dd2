from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from mechnum.report import figures, theme
from mechnum.report.blocks import Caption, Figure
from mechnum.report.frames import effect_frame, score_frame


def content(figure) -> dict:
    """The figure as a page carries it; strict JSON by construction."""
    block = Figure("x", {"x": figure}, Caption(""), "", pd.DataFrame())
    return json.loads(json.dumps(block.payload["x"], allow_nan=False))


@pytest.fixture
def heads(results) -> pd.DataFrame:
    return effect_frame(results["effects/heads"].to_dataset())


def test_heads_map_shows_the_means_on_a_scale_centred_at_zero(heads):
    drawn = content(figures.heads_map(heads, "direct"))
    expected = heads.pivot(index="layer", columns="head", values="direct")
    np.testing.assert_allclose(drawn["data"][0]["z"], expected, rtol=1e-5)
    axis = drawn["layout"]["coloraxis"]
    assert axis["cmin"] == -axis["cmax"]
    assert axis["cmid"] == 0
    assert axis["cmax"] == pytest.approx(
        heads[["total", "direct", "indirect"]].abs().max(axis=None), rel=1e-5
    )


def test_maps_of_the_three_effects_share_their_scale(heads):
    scales = {
        content(figures.heads_map(heads, effect))["layout"]["coloraxis"]["cmax"]
        for effect in ("total", "direct", "indirect")
    }
    assert len(scales) == 1


def test_hover_gives_value_and_interval(heads):
    text = content(figures.heads_map(heads))["data"][0]["hovertext"][2][1]
    row = heads[(heads["layer"] == 2) & (heads["head"] == 1)].iloc[0]
    assert "head 2.1" in text
    assert f"{row['total']:.2f}" in text
    assert f"{row['total_low']:.2f}, {row['total_high']:.2f}" in text


def test_missing_heads_are_gaps(heads):
    heads.loc[5, ["total", "total_low", "total_high"]] = np.nan
    drawn = content(figures.heads_map(heads))["data"][0]
    assert drawn["z"][1][1] is None
    assert drawn["text"][1][1] == ""


def test_whiskers_reach_the_ends_of_the_intervals(results):
    frame = effect_frame(results["effects/mlps"].to_dataset())
    bar = content(figures.layer_bars({"MLPs": frame}))["data"][0]
    np.testing.assert_allclose(
        np.add(bar["y"], bar["error_y"]["array"]), frame["total_high"], rtol=1e-4
    )
    np.testing.assert_allclose(
        np.subtract(bar["y"], bar["error_y"]["arrayminus"]), frame["total_low"], atol=1e-5
    )


def test_lines_by_layer_have_one_look_for_each_method(results):
    sites = {f"at {site}": score_frame(results[f"helix/{site}"].to_dataset()) for site in "ab"}
    drawn = content(figures.scores_by_layer(sites))
    lines = [trace for trace in drawn["data"] if trace["mode"] == "lines+markers"]
    assert [line["name"] for line in lines if line["showlegend"]] == [
        "helix", "full state", "PCA", "circle", "polynomial"
    ]  # fmt: skip
    looks = {(line["name"], line["line"]["color"], line["line"]["dash"]) for line in lines}
    assert len(looks) == 5
    bands = [trace for trace in drawn["data"] if trace.get("fill") == "toself"]
    assert len(bands) == len(lines)


def test_hopeless_fits_do_not_stretch_the_axis(results):
    frame = score_frame(results["helix/a"].to_dataset())
    assert frame["r2"].min() == -3
    axis = content(figures.r2_by_layer({"at a": frame}))["layout"]["yaxis"]
    assert axis["range"][0] == figures.R2_FLOOR


def test_the_state_before_the_first_layer_is_named(results):
    site = results["helix/a"].to_dataset().assign_coords(layer=[-1, 0, 1, 2])
    drawn = content(figures.scores_by_layer({"at a": score_frame(site)}))
    axis = drawn["layout"]["xaxis"]
    assert axis["tickvals"] == [-1, 0, 1, 2]
    assert axis["ticktext"] == ["emb", "0", "1", "2"]
    line = next(trace for trace in drawn["data"] if trace["mode"] == "lines+markers")
    assert "in the embedding" in line["hovertext"][0]


def test_one_layer_is_drawn_as_points(results):
    frame = score_frame(results["helix/a"].to_dataset().isel(layer=[0]))
    drawn = content(figures.scores_by_layer({"at a": frame}))
    assert {trace["mode"] for trace in drawn["data"]} == {"lines+markers"}
    assert all(trace["error_y"]["array"] for trace in drawn["data"])


def test_planes_have_one_panel_for_each_period_and_one_for_the_line(results):
    frame = figures.planes_frame(results["helix/planes"].to_dataset())
    drawn = content(figures.planes(frame))
    titles = [note["text"] for note in drawn["layout"]["annotations"]]
    assert titles == ["<b>T = 2</b>", "<b>T = 5</b>", "<b>T = 10</b>", "<b>T = 100</b>",
                      "<b>linear</b>"]  # fmt: skip
    # sin of T = 2 is 0 on whole numbers: cos against n instead.
    assert drawn["data"][0]["x"] == list(range(100))
    np.testing.assert_allclose(
        drawn["data"][1]["y"], results["helix/planes/coordinates"].sel(period=5, axis="sin"),
        rtol=1e-5,
    )  # fmt: skip


def test_phase_colours_repeat_with_the_period(results):
    frame = figures.planes_frame(results["helix/planes"].to_dataset())
    colours = content(figures.planes(frame, "phase"))["data"][2]["marker"]["color"]
    assert colours[3] == colours[13] == pytest.approx(0.3)


def test_histogram_and_map_of_errors(results):
    errors = pd.DataFrame({"error": [-10, 10], "count": [3, 1]})
    assert content(figures.error_histogram(errors))["data"][0]["y"] == [3, 1]
    prompts = results["prompts"].to_dataset()[["a", "b", "answer", "predicted", "correct"]]
    numeric, other = content(figures.answer_map(prompts.to_dataframe()))["data"]
    assert len(numeric["x"]) == 56
    assert len(other["x"]) == 2


def test_figures_carry_their_theme_and_pages_theirs(heads):
    figure = figures.heads_map(heads)
    assert (
        figure.layout.template.layout.font.color
        == theme.template("light")["layout"]["font"]["color"]
    )
    assert "template" not in content(figure)["layout"]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_series_stand_out_from_the_ground(mode):
    ground = luminance(theme.template(mode)["layout"]["hoverlabel"]["bgcolor"])
    for colour in theme.SERIES:
        low, high = sorted([ground, luminance(colour)])
        assert (high + 0.05) / (low + 0.05) >= 3, colour


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2."""
    channels = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
