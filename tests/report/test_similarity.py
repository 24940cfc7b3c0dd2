"""Pages on similarity: what they say and draw is what was measured."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
import torch
import xarray as xr
from rich.console import Console

from mechnum.circuits.running.comparison import with_published
from mechnum.models import TokenTable
from mechnum.probes import number_similarity, similarity_map
from mechnum.probes.similarity_measures import MEASURES as MEASURED
from mechnum.report import page_of, read_netcdf, save, similarity_summary
from mechnum.report.similarity_frames import MEASURES, pair_frame, pair_names

from .test_page import Document

GENERATOR = np.random.default_rng(1)
ROWS = GENERATOR.normal(size=(3, 24, 8))


@pytest.fixture(scope="module")
def results() -> xr.DataTree:
    """Two pairs of random tables, and a transfer between two places."""
    a, b = ["m, layer 3", "m, layer 3"], ["n, embedding", "o, embedding"]
    cells = [number_similarity(ROWS[0], ROWS[own], top=5, draws=19) for own in (1, 2)]
    pairs = xr.concat(cells, "pair", combine_attrs="drop")
    places = ["m, embedding", "n, embedding", "digits alone"]
    transfer = xr.Dataset(
        {
            **{
                name: (("trained_on", "tested_on"), np.array([[1.0, 0.5, 0.25], [0.5, 1.0, 0.0]]))
                for name in ("accuracy", "low", "high", "absolute_error")
            },
            "shuffled": (
                ("trained_on", "tested_on"),
                np.array([[np.nan, 0.125, np.nan], [0.0625, np.nan, np.nan]]),
            ),
            "test_values": ("tested_on", [5, 5, 5]),
            "test_rows": ("tested_on", [5, 5, 5]),
            "chance": 0.01,
        },
        {
            "trained_on": places[:2],
            "tested_on": [*places[:2], "untrained n, embedding"],
            "kind": ("tested_on", ["model", "model", "untrained"]),
        },
    )
    attrs = {
        "models": json.dumps({"m": "llama, 0", "n": "bert, 1"}),
        "read": json.dumps({"m": "'The number is {n}', last", "n": "'{n}', single"}),
        "about": json.dumps({"m": "Made up."}),
        "left_out": json.dumps({"random tokens": "no word is shared"}),
        "numbers": "0 to 23",
        "n_numbers": 24,
        "top": 5,
        "draws": 19,
        "seed": 0,
    }
    found = xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs=attrs),
            "/pairs": pairs.assign_coords(a=("pair", a), b=("pair", b)),
            "/map": similarity_map(dict(zip(places, ROWS, strict=True)), top=5),
            "/transfer/number": transfer,
        }
    )
    table = TokenTable("m", "bert", torch.zeros(2, 2), None)
    return with_published(found, "universal_numbers", "similarity", table)


def test_pairs_are_named_by_what_differs(results):
    def named(a: list[str], b: list[str]) -> list[str]:
        pairs = results["pairs"].to_dataset().assign_coords(a=("pair", a), b=("pair", b))
        return pair_names(xr.DataTree.from_dict({"/pairs": pairs}))

    assert named(["m, layer 1"] * 2, ["m, layer 2", "m, layer 3"]) == ["layer 2", "layer 3"]
    assert named(["m, embedding"] * 2, ["n, embedding", "o, embedding"]) == ["m – n", "m – o"]


def test_every_measure_has_its_values_and_its_nulls(results):
    assert set(MEASURES) == set(MEASURED)
    assert pair_names(results)[0] == "m, layer 3 – n, embedding"
    frame = pair_frame(results, "cka")
    at = results["pairs"].to_dataset().sel(measure="cka")
    np.testing.assert_array_equal(frame["value"], at["value"])
    np.testing.assert_array_equal(frame["shuffled_p"], at["p"].sel(null="shuffled"))
    # No words were drawn.
    assert not [name for name in frame if name.startswith("tokens")]


def test_figures_show_what_was_measured(results):
    sections = {section.title: section for section in page_of(results).sections}
    ranges = sections["Against chance"].blocks[0].views["CKA"]
    frame = pair_frame(results, "cka")
    np.testing.assert_allclose(ranges.data[-1].x, frame["value"], rtol=1e-5)
    shuffled = ranges.data[0]
    ends = np.array(shuffled.x) + np.array(shuffled.error_x["array"])
    np.testing.assert_allclose(ends, frame["shuffled_high"], rtol=1e-4)
    heat = sections["Places"].blocks[0].views["dot, Pearson"].data[0]
    table = results["map"]["value"].sel(measure="dot pearson")
    np.testing.assert_allclose(np.array(heat.z, dtype=float), table, rtol=1e-5)
    curve = next(iter(sections["Frequencies"].blocks[0].views.values())).data[-1]
    np.testing.assert_allclose(curve.y, results["pairs"]["match"].isel(pair=0), rtol=1e-5)
    probes = sections["Probes of one model on another"].blocks[0].views
    assert [len(view.data[0].z[0]) for view in probes.values()] == [2, 1, 2]
    cosine = results["pairs"]["value"].sel(measure="cosine pearson")
    published = sections["Published figures"].blocks[0].frame.set_index("quantity")
    row = published.loc["similarity by cosine, all pairs"]
    assert (row["published"], row["measured"]) == ("0.450 to 0.910", float(cosine.median()))
    for section in sections.values():
        for block in section.blocks:
            if block.kind == "figure":
                assert block.caption.estimand
                assert block.caption.n
                assert block.caption.null


@pytest.mark.slow
def test_page_says_what_was_found(results, tmp_path):
    page, data = save(results, tmp_path)
    text = " ".join(Document(page.read_text(encoding="utf-8")).text.split())
    assert "n as one token, alone" in text
    assert "m at their last token, in 'The number is {n}'" in text
    assert (
        "50 % right in the median of places, 50 % at best; at most in untrained nets 25 %" in text
    )
    assert "all spectra come from one model" in text
    assert "Made up." in text
    assert "no word is shared" in text
    again = page_of(read_netcdf(data))
    assert [one.title for one in again.sections] == [one.title for one in page_of(results).sections]


def test_summary_has_a_row_for_each_pair(results):
    console = Console(file=io.StringIO(), width=160)
    console.print(similarity_summary(results))
    lines = console.file.getvalue().splitlines()
    value = float(results["pairs"]["value"].isel(pair=1).sel(measure="cka"))
    (row,) = [line for line in lines if "o, embedding" in line]
    assert f"{value:.3f}".rstrip("0") in row


@pytest.mark.slow
def test_page_opens_in_a_browser_without_complaints(results, browser, tmp_path):
    page, _ = save(results, tmp_path)
    browser.open(page)
    browser.wait_for("document.documentElement.dataset.drawn === 'all'")
    assert browser.complaints == []
