"""Maps in tables: what the page keeps of them, and that they open."""

from __future__ import annotations

import base64
import json

import numpy as np
import pandas as pd
import pytest

from mechnum.errors import MechnumError
from mechnum.report.blocks import Caption, Table
from mechnum.report.maps import Maps
from mechnum.report.page import Page, Section


def two_maps(**changes) -> Maps:
    values = np.array([[[0.0, 1.0], [2.0, -4.0]], [[np.nan, 0.0], [0.0, 0.0]]])
    given = {
        "column": "map",
        "names": ["first", "second"],
        "views": {"activation": values, "logit": -values},
        "x": [5, 6],
        "y": [7, 8],
        "titles": ("b", "a"),
    }
    return Maps(**{**given, **changes})


def unpacked(maps: Maps, view: str, row: int) -> np.ndarray:
    """What the page's script makes of the bytes."""
    content = json.loads(json.dumps(maps.payload))
    one = content["views"][view][row]
    codes = np.frombuffer(base64.b64decode(one["codes"]), dtype=np.int8)
    return np.where(codes == content["missing"], np.nan, codes / content["steps"] * one["end"])


def test_a_page_keeps_each_value_to_half_a_step_of_the_largest():
    values = np.random.default_rng(0).normal(size=(3, 10, 10))
    names = [str(row) for row in range(3)]
    maps = two_maps(names=names, views={"v": values}, x=list(range(10)), y=list(range(10)))
    for row in range(3):
        largest = np.abs(values[row]).max()
        kept = unpacked(maps, "v", row).reshape(10, 10)
        assert np.abs(kept - values[row]).max() <= largest / 127 / 2 + 1e-9


def test_missing_values_and_empty_maps_stay_what_they_are():
    maps = two_maps()
    np.testing.assert_array_equal(unpacked(maps, "activation", 1), [np.nan, 0, 0, 0])
    np.testing.assert_allclose(unpacked(maps, "logit", 0), [0, -1, -2, 4], atol=4 / 254)


def test_maps_of_another_shape_are_refused():
    with pytest.raises(MechnumError, match="give one map over y and x for each row"):
        two_maps(x=[1, 2, 3])


@pytest.fixture
def page(browser, tmp_path):
    frame = pd.DataFrame({"neuron": [3, 9], "total": [0.5, 2.0]})
    table = Table("Neurons", frame, Caption("Some."), maps=two_maps())
    browser.open(Page("Maps", [Section("Neurons", [table])]).save(tmp_path / "maps.html"))
    browser.wait_for("document.querySelectorAll('canvas.map').length === 2")
    return browser


def pixels(page, row: int) -> list[list[int]]:
    found = page.run(
        f"(() => {{const canvas = document.querySelectorAll('canvas.map')[{row}];"
        "return [...canvas.getContext('2d').getImageData(0, 0, 2, 2).data]})()"
    )
    return [found[at : at + 4] for at in range(0, 16, 4)]


def test_thumbnails_follow_their_rows_and_open_on_a_click(page):
    assert page.complaints == []
    zero, one, two, least = pixels(page, 0)
    # Red grows with the value and blue is its opposite; zero is the ground.
    assert one[0] > one[2]
    assert two[0] > two[2]
    assert least[2] > least[0]
    assert max(zero[:3]) - min(zero[:3]) < 10
    assert pixels(page, 1)[0][3] == 0
    page.run("document.querySelector('thead button:nth-of-type(1)').click()")
    assert page.run("document.querySelector('tbody td').textContent") == "9"
    page.run("document.querySelector('button.open').click()")
    page.wait_for("document.querySelectorAll('dialog .main-svg').length >= 2")
    assert page.run("document.querySelector('dialog h3').textContent") == "second"
    page.run("document.querySelector('dialog button').click()")
    page.wait_for("document.querySelector('dialog') === null")


def test_thumbnails_follow_the_theme(page):
    before = pixels(page, 0)
    page.run("document.getElementById('theme').click()")
    assert pixels(page, 0) != before
