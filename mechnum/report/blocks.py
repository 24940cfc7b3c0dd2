"""What a page is made of: texts, facts, token strips, tables, figures, attention views, files."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from jaxtyping import Float

from mechnum.report.maps import Maps
from mechnum.report.notebook import display_figure
from mechnum.report.plain import columns, plain

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

DIGITS = 6  # Significant digits of the numbers in pages; exports keep all of them.
_ATTENTION_DIGITS = 4


@dataclass(frozen=True)
class Caption:
    """What a figure or table shows and how far it can be trusted.

    `text` says what to see; `estimand` what was measured, `n` over how many of what, `interval`
    how the uncertainty was found, `null` what the values would be if there were no effect.
    """

    text: str
    estimand: str = ""
    n: str = ""
    interval: str = ""
    null: str = ""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The named parts that are given, in their order."""
        parts = (
            ("Estimand", self.estimand),
            ("n", self.n),
            ("Interval", self.interval),
            ("Null", self.null),
        )
        return [(name, text) for name, text in parts if text]


@dataclass(frozen=True)
class Text:
    """Paragraphs, and below them a list of `points`: pairs of a name and what is said of it."""

    kind: ClassVar[str] = "text"
    paragraphs: Sequence[str] = ()
    points: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Facts:
    """Names with values, for settings and provenance."""

    kind: ClassVar[str] = "facts"
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Tokens:
    """A prompt as a strip of tokens with their positions and roles ("a", "op", "b", "end")."""

    kind: ClassVar[str] = "tokens"
    tokens: Sequence[str]
    roles: Mapping[int, str]
    caption: Caption

    @property
    def cells(self) -> list[tuple[str, int, str]]:
        """Token, position and role, with spaces and line ends made visible."""
        return [
            (_visible(token), index, self.roles.get(index, ""))
            for index, token in enumerate(self.tokens)
        ]


@dataclass(frozen=True)
class Table:
    """A table that readers sort, filter, copy and download.

    More than `most` rows are cut off, which the page says; order `frame` by importance before.
    `maps` are small pictures in a first column, one for each row.
    """

    kind: ClassVar[str] = "table"
    title: str
    frame: pd.DataFrame
    caption: Caption
    most: int = 50_000
    maps: Maps | None = None

    @property
    def payload(self) -> dict[str, Any]:
        """The table as plain JSON: its name, the columns, and how many rows there were."""
        table = _table(self.title, self.frame, self.most)
        return table if self.maps is None else {**table, "maps": self.maps.payload}

    @property
    def cut(self) -> str:
        """What was left out, in words; empty where nothing was."""
        return _cut(self.frame, self.most)


@dataclass(frozen=True)
class Figure:
    """A plotly figure with its caption and its data.

    `views` maps names to figures that share one place ("total", "direct", ...); with one view no
    switch is drawn. `alt` says in words what the figure shows, for those who cannot see it; `data`
    is what was drawn, as a table. `width` and `widest` are the least and largest width in pixels:
    narrower screens scroll. A notebook shows the first view, and the caption below it.
    """

    kind: ClassVar[str] = "figure"
    title: str
    views: Mapping[str, go.Figure]
    caption: Caption
    alt: str
    data: pd.DataFrame
    width: int = 320
    widest: int | None = None
    most: int = 50_000
    switch: str = "Show"

    @property
    def height(self) -> int:
        """Height of the first view in pixels."""
        return int(next(iter(self.views.values())).layout.height or 400)

    @property
    def payload(self) -> dict[str, Any]:
        """The views as plain JSON, without their template: the page's theme takes its place."""
        return {name: _bare(figure) for name, figure in self.views.items()}

    @property
    def table(self) -> dict[str, Any]:
        """The data as plain JSON, as in `Table.payload`."""
        return _table(self.title, self.data, self.most)

    @property
    def cut(self) -> str:
        """What was left out of the data table, in words; empty where nothing was."""
        return _cut(self.data, self.most)

    def _ipython_display_(self) -> None:
        display_figure(self)


@dataclass(frozen=True)
class Attention:
    """Attention patterns of heads on one prompt, drawn by CircuitsVis.

    `patterns` maps each layer to the patterns of its heads; each row of a pattern sums to 1.
    """

    kind: ClassVar[str] = "attention"
    title: str
    tokens: Sequence[str]
    patterns: Mapping[int, Mapping[int, Float[np.ndarray, "query key"]]]
    caption: Caption
    cut: str = field(default="")

    @property
    def payload(self) -> dict[str, Any]:
        """Tokens and patterns as plain JSON."""
        return {
            "tokens": [_visible(token) for token in self.tokens],
            "layers": plain(self.patterns, _ATTENTION_DIGITS),
        }


@dataclass(frozen=True)
class Files:
    """Files for other programs, which readers save from the page: program → name and content."""

    kind: ClassVar[str] = "files"
    title: str
    files: Mapping[str, tuple[str, str]]
    caption: Caption


Block: TypeAlias = Text | Facts | Tokens | Table | Figure | Attention | Files


def _visible(token: str) -> str:
    return token.replace(" ", "\N{OPEN BOX}").replace("\n", "\N{RETURN SYMBOL}")


def _bare(figure: go.Figure) -> dict[str, Any]:
    content = figure.to_plotly_json()
    layout = {key: value for key, value in content["layout"].items() if key != "template"}
    return {
        "data": plain(_unpacked(content["data"]), DIGITS),
        "layout": plain(_unpacked(layout), DIGITS),
    }


def _unpacked(content: Any) -> Any:
    """Arrays that plotly packed as base64 as arrays again.

    NaN has no JSON word but a binary one, and packed numbers cannot be read by people or rounded.
    """
    if isinstance(content, Mapping):
        if set(content) >= {"dtype", "bdata"}:
            array = np.frombuffer(base64.b64decode(content["bdata"]), dtype=content["dtype"])
            shape = str(content.get("shape", array.size)).split(",")
            return array.reshape([int(size) for size in shape])
        return {key: _unpacked(item) for key, item in content.items()}
    if isinstance(content, (list, tuple)):
        return [_unpacked(item) for item in content]
    return content


def _table(title: str, frame: pd.DataFrame, most: int) -> dict[str, Any]:
    return {"title": title, "columns": columns(frame.head(most), DIGITS), "rows": len(frame)}


def _cut(frame: pd.DataFrame, most: int) -> str:
    if len(frame) <= most:
        return ""
    return f"The first {most:,} of {len(frame):,} rows are here; the result files hold all."
