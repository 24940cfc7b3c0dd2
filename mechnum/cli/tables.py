"""Tables and other Rich output on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

# Wide enough that a table in a file or a pipe is never wrapped.
_FILE_WIDTH = 1000


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print aligned columns; text that looks like a number goes to the right."""
    from rich.table import Table
    from rich.text import Text

    cells = [[str(cell) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, column in enumerate(columns):
        numeric = all(_is_number(row[index]) for row in cells)
        table.add_column(column, justify="right" if numeric else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    to_stdout(table)


def to_stdout(renderable: RenderableType) -> None:
    """Print to the terminal's width, or without wrapping to a file or a pipe."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _FILE_WIDTH
    Console(width=width, highlight=False).print(renderable)


def _is_number(cell: str) -> bool:
    try:
        float(cell.rstrip("%"))
    except ValueError:
        return cell in ("", "-")
    return True
