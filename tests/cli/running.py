"""Runs commands as the shell would."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import pytest

from mechnum.cli import main

Run = Callable[..., tuple[object, str, str]]


def runner(monkeypatch, capsys) -> Run:
    """Runs `mechnum` with the arguments; gives exit code, standard output and standard error."""

    # What main sets goes back to what it was.
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)

    def run(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["mechnum", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return run
