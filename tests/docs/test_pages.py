"""The documentation says what is so.

A page is one test: its blocks share their names, and so must run in one process, in order.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

pytest.importorskip("sybil")

from docs.tools.examples import PageError, check_page, write_page

ROOT = Path(__file__).parents[2]
ERRORS = sorted((ROOT / "docs" / "errors").glob("*.md"))
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")} - {*ERRORS})
CODE = re.compile(r"^```(python|sh)$", re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def with_code(paths: list[Path]) -> list[Path]:
    return [path for path in paths if CODE.search(path.read_text(encoding="utf-8"))]


@pytest.fixture(autouse=True)
def as_users_run_it(unchecked, monkeypatch):
    """What the package refuses itself, and a shell's warnings."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)


@pytest.mark.slow
@pytest.mark.parametrize("path", with_code(PAGES), ids=name)
def test_code_prints_what_the_page_shows(path):
    check_page(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", with_code(ERRORS), ids=name)
def test_example_raises_what_the_page_shows(path):
    check_page(path)


def test_other_output_is_found_and_can_be_written(tmp_path):
    """A page that shows something else fails, and is right after it was written."""
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    with pytest.raises(PageError, match="shows\n3"):
        check_page(page)
    write_page(page)
    assert "```text\n2\n```" in page.read_text()
    check_page(page)


def test_output_that_is_not_shown_is_found(tmp_path):
    """Also a refusal, so that no example fails unseen."""
    page = tmp_path / "page.md"
    page.write_text("```python\nimport mechnum as mn\nmn.load('./nothing')\n```\n")
    with pytest.raises(PageError, match="no file or folder"):
        check_page(page)
