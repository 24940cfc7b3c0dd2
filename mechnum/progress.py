"""How far a long computation is: told by the library, drawn by whoever wants to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# Called with what is being done, the units done and the units in all.
Progress = Callable[[str, int, int], None]

# Not an argument: otherwise each function between the command and the loop would pass it on.
_listener: ContextVar[Progress | None] = ContextVar("mechnum_progress", default=None)


@contextmanager
def reported_to(listener: Progress) -> Iterator[None]:
    """Within the block, `track` and `tell` call `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: int, total: int) -> None:
    """Say that `done` units of `total` are finished; `done == total` ends it."""
    if (listener := _listener.get()) is not None:
        listener(what, done, total)


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield the items and tell how many are done.

    Args:
        total: number of items, where they have no length.
    """
    if total is None:
        if not isinstance(items, Sized):
            raise TypeError("items without a length need `total`")
        total = len(items)
    tell(what, 0, total)
    done = 0
    try:
        for item in items:
            yield item
            done += 1
            tell(what, done, total)
    finally:
        if done < total:
            tell(what, total, total)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Tell that one step runs for as long as the block does."""
    tell(what, 0, 1)
    try:
        yield
    finally:
        tell(what, 1, 1)
