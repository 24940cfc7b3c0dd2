"""What commands say of themselves in what they write."""

from __future__ import annotations

import shlex
import sys


def command_line() -> str:
    """The command that runs, as one would type it."""
    return shlex.join(["mechnum", *sys.argv[1:]])
