"""The pages about messages are about messages that exist, and the lists have all that there is."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import mechnum
from docs.tools.messages import ErrorPage, all_messages, error_pages
from docs.tools.reference import PACKAGES, public_names

ROOT = Path(__file__).parents[2]
# A refusal with a text; the one that joins a library's reason and an advice has no words.
REFUSAL = re.compile(
    r"(?:MechnumError|InvalidInput|TooFewPairs)\(\s*f?[\"'](?!(?:\{[^}]*\}(?:: )?)+[\"'])"
)


@pytest.mark.parametrize("page", error_pages(), ids=lambda page: page.path.stem)
def test_messages_of_a_page_are_in_the_sources(page: ErrorPage):
    assert set(page.messages) <= {message.text for message in all_messages()}


@pytest.mark.parametrize("page", error_pages(), ids=lambda page: page.path.stem)
def test_the_example_of_a_page_is_refused_with_one_of_its_messages(page: ErrorPage):
    shown = " ".join(page.path.read_text(encoding="utf-8").split("## An example")[1].split())
    patterns = [re.escape(text).replace("…", ".+?") for text in page.messages]
    assert any(re.search(pattern, shown) for pattern in patterns)


def test_every_refusal_is_listed():
    """As many as a search of the text finds."""
    paths = [path for part in ("mechnum", "circuits") for path in (ROOT / part).rglob("*.py")]
    found = sum(len(REFUSAL.findall(path.read_text(encoding="utf-8"))) for path in paths)
    assert found == len(all_messages()) > 500


def test_every_package_has_a_page_of_the_reference():
    packages = [name for name in mechnum.__all__ if (ROOT / "mechnum" / name).is_dir()]
    assert {f"mechnum.{name}" for name in packages} <= set(PACKAGES)


@pytest.mark.parametrize("package", ["mechnum", *PACKAGES])
def test_every_public_name_is_in_the_reference(package):
    """What a package says that it offers, but for its subpackages and what it holds itself."""
    offered = set(import_module(package).__all__)
    elsewhere = {name.rpartition(".")[2] for name in PACKAGES if name.startswith(f"{package}.")}
    own = {"MechnumError", "__version__"} if package == "mechnum" else set()
    assert offered - elsewhere - own == {name.short for name in public_names(package)}
