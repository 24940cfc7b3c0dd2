"""Texts with numbers in them, and what stands around the numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from mechnum.errors import MechnumError

CONTEXTS = ("arithmetic", "cooking", "finance", "medicine", "time")
"""The contexts that come with the package, of 20 templates or more each."""

# 1,250 and 3.5 are one number each; 12:30 is two.
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")


@dataclass(frozen=True)
class Context:
    """Texts of one kind, each with a number or more, which others are put in the place of.

    Attributes:
        name: what the texts are about.
        texts: the texts; the numbers that they are written with do not matter.

    Raises:
        MechnumError: no texts, or one without a number.
    """

    name: str
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.texts:
            raise MechnumError(
                f"the context {self.name!r} has no text with a number in it: give one or more"
            )
        if without := [text for text in self.texts if not _NUMBER.search(text)]:
            raise MechnumError(
                f"the text {without[0][:40]!r} of {self.name!r} has no number: leave it out, or "
                "write any number where one is to stand"
            )


def own_context(name: str) -> Context:
    """A context that comes with the package.

    Raises:
        MechnumError: there is none of this name.
    """
    if name not in CONTEXTS:
        raise MechnumError(f"there is no context {name!r}: use one of {', '.join(CONTEXTS)}")
    file = resources.files("mechnum.tasks.contexts") / "templates" / f"{name}.txt"
    return Context(name, tuple(file.read_text(encoding="utf-8").splitlines()))


def around_numbers(text: str) -> tuple[str, ...]:
    """The text before, between and after its numbers: one part more than it has numbers."""
    return tuple(_NUMBER.split(text))


def has_number(text: str) -> bool:
    """Whether there is a digit in the text."""
    return _NUMBER.search(text) is not None
