"""How the figures of a page look in a notebook: the picture, and below it what its caption says."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechnum.report.blocks import Figure


def display_figure(figure: Figure) -> None:
    """Show the first view of a figure of a page, and its caption below it.

    plotly draws the view, as it is set up for this notebook; other views are in `figure.views`,
    and the caption says which one this is.
    """
    # It is there wherever a notebook asks for this.
    from IPython.display import display  # pyright: ignore[reportMissingImports]

    display(next(iter(figure.views.values())))
    display({"text/html": _caption_html(figure), "text/plain": _caption_text(figure)}, raw=True)


def _parts(figure: Figure) -> list[tuple[str, str]]:
    parts = [(figure.title, figure.caption.text), *figure.caption.facts]
    shown, *others = figure.views
    if others:  # What a page says by its switch.
        parts.insert(1, (figure.switch, f"{shown} (other views: {'; '.join(others)})"))
    return [(name, text.replace(" %", "\N{NO-BREAK SPACE}%")) for name, text in parts]


def _caption_html(figure: Figure) -> str:
    parts = ((escape(name), escape(text, quote=False)) for name, text in _parts(figure))
    lines = (f"<b>{name}</b> {text}" for name, text in parts)
    return f'<div style="max-width: 60em; font-size: 90%">{"<br>".join(lines)}</div>'


def _caption_text(figure: Figure) -> str:
    return "\n".join(f"{name}: {text}" for name, text in _parts(figure))
