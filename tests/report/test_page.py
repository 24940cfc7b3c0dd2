from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from mechnum.report import assets
from mechnum.report.blocks import Attention, Caption, Facts, Figure, Table, Text, Tokens
from mechnum.report.page import Page, Section

EVIL = '</script><script>alert("x")</script><b>&'


class Document(HTMLParser):
    """The tags of a page with their attributes, the text, and what its data scripts hold."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data):
        if self.lasttag == "script" and self.scripts:
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        else:
            self.text += data.replace("\N{NO-BREAK SPACE}", " ")

    @property
    def data(self) -> dict[str, object]:
        return {
            attrs["id"]: json.loads(text)
            for attrs, text in self.scripts
            if attrs.get("type") == "application/json"
        }


def page_with(*blocks) -> Page:
    return Page("A page", [Section("Part", list(blocks))])


def figure(title: str = "A figure", **fields) -> Figure:
    frame = pd.DataFrame({"x": [1, 2], "y": [np.float64(0.5), np.nan]})
    drawn = go.Figure(go.Scatter(x=[1, 2], y=np.array([0.5, np.nan])), layout={"height": 200})
    return Figure(title, {"one": drawn}, Caption("What it shows"), "In words", frame, **fields)


def test_everything_is_inside_the_file():
    document = Document(page_with(figure()).html())
    for tag, attrs in document.tags:
        for name in ("src", "href", "srcset", "poster", "action"):
            assert (attrs.get(name) or "#")[:1] in "#d", (tag, attrs)  # an anchor or data:
        assert tag not in ("iframe", "object", "embed", "base")
    policy = next(a["content"] for t, a in document.tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_text_from_results_cannot_become_markup():
    frame = pd.DataFrame({EVIL: [EVIL]})
    caption = Caption(EVIL, EVIL, EVIL, EVIL, EVIL)
    page = Page(
        EVIL,
        [
            Section(
                EVIL,
                [
                    Text([EVIL], [(EVIL, EVIL)]),
                    Facts([(EVIL, EVIL)]),
                    Tokens([EVIL], {0: EVIL}, caption),
                    Table(EVIL, frame, caption),
                    Figure(EVIL, {EVIL: go.Figure(layout={"title": EVIL})}, caption, EVIL, frame),
                    Attention(EVIL, [EVIL], {0: {0: np.ones((1, 1))}}, caption, EVIL),
                ],
                EVIL,
            )
        ],
        EVIL,
        EVIL,
    )
    html = page.html()
    html = html.replace(assets.own_script(), "")
    assert "alert(" in html
    assert "<script>alert" not in html
    assert "<b>" not in html
    assert {EVIL: [EVIL]} in [content.get("columns") for content in Document(html).data.values()]


def test_numbers_stay_on_one_line_with_what_they_are_of():
    said = "100 % at T = 10 (p < 0.001), α = \N{MINUS SIGN}1; a + b = c, 5 of R² = 0.5"
    html = page_with(Text([said]), figure("9 % at k = 3")).html()
    kept = said.replace(" %", "~%").replace(" = 10", "~=~10").replace(" < ", "~<~")
    kept = kept.replace(" = \N{MINUS SIGN}1", "~=~\N{MINUS SIGN}1")
    assert kept.replace("~", "\N{NO-BREAK SPACE}").replace("<", "&lt;") in html
    assert '"title":"9 % at k = 3"' in html  # Data are as they were given.


def test_data_is_strict_json_of_plain_numbers():
    html = page_with(
        figure(), Table("A table", pd.DataFrame({"v": [np.float32(0.1)]}), Caption(""))
    )
    document = Document(html.html())
    assert document.data["a-figure-data"]["columns"] == {"x": [1, 2], "y": [0.5, None]}
    assert document.data["a-figure-figure"]["one"]["data"][0]["y"] == [0.5, None]
    assert document.data["a-table-data"]["columns"] == {"v": [0.1]}
    assert "np.float" not in html.html()
    assert "bdata" not in html.html()


def test_arrays_that_plotly_packs_are_unpacked():
    grid = np.array([[1.0, np.nan], [2.0, 3.0]], dtype=np.float32)
    drawn = go.Figure(go.Heatmap(z=grid, x=np.array([4, 5], dtype=np.uint8)))
    trace = Figure("x", {"x": drawn}, Caption(""), "", pd.DataFrame()).payload["x"]["data"][0]
    assert trace["z"] == [[1.0, None], [2.0, 3.0]]
    assert trace["x"] == [4, 5]


def test_anchors_are_unique_and_the_contents_lead_to_them():
    page = Page("P", [Section("Same", [figure("Same"), figure("Same")]), Section("Same", [])])
    document = Document(page.html())
    ids = [attrs["id"] for _, attrs in document.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for tag, attrs in document.tags if tag == "a"]
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_every_figure_says_in_words_what_it_shows():
    document = Document(page_with(figure()).html())
    plot = next(attrs for _, attrs in document.tags if attrs.get("class") == "plot")
    assert plot["role"] == "img"
    assert plot["aria-label"] == "In words"
    ids = {attrs.get("id") for _, attrs in document.tags}
    assert plot["aria-describedby"] in ids


def test_caption_names_only_what_is_given():
    caption = Caption("Text", n="3 pairs", null="0")
    assert caption.facts == [("n", "3 pairs"), ("Null", "0")]
    html = page_with(Table("T", pd.DataFrame({"a": [1]}), caption)).html()
    assert "<dt>n</dt><dd>3 pairs</dd>" in html
    assert "Estimand" not in html.replace(assets.own_script(), "")


def test_scripts_are_carried_only_where_they_are_needed():
    text = page_with(Text(["No figure"])).html()
    assert 'class="library"' not in text
    assert len(text) < 100_000
    drawn = page_with(figure()).html()
    assert drawn.count(assets.packed(assets.plotly_script())) == 1
    assert assets.packed(assets.circuitsvis_script()) not in drawn
    assert len(drawn) < 2_100_000


@pytest.mark.parametrize("script", [assets.plotly_script, assets.circuitsvis_script])
def test_libraries_are_whole_and_look_for_no_files(script):
    carried = gzip.decompress(base64.b64decode(assets.packed(script()))).decode()
    assert carried == script()
    text = carried.lower()
    assert "sourcemappingurl=" not in re.sub(r"/\*.*?\*/", "", text[-500:])


def test_long_tables_say_what_was_left_out():
    table = Table("Long", pd.DataFrame({"n": range(30)}), Caption(""), most=10)
    assert len(table.payload["columns"]["n"]) == 10
    assert table.payload["rows"] == 30
    assert "The first 10 of 30 rows are here" in page_with(table).html()


def test_spaces_and_line_ends_of_tokens_are_visible():
    cells = Tokens([" 7", "\n"], {1: "end"}, Caption("")).cells
    assert cells == [("\N{OPEN BOX}7", 0, ""), ("\N{RETURN SYMBOL}", 1, "end")]


def test_a_page_is_saved_whole(tmp_path):
    page = page_with(Text(["naïve"]))
    path = page.save(tmp_path / "new" / "page.html")
    assert path.read_text(encoding="utf-8") == page.html()
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]
