"""The pages about messages are about messages that exist, and the index has them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.tools.messages import ErrorPage, all_messages, error_pages
from docs.tools.reference import PACKAGES, public_names

ROOT = Path(__file__).parents[2]


def modules(part: str) -> list[Path]:
    return sorted((ROOT / part).rglob("*.py"))


@pytest.mark.parametrize("page", error_pages(), ids=lambda page: page.path.stem)
def test_messages_of_a_page_are_in_the_sources(page: ErrorPage):
    assert set(page.messages) <= {message.text for message in all_messages()}


def test_every_refusal_with_words_of_its_own_is_listed():
    """As many as a search of the text finds calls with a text in them, tests left out."""
    count = 0
    for folder in ("mechnum", "circuits"):
        for path in (ROOT / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            count += len(
                re.findall(r"(?:MechnumError|InvalidInput|TooFewPairs)\(\s*f?[\"']", source)
            )
    listed = [message for message in all_messages() if message.text.strip("…: ")]
    assert count <= len(listed) <= count + 40


def test_an_example_shows_a_message_of_its_page():
    """The printed refusal fits one of the page's messages, whatever stands for …."""
    for page in error_pages():
        shown = " ".join(page.path.read_text(encoding="utf-8").split("## An example")[1].split())
        patterns = [re.escape(text).replace("…", ".+?") for text in page.messages]
        halves = [pattern.split(":\\ ")[0] for pattern in patterns]
        assert any(re.search(half, shown) for half in halves), page.path.name


def test_every_public_name_is_in_the_reference():
    import mechnum

    packages = set(PACKAGES)
    for name in mechnum.__all__:
        if (ROOT / "mechnum" / name).is_dir():
            assert f"mechnum.{name}" in packages
    for package in packages:
        module = __import__(package, fromlist=["_"])
        listed = {name.short for name in public_names(package)}
        subpackages = {name for name in module.__all__ if f"{package}.{name}" in packages}
        assert set(module.__all__) - subpackages == listed
