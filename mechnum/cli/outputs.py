"""Folders that commands write into, and what they say of themselves there."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from mechnum.errors import MechnumError


def check_writable(folder: Path) -> None:
    """Refuse a folder that could not be written, before the computation that would fill it.

    Nothing is made yet, so that a computation that fails leaves nothing behind.

    Raises:
        MechnumError: it is a file, or neither it nor the first folder above it can be written.
    """
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise MechnumError(f"{there} is a file: name a folder with --out")
    if not os.access(there, os.W_OK | os.X_OK):
        raise MechnumError(f"{there} cannot be written: name another folder with --out")


def command_line() -> str:
    """The command that runs, as one would type it."""
    return shlex.join(["mechnum", *sys.argv[1:]])
