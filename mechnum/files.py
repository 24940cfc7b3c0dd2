"""Files that are written whole or not at all, in folders that can be written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from mechnum.errors import MechnumError


def check_writable(folder: str | Path) -> None:
    """Refuse a folder that could not be written, before the computation that would fill it.

    No folder is made yet, so that a computation that fails leaves nothing behind. A file without a
    name is written, since permissions do not tell of all places whether one can be.

    Raises:
        MechnumError: it is a file, or neither it nor the first folder above it can be written.
    """
    there = Path(folder).absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise MechnumError(f"{there} is a file: give a folder as out")
    try:
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise MechnumError(
            f"{there} cannot be written ({error.strerror}): give another folder as out"
        ) from None


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path` that replaces it when the block ends without an error.

    Missing folders are made. After an error or a kill the old file, if any, is as it was.

    Raises:
        MechnumError: where nothing can be written there.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise MechnumError(
            f"cannot write {target} ({error.strerror}): give a folder that can be written"
        ) from error
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise MechnumError(
            f"cannot write {target} ({error.strerror}): give a place that can be written"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
