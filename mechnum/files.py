"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mechnum.errors import MechnumError


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
