"""Progress bars on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mechnum.progress import reported_to

if TYPE_CHECKING:
    from rich.progress import TaskID


@contextmanager
def bars(quiet: bool) -> Iterator[None]:
    """Draw what the library tells about its progress; nothing when quiet or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    running: dict[str, TaskID] = {}
    # Transient, so that only the results stay on the screen.
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:

        def draw(what: str, done: int, total: int) -> None:
            if what not in running:
                running[what] = display.add_task(what, total=None)
            if done:  # before that the bar pulses
                display.update(running[what], completed=done, total=total)
            if done >= total:
                display.remove_task(running.pop(what))

        with reported_to(draw):
            yield
