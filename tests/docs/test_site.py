"""The site as it is built: opened from its folder, no page asks for anything else or complains."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")

from docs.tools.browser import Browser, find_chromium

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--site-dir", str(folder)]
    said = subprocess.run(
        build, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True
    )
    assert said.returncode == 0, said.stderr.decode()
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium here: `apt-get install chromium`")
    with Browser(program) as browser:
        yield browser


def test_no_page_asks_for_anything_outside_the_site(site, browser):
    # The page of a missing address has links from the root of a server.
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    assert len(pages) > 100
    for page in pages:
        browser.open(page)
        assert browser.complaints == [], page
        elsewhere = [link for link in browser.requests if not link.startswith(site.as_uri())]
        assert elsewhere == [], page


def test_the_search_finds_pages(site, browser):
    browser.open(site / "tasks" / "fit-a-helix.html")
    browser.run(
        "(() => {const field = document.querySelector('.md-search__input');"
        "document.querySelector('#__search').click(); field.value = 'pizza';"
        "field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))})()"
    )
    browser.wait_for("document.querySelectorAll('.md-search-result__item').length > 3")
    links = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"
    wanted = (site / "tasks" / "clock-or-pizza.html").as_uri()
    assert any(link.startswith(wanted) for link in browser.run(links))
    assert browser.complaints == []
