"""The pages of patching, opened from disk in Chromium without a network."""

from __future__ import annotations

import pytest

from mechnum.report import save

from .measurements import circuit_results, edge_results, node_results
from .test_browser import ALL_DRAWN

PAGES = {
    "nodes": node_results,
    "bars": lambda: node_results("mlps", layer=4),
    "edges": lambda: edge_results(positions=2),
    "circuit": circuit_results,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: save(make(), folder / name)[0] for name, make in PAGES.items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_opens_without_requests_or_complaints(browser, pages, name, scheme):
    browser.prefer(scheme)
    browser.open(pages[name])
    browser.wait_for(ALL_DRAWN)
    assert browser.requests == [pages[name].as_uri()]
    assert browser.complaints == []
    drawn = browser.run(
        "[...document.querySelectorAll('.plot')].map(plot =>"
        "plot.querySelectorAll('.trace, .hm image, .heatmaplayer image').length)"
    )
    assert drawn
    assert all(drawn)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_phone_needs_no_sideways_scrolling(browser, pages, name):
    browser.resize(390, 844, mobile=True)
    browser.open(pages[name])
    browser.wait_for(ALL_DRAWN)
    assert browser.run("document.documentElement.scrollWidth") <= 390


def hovered(browser, place: str) -> str:
    """What is shown where the pointer is: `place` is JavaScript for [x, y] on the screen."""
    browser.run("document.querySelector('.plot').scrollIntoView({behavior: 'instant'})")
    x, y = browser.run(place)
    # What an earlier place showed stays for a moment.
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    browser.wait_for("!document.querySelector('.hoverlayer').textContent")
    for shift in (0, 1):
        browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=x + shift, y=y)
    browser.wait_for("document.querySelector('.hoverlayer').textContent")
    return browser.run("document.querySelector('.hoverlayer').textContent")


# The pixel of a place in a figure's own coordinates.
PIXEL = (
    "(() => {{const plot = document.querySelector('.plot'); const box = "
    "plot.getBoundingClientRect(); const {{xaxis, yaxis, _size}} = plot._fullLayout;"
    "return [box.x + _size.l + xaxis.d2p({x}), box.y + _size.t + yaxis.d2p({y})]}})()"
)


def test_hover_on_an_impossible_edge_says_so(browser, pages):
    browser.open(pages["edges"])
    browser.wait_for(ALL_DRAWN)
    assert "impossible" in hovered(browser, PIXEL.format(x=0, y=4))


def test_hover_on_an_edge_and_on_a_node_of_the_circuit(browser, pages):
    browser.open(pages["circuit"])
    browser.wait_for(ALL_DRAWN)
    text = hovered(browser, PIXEL.format(x=0, y=1))
    assert text.startswith("head 0.0")
    assert "out, strongest" in text
    # A point in the middle of the strongest edge, which lies on top.
    edge = (
        "(() => {const {x, y} = document.querySelector('.plot').data.filter(part =>"
        "part.mode === 'lines' && !part.name).at(-1); return [x[12], y[12]]})()"
    )
    x, y = browser.run(edge)
    text = hovered(browser, PIXEL.format(x=x, y=y))
    assert "→" in text
    assert "logits" in text


def test_files_for_other_programs_are_saved_as_they_are(browser, pages):
    browser.open(pages["circuit"])
    files = circuit_results()["files"]
    assert "Not here: Neuronpedia (the file has 20 MB)" in browser.run(
        "document.querySelector('figure.files').textContent"
    )
    for name, content in zip(files["file"].values, files["content"].values):
        browser.run(f"document.querySelector('[data-name=\"{name}\"]').click()")
        assert browser.downloaded(name).read_text(encoding="utf-8") == content
    assert browser.complaints == []
