"""A figure of a page shows itself in a notebook: what plotly draws, and what its caption says."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from mechnum.errors import MechnumError
from mechnum.report import theme
from mechnum.report.page import Page, Part, Section
from mechnum.report.trace import build_page

from .synthetic import trace

TITLE = "Effect of each head"
NO_BREAK = "\N{NO-BREAK SPACE}"


def test_a_figure_is_shown_with_its_whole_caption(monkeypatch):
    """Through IPython's `display`, as a notebook calls it; the caption as HTML and as text."""
    shown = []
    notebook = ModuleType("IPython.display")
    notebook.display = lambda item, raw=False: shown.append((item, raw))
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    figure = build_page(trace()).figure(TITLE)
    figure._ipython_display_()
    (drawn, _), (caption, raw) = shown
    assert drawn is figure.views["total"]
    # Dark ink needs a light ground, also where the notebook is dark.
    assert drawn.layout.template.layout.paper_bgcolor == theme.GROUND["light"]
    assert raw
    text = caption["text/plain"].splitlines()
    assert text[0] == f"{TITLE}: {figure.caption.text}"
    parts = ["Effect", "Estimand", "n", "Interval", "Null"]
    assert [line.split(":")[0] for line in text[1:]] == parts
    assert text[1] == "Effect: total (other views: direct; indirect)"
    for name, said in figure.caption.facts:
        # A number and its percent sign stay on one line.
        assert f"<b>{name}</b> {said.replace(' %', NO_BREAK + '%')}" in caption["text/html"]
    assert f"95{NO_BREAK}%" in caption["text/html"]


def test_figures_are_found_in_sections_and_parts():
    page = build_page(trace())
    within = Page("Whole", [Section("Words", [])], parts=[Part("Part", page.sections)])
    assert within.figure(TITLE).title == TITLE


def test_an_unknown_figure_is_refused_with_those_that_there_are():
    with pytest.raises(MechnumError, match=f"no figure 'Heads': take one of 'Errors', .*'{TITLE}'"):
        build_page(trace()).figure("Heads")
    with pytest.raises(MechnumError, match="take one of another page's"):
        Page("Empty", []).figure(TITLE)
