"""The site as it is built: opened from its folder, no page asks for anything else or complains."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs")

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


def test_no_page_asks_for_anything_outside_the_site(site, chromium):
    # The page of a missing address has links from the root of a server.
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    assert len(pages) > 100
    for page in pages:
        chromium.open(page)
        assert chromium.complaints == [], page
        elsewhere = [link for link in chromium.requests if not link.startswith(site.as_uri())]
        assert elsewhere == [], page


def test_the_search_finds_pages(site, chromium):
    chromium.open(site / "tasks" / "fit-a-helix.html")
    chromium.run(
        "(() => {const field = document.querySelector('.md-search__input');"
        "document.querySelector('#__search').click(); field.value = 'pizza';"
        "field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))})()"
    )
    chromium.wait_for("document.querySelectorAll('.md-search-result__item').length > 3")
    links = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"
    wanted = (site / "tasks" / "clock-or-pizza.html").as_uri()
    assert any(link.startswith(wanted) for link in chromium.run(links))
    assert chromium.complaints == []
