"""The cache folder, and folders in it that are built once and never seen half built."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from mechnum.errors import MechnumError


def cache_root() -> Path:
    """The folder that holds everything this package keeps on disk.

    `MECHNUM_CACHE` where it is set, else `$XDG_CACHE_HOME/mechnum`, else `~/.cache/mechnum`.
    The folder need not exist.
    """
    if named := os.environ.get("MECHNUM_CACHE"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mechnum"


def build_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Return `folder`, first making it with `build` if it does not exist.

    `build(part)` fills the empty folder `part`, which lies beside `folder` and is renamed to it at
    the end. So `folder` is absent or complete, whenever the process is killed. A lock lets
    one process build and the others wait for its result; the system releases it when its
    holder dies, and the next holder removes what was left of `part`.

    Raises:
        MechnumError: the cache cannot be written, and whatever `build` refuses.
    """
    if folder.is_dir():
        return folder
    part = folder.with_name(f".{folder.name}.part")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if folder.is_dir():  # another process built it while this one waited
                return folder
            if part.exists():
                shutil.rmtree(part)
            part.mkdir()
            try:
                build(part)
                _sync(part)
                part.rename(folder)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
    except OSError as error:
        raise MechnumError(
            f"the cache folder {folder.parent} cannot be written ({error.strerror or error}): "
            "make room or get write permission there, or set MECHNUM_CACHE to another folder"
        ) from error
    return folder


def _sync(folder: Path) -> None:
    """Put the files on disk, since a rename may reach the disk before what it renames."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
