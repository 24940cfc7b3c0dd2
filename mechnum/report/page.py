"""A page: sections of blocks, rendered into one HTML file that needs nothing outside itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechnum.errors import MechnumError
from mechnum.files import replacing
from mechnum.report import assets, theme
from mechnum.report.blocks import Attention, Block, Figure, Table

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True)
class Section:
    """A part of a page with a title of its own in the contents."""

    title: str
    blocks: Sequence[Block]
    lead: str = ""


@dataclass(frozen=True)
class Part:
    """Sections of a page that belong together, such as those of one measurement of several."""

    title: str
    sections: Sequence[Section]
    lead: str = ""


@dataclass(frozen=True)
class Page:
    """A report.

    `title` and `subtitle` head it, `lead` says in a sentence or two what was found, `sections`
    follow, and after them `parts`, which have their sections below them in the contents. `html()`
    gives the whole file: styles, scripts and data are inside, and its content security policy
    forbids every request.
    """

    title: str
    sections: Sequence[Section]
    lead: str = ""
    subtitle: str = ""
    parts: Sequence[Part] = ()

    @property
    def blocks(self) -> list[Block]:
        """What all sections are made of, in the order of the page."""
        sections = [*self.sections, *(own for part in self.parts for own in part.sections)]
        return [block for section in sections for block in section.blocks]

    def figure(self, title: str) -> Figure:
        """The figure of this title, which a notebook shows with its caption; the first of several.

        Raises:
            MechnumError: where the page has none of this title.
        """
        figures = {
            block.title: block for block in reversed(self.blocks) if isinstance(block, Figure)
        }
        if title not in figures:
            names = ", ".join(map(repr, reversed(figures))) or "another page's"
            raise MechnumError(f"the page has no figure {title!r}: take one of {names}")
        return figures[title]

    def html(self) -> str:
        """The page as one HTML document."""
        blocks = self.blocks
        libraries = []
        # Maps in tables open as figures.
        opening = any(isinstance(block, Table) and block.maps is not None for block in blocks)
        if opening or any(isinstance(block, Figure) for block in blocks):
            libraries.append(assets.plotly_script())
        if any(isinstance(block, Attention) for block in blocks):
            libraries.append(assets.circuitsvis_script())
        return (
            _environment()
            .get_template("page.html.j2")
            .render(
                page=self,
                slug=_Slugs(),
                style=assets.style(),
                libraries=[assets.packed(library) for library in libraries],
                script=assets.own_script(),
                themes={mode: theme.template(mode) for mode in ("light", "dark")},
            )
        )

    def save(self, path: str | Path) -> Path:
        """Write the page to `path`; the file appears whole or not at all."""
        with replacing(path) as temporary:
            temporary.write_text(self.html(), encoding="utf-8")
        return Path(path)


class _Slugs:
    """Anchor names, unique within one page."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def __call__(self, title: str) -> str:
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "part"
        self._used[name] = self._used.get(name, 0) + 1
        return name if self._used[name] == 1 else f"{name}-{self._used[name]}"


_KEPT_TOGETHER = re.compile(
    r"(?<=\d) (?=%)|(?<=[≤≥]) (?=\d)|(?<=\b\w) (?=[=<] [\d\u2212])|(?<=\b\w [=<]) (?=[\d\u2212])"
)
"""Spaces at which no line breaks: before % and in `T = 10`, `k = 5`, `p < 0.001`."""


def _unbroken(value: Any) -> Any:
    """A text that keeps numbers together with what they are of."""
    # Markup, as of data and scripts, is left as it is.
    return _KEPT_TOGETHER.sub("\N{NO-BREAK SPACE}", value) if type(value) is str else value


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(assets.TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_unbroken,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    kwargs: dict[str, Any] = {"separators": (",", ":"), "allow_nan": False, "sort_keys": False}
    environment.policies["json.dumps_kwargs"] = kwargs
    return environment
