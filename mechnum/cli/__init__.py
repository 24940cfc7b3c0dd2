"""The command line: each command calls one library function and prints what it gives back.

Command modules import torch and the models inside the command, so that `--help` stays quick.
"""

from __future__ import annotations

import sys
import warnings
from typing import NoReturn

from mechnum.errors import MechnumError

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command in `sys.argv` and exit: 0 done, 2 refused, 130 interrupted."""
    warnings.formatwarning = _warning_line
    try:
        from mechnum.cli.app import app

        app(prog_name="mechnum")
        sys.exit(0)
    except MechnumError as refusal:
        _stop(str(refusal), 2)
    except OSError as error:
        place = error.filename or "a file"
        reason = error.strerror or str(error)
        _stop(f"{place} cannot be read or written ({reason}): check the path and the disk", 2)
    except KeyboardInterrupt:
        _stop("interrupted", INTERRUPTED)
    except SystemExit as end:
        # Typer turns the interrupt into this code and says nothing.
        if end.code == INTERRUPTED:
            _stop("interrupted", INTERRUPTED)
        raise


def _stop(message: str, code: int) -> NoReturn:
    sys.stderr.write(_line(message))
    sys.exit(code)


def _warning_line(message: Warning | str, *_where: object, **_more: object) -> str:
    """Warnings as the refusals look, without a place in the source."""
    return _line(str(message))


def _line(message: str) -> str:
    return f"mechnum: {' '.join(message.split())}\n"
