"""Pages opened from disk in Chromium without a network."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mechnum.report.blocks import Caption, Table
from mechnum.report.page import Page, Section
from mechnum.report.saving import save

ALL_DRAWN = "document.documentElement.dataset.drawn === 'all'"
HEADS = "#effect-of-each-head"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    from .synthetic import trace

    return save(trace(), tmp_path_factory.mktemp("report"))[0]


@pytest.fixture
def page(browser, report):
    browser.open(report)
    browser.wait_for(ALL_DRAWN)
    return browser


def test_opens_without_requests_or_complaints(browser, report):
    browser.open(report)
    browser.wait_for(ALL_DRAWN)
    assert browser.requests == [report.as_uri()]
    assert browser.complaints == []
    # The reader sees the page long before the last figure.
    paints = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert browser.run(paints) < 2000


def test_every_figure_is_drawn(page):
    drawn = page.run(
        "[...document.querySelectorAll('.plot')].map(plot => ({"
        "marks: plot.querySelectorAll('.trace, .hm image, .heatmaplayer image').length,"
        "width: plot.querySelector('.main-svg').getBoundingClientRect().width}))"
    )
    assert len(drawn) == 7
    assert all(plot["marks"] > 0 and plot["width"] > 200 for plot in drawn), drawn


def test_circuitsvis_draws_heads_and_the_chosen_one(page):
    inked = (
        "[...document.querySelectorAll('.attention canvas')].map(canvas => {"
        "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
        "return data.some((value, index) => index % 4 === 3 && value > 0)})"
    )
    page.wait_for(f"{inked}.length === 5 && {inked}.every(Boolean)")
    page.run(
        "(() => {const choice = document.querySelector('.attention select');"
        "choice.value = '0'; choice.dispatchEvent(new Event('change'))})()"
    )
    page.wait_for("document.querySelector('.heads button').textContent.includes('0.0')")
    page.run("document.querySelectorAll('.heads button')[2].click()")
    assert "head 0.2" in page.run("document.querySelector('.zoom').getAttribute('aria-label')")
    assert page.run("document.querySelectorAll('.heads [aria-pressed=true]').length") == 1
    page.wait_for("document.querySelector('.zoom canvas').getBoundingClientRect().height > 200")


def test_switch_shows_the_other_effect(page):
    title = f"document.querySelector('{HEADS} .plot').textContent"
    assert "total effect" in page.run(title)
    page.run(f"document.querySelectorAll('{HEADS} .switch input')[1].click()")
    page.wait_for(f"{title}.includes('direct effect')")


def test_hover_shows_the_value(page):
    place = page.run(
        f"(() => {{document.querySelector('{HEADS}').scrollIntoView({{behavior: 'instant'}});"
        f"const box = document.querySelector('{HEADS} .nsewdrag').getBoundingClientRect();"
        "return [box.x + box.width * 0.6, box.y + box.height * 0.6]})()"
    )
    for shift in (0, 2):
        page.send("Input.dispatchMouseEvent", type="mouseMoved", x=place[0] + shift, y=place[1])
    page.wait_for(f"document.querySelector('{HEADS} .hoverlayer').textContent.includes('head 2.2')")


def test_table_sorts_filters_copies_and_saves(page):
    page.run(f"document.querySelector('{HEADS} details').open = true")
    rows = f"[...document.querySelectorAll('{HEADS} tbody tr')]"
    page.wait_for(f"{rows}.length === 16")
    column = f"{rows}.map(row => Number(row.cells[2].textContent.replace('\u2212', '-')))"
    head = f"document.querySelectorAll('{HEADS} th')[2]"
    page.run(f"{head}.querySelector('button').click()")
    values = page.run(column)
    assert values == sorted(values, reverse=True)
    assert page.run(f"{head}.getAttribute('aria-sort')") == "descending"
    page.run(f"{head}.querySelector('button').click()")
    assert page.run(column) == sorted(values)

    def filtered(text: str) -> int:
        page.run(
            f"(() => {{const input = document.querySelector('{HEADS} .filter');"
            f"input.value = {json.dumps(text)}; input.dispatchEvent(new Event('input'))}})()"
        )
        return page.run(f"{rows}.length")

    assert filtered("layer=2") == 4
    assert filtered("layer=2 head>=1") == 3
    assert filtered("total>1e9") == 0
    assert filtered("layer=1") == 4

    def press(label: str) -> None:
        page.run(
            f"[...document.querySelectorAll('{HEADS} .controls button')]"
            f".find(button => button.textContent === '{label}').click()"
        )

    press("CSV")
    table = pd.read_csv(page.downloaded("effect-of-each-head.csv"))
    assert table["layer"].tolist() == [1] * 4
    assert table["total"].is_monotonic_increasing
    press("JSON")
    content = json.loads(page.downloaded("effect-of-each-head.json").read_text())
    assert content["total"] == table["total"].tolist()
    press("Copy")
    page.wait_for("document.getElementById('status').textContent === 'Table copied'")
    page.run("document.getElementById('all-data').click()")
    everything = json.loads(page.downloaded("report-data.json").read_text())
    assert len(everything["effect-of-each-head"]["columns"]["total"]) == 16
    page.run(f"document.querySelector('{HEADS} .picture').click()")
    assert "<svg" in page.downloaded("effect-of-each-head.svg").read_text()
    assert page.complaints == []


@pytest.mark.slow
def test_dark_and_light(browser, report):
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = f"getComputedStyle(document.querySelector('{HEADS} .xtitle')).fill"
    seen = {}
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        browser.open(report)
        browser.wait_for(ALL_DRAWN)
        seen[scheme] = browser.run(f"[{ground}, {ink}]")
    assert seen["light"][0] == "rgb(255, 255, 255)"
    assert seen["dark"][0] != seen["light"][0]
    assert seen["dark"][1] != seen["light"][1]
    browser.run("document.getElementById('theme').click()")
    browser.wait_for(f"{ink} === {json.dumps(seen['light'][1])}")
    assert browser.run(ground) == seen["light"][0]
    assert browser.run("document.getElementById('theme').getAttribute('aria-pressed')") == "false"


@pytest.mark.slow
def test_phone_needs_no_sideways_scrolling(browser, report):
    browser.resize(390, 844, mobile=True)
    browser.open(report)
    browser.wait_for(ALL_DRAWN)
    assert browser.run("document.documentElement.scrollWidth") <= 390


def test_keyboard_reaches_everything_that_the_mouse_does(page):
    unreachable = page.run(
        "[...document.querySelectorAll('button, input, select, a[href], summary')]"
        ".filter(node => node.tabIndex < 0).length"
    )
    assert unreachable == 0
    unnamed = page.run(
        "[...document.querySelectorAll('button, input, select')]"
        ".filter(node => !(node.textContent.trim()"
        "|| node.getAttribute('aria-label') || node.closest('label'))).length"
    )
    assert unnamed == 0
    levels = page.run(
        "[...document.querySelectorAll('main h1, main h2, main h3, main h4')]"
        ".map(node => Number(node.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


@pytest.mark.slow
def test_prints_in_light_with_all_figures(browser, report):
    browser.prefer("dark")
    browser.open(report)
    browser.wait_for(ALL_DRAWN)
    browser.prefer("dark", media="print")
    hidden = (
        "['.contents', 'details.more', '.heads', '.attention select'].every(name =>"
        "document.querySelector(name).getClientRects().length === 0)"
    )
    assert browser.run(hidden)
    assert browser.run("getComputedStyle(document.body).color") == "rgb(28, 33, 39)"
    assert len(browser.send("Page.printToPDF")["data"]) > 100_000
    assert browser.complaints == []


@pytest.mark.slow
def test_sentences_in_tables_are_broken_into_lines_and_all_columns_are_printed(browser, tmp_path):
    sentence = "What must be known to compare the two, in a sentence that is long. " * 4
    columns = {name: ["some words of it", "x"] for name in "abcdef"}
    frame = pd.DataFrame({**columns, "number": [0.123456, 2.0], "note": [sentence, ""]})
    table = Table(title="Long", frame=frame, caption=Caption(text="Sentences."))
    path = Page(title="T", sections=[Section("S", [table])]).save(tmp_path / "long.html")
    browser.open(path)
    browser.wait_for("document.querySelectorAll('tbody tr').length === 2")
    wide = "document.querySelector('tbody tr').lastElementChild.getBoundingClientRect().width"
    assert 100 < browser.run(wide) < 760
    browser.resize(800, 1100)
    browser.prefer("light", media="print")
    fits = (
        "document.querySelector('table').scrollWidth <= document.querySelector('main').clientWidth"
    )
    assert browser.run(fits)


@pytest.mark.slow
def test_a_table_of_46080_neurons(browser, tmp_path):
    rng = np.random.default_rng(0)
    count = 46_080
    frame = pd.DataFrame(
        {
            "layer": np.repeat(np.arange(30), 1536),
            "neuron": np.tile(np.arange(1536), 30),
            "total": rng.normal(size=count),
            "direct": rng.normal(size=count),
            "period": rng.choice([2.0, 5.0, 10.0, 100.0], count),
            "nrmse": rng.random(count),
        }
    )
    page = Page("Neurons", [Section("All", [Table("Neurons", frame, Caption("All of them"))])])
    path = page.save(tmp_path / "neurons.html")
    assert path.stat().st_size < 10e6
    browser.open(path)
    browser.wait_for("document.querySelectorAll('tbody tr').length === 100")
    assert (
        browser.run("performance.timing.loadEventEnd - performance.timing.navigationStart") < 2000
    )
    assert browser.run("document.querySelector('.count').textContent") == "100 of 46080 rows"
    browser.run("document.querySelectorAll('th button')[2].click()")
    largest = browser.run("Number(document.querySelector('tbody tr').cells[2].textContent)")
    assert largest == pytest.approx(frame["total"].max(), rel=1e-3)
    assert browser.complaints == []


def test_what_is_shown_can_be_asked_for(browser, tmp_path):
    """Rounded numbers as they stand in the table, and columns whose names are not plain words."""
    frame = pd.DataFrame({"T_in": [2.132075, 5.38095, None], "a+b_share": [0.7, 0.2, 0.9]})
    page = Page("Rows", [Section("Rows", [Table("Rows", frame, Caption("Some."))])])
    browser.open(page.save(tmp_path / "rows.html"))
    browser.wait_for("document.querySelectorAll('tbody tr').length === 3")
    for text, rows in (("T_in=2.132", 1), ("a+b_share>0.5", 2), ("T_in=2.13", 0), ("t_in<6", 2)):
        browser.run(
            f"(() => {{const box = document.querySelector('.filter'); box.value = '{text}';"
            "box.dispatchEvent(new Event('input'))})()"
        )
        assert browser.run("document.querySelectorAll('tbody tr').length") == rows, text


@pytest.mark.slow
def test_a_prompt_of_512_tokens(browser, tmp_path):
    """Its last tokens and the heads of the largest effects are drawn, and the page says so."""
    from .synthetic import trace

    size = 512
    rows = np.tril(np.random.default_rng(0).random((4, 4, size, size)))
    pattern = rows / rows.sum(-1, keepdims=True)
    groups = {node.path: node.to_dataset() for node in trace().subtree}
    groups["/attention"] = xr.Dataset(
        {"pattern": (("layer", "head", "query", "key"), pattern)},
        {"layer": range(4), "head": range(4)},
    )
    groups["/prompts"] = (
        groups["/prompts"]
        .drop_dims("position")
        .assign_coords(token=("position", [f" {index}" for index in range(size)]))
    )
    long = xr.DataTree.from_dict(groups)
    path = save(long, tmp_path)[0]
    assert path.stat().st_size < 10e6
    browser.open(path)
    browser.wait_for(ALL_DRAWN)
    paints = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    assert browser.run(paints) < 2000
    said = browser.run("document.querySelector('figure.attention').textContent")
    assert "The last 128 of 512 tokens are here. The 7 heads with the largest total" in said
    assert browser.run("document.querySelectorAll('.strip li').length") == 512
    assert browser.complaints == []
