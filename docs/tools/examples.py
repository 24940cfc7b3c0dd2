"""Runs the code of a page and compares what it prints with the output that the page shows.

On a page, a `python` block is run, and a `text` block after it is what it prints; a block that is
refused ends with the refusal. Lines of `sh` blocks that call `mechnum` are run too, other lines of
them are not. Blocks of a page share their names. `python -m docs.tools.examples PAGE ...` writes
what is printed into the pages.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

from mechnum.cli import main
from mechnum.errors import MechnumError

_SAME = doctest.OutputChecker()
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class PageError(AssertionError):
    """A page shows something else than its code prints."""


@dataclass
class _Printed:
    """What the blocks since the last output have printed, and the outputs of the page."""

    pending: str = ""
    from_shell: bool = False
    outputs: list[tuple[Example, str]] = field(default_factory=list)

    def python(self, example: Example) -> None:
        self.settle(example)
        # The line numbers of a traceback are those of the page.
        source = "\n" * example.line + str(example.parsed)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(compile(source, example.path, "exec"), example.namespace)
            except MechnumError as refusal:
                print(f"{type(refusal).__name__}: {refusal}")
        self.pending, self.from_shell = out.getvalue(), False

    def shell(self, example: Example) -> None:
        self.settle(example)
        lines = str(example.parsed).replace("\\\n", " ").splitlines()
        calls = [shlex.split(line, comments=True) for line in lines if line.startswith("mechnum ")]
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for call in calls:
                _command(call)
        self.pending, self.from_shell = out.getvalue(), True

    def output(self, example: Example) -> None:
        self.outputs.append((example, self.pending))
        self.pending = ""

    def settle(self, example: Example | None) -> None:
        """What Python prints must be shown; what commands print need not be."""
        if self.pending.strip() and not self.from_shell:
            where = f"before line {example.line}" if example else "at the end"
            raise PageError(f"output that is not shown, {where}:\n{self.pending}")
        self.pending = ""


def run_page(path: Path) -> list[tuple[Example, str]]:
    """Runs a page in a new folder; gives the outputs that it shows, and what was printed."""
    printed = _Printed()
    parsers = [
        CodeBlockParser("python", printed.python),
        CodeBlockParser("sh", printed.shell),
        CodeBlockParser("text", printed.output),
    ]
    document = Sybil(parsers=parsers, path=str(path.parent)).parse(path)
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        for example in document.examples():
            example.evaluate()
        printed.settle(None)
    return printed.outputs


def check_page(path: Path) -> None:
    """Runs a page.

    Raises:
        PageError: where it shows something else than its code prints.
    """
    for example, got in run_page(path):
        if not _SAME.check_output(str(example.parsed), got, _FLAGS):
            raise PageError(
                f"{path}, line {example.line} shows\n{example.parsed}\nbut its code prints\n{got}"
            )


def write_page(path: Path) -> None:
    """Runs a page and writes into it what its code prints; outputs that match stay as they are."""
    text = path.read_text(encoding="utf-8")
    for example, got in reversed(run_page(path)):
        if not _SAME.check_output(str(example.parsed), got, _FLAGS):
            lines = "\n".join(line.rstrip() for line in got.strip("\n").splitlines())
            text = f"{text[: example.start]}```text\n{lines}\n```{text[example.end :]}"
    path.write_text(text, encoding="utf-8")


def _command(call: list[str]) -> None:
    with mock.patch.object(sys, "argv", call):
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise PageError(f"{shlex.join(call)} ended with {end.code}") from None


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write_page(Path(name).resolve())
