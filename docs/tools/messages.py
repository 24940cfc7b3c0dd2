"""Every message that the package refuses a request with, read from its sources."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PACKAGES = {"mechnum": ROOT / "mechnum", "mechnum.circuits": ROOT / "circuits"}
PAGES = ROOT / "docs" / "errors"
BASE_ERROR = "MechnumError"


@dataclass(frozen=True)
class Message:
    """One message of one line of the sources.

    Attributes:
        text: the message, with … for what is filled in.
        module: dotted name of the module that raises it.
    """

    text: str
    module: str
    line: int

    @property
    def wrong(self) -> str:
        """The part before the advice."""
        return self.text.rpartition(": ")[0] or self.text

    @property
    def advice(self) -> str:
        """What to do about it; empty where the message does not say."""
        return self.text.rpartition(": ")[2] if ": " in self.text else ""


@dataclass(frozen=True)
class ErrorPage:
    """A page about messages, as the head of its file describes it.

    Attributes:
        messages: the messages that it explains, as they stand in the sources.
    """

    path: Path
    title: str
    topic: str
    messages: tuple[str, ...]


@cache
def all_messages() -> tuple[Message, ...]:
    """The messages of all modules, in the order of modules and lines."""
    trees = {
        _module_name(package, folder, path): ast.parse(path.read_text(encoding="utf-8"))
        for package, folder in PACKAGES.items()
        for path in sorted(folder.rglob("*.py"))
    }
    errors = _error_names(trees.values())
    found = [
        Message(text, module, call.lineno)
        for module, tree in trees.items()
        for call in _calls(tree, errors)
        if any(map(str.isalpha, text := _text(call.args[0])))
    ]
    return tuple(sorted(found, key=lambda message: (message.module, message.line)))


@cache
def error_pages() -> tuple[ErrorPage, ...]:
    """The pages that are written by hand, in the order of their files."""
    return tuple(
        ErrorPage(path, head["title"], head["topic"], tuple(head["messages"]))
        for path in sorted(PAGES.glob("*.md"))
        if "messages" in (head := front_matter(path))
    )


def front_matter(path: Path) -> dict[str, object]:
    """The YAML at the head of a page."""
    content = path.read_text(encoding="utf-8")
    if not content.startswith("---\n"):
        return {}
    return yaml.safe_load(content.split("---\n", 2)[1])


def _module_name(package: str, folder: Path, path: Path) -> str:
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join([package, *(part for part in parts if part != "__init__")])


def _error_names(trees: Iterable[ast.Module]) -> set[str]:
    """`MechnumError` and every class that is made from it, by whatever number of steps."""
    names = {BASE_ERROR}
    classes = [
        (node.name, {ast.unparse(base) for base in node.bases})
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    for _ in classes:
        names |= {name for name, bases in classes if bases & names}
    return names


def _calls(tree: ast.Module, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in names
            and node.args
        ):
            yield node


def _text(node: ast.expr) -> str:
    """A message as it is written, with … for expressions."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(_text, values))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
        case _:
            return "…"
