"""A page with parts: contents of two levels that a keyboard and a screen reader can use."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mechnum.report.page import Page, Part, Section
from mechnum.report.trace import build_page

from .synthetic import trace

ALL_DRAWN = "document.documentElement.dataset.drawn === 'all'"


@pytest.fixture
def page(browser, tmp_path):
    sections = build_page(trace()).sections
    parts = [Part("First", sections, "What it shows."), Part("Second", sections, "And this.")]
    path = Page("Whole", [Section("What was asked", [])], parts=parts).save(tmp_path / "page.html")
    browser.open(path)
    browser.wait_for(ALL_DRAWN)
    return browser


@pytest.mark.slow
def test_headings_and_contents_follow_each_other(page):
    assert page.complaints == []
    levels = page.run(
        "[...document.querySelectorAll('main h1, main h2, main h3, main h4')]"
        ".map(heading => Number(heading.tagName[1]))"
    )
    assert levels[:4] == [1, 2, 2, 3]
    assert all(below - above <= 1 for above, below in pairwise(levels))
    # Every entry leads to a section of its title, and those of parts are within theirs.
    assert page.run(
        "[...document.querySelectorAll('.contents a')].every(link => {"
        "const place = document.querySelector(link.hash);"
        "return place.tagName === 'SECTION' && place.querySelector('h2, h3').textContent"
        " === link.textContent && document.querySelectorAll(link.hash).length === 1})"
    )
    nested = "document.querySelectorAll('.contents ol ol a').length"
    assert page.run(nested) == page.run("document.querySelectorAll('.part > section').length") > 4


@pytest.mark.slow
def test_the_contents_mark_what_is_read(page):
    current = "[...document.querySelectorAll('[aria-current]')].map(link => link.textContent)"
    for title in ("Heads", "Second"):
        page.run(
            "document.documentElement.style.scrollBehavior = 'auto';"
            f"[...document.querySelectorAll('.contents a')].find(a => a.textContent === '{title}')"
            ".click()"
        )
        page.wait_for(f"{current}.join() === '{title}'")
