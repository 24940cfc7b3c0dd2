"""Every figure, table and attention view says what was measured, over how many of what, how
surely, and against what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mechnum.report

TERMINAL = "summary"  # Its tables are those of the terminal, which Rich draws.
SOURCES = sorted(
    path for path in Path(mechnum.report.__path__[0]).rglob("*.py") if path.stem != TERMINAL
)
PARTS = ("estimand", "n", "interval", "null")
CAPTIONED = ("Figure", "Table", "Attention")


def calls_of(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    """Calls of the function or class of this name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
            yield node


def captions_of(tree: ast.Module, given: ast.expr | None) -> list[dict[str | None, ast.expr]]:
    """What the captions that an argument may be say, part → text: the call of `Caption` itself,
    what the variable of its name is set to, what the module's function that it calls returns, or
    another caption some of whose parts `replace` changes."""
    if isinstance(given, ast.Name):
        found = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and any(isinstance(to, ast.Name) and to.id == given.id for to in node.targets)
        ]
        return [said for value in found for said in captions_of(tree, value)]
    if not isinstance(given, ast.Call):
        return []
    name = getattr(given.func, "id", "")
    own = {keyword.arg: keyword.value for keyword in given.keywords}
    if name == "Caption":
        return [own]
    if name == "replace":
        return [{**said, **own} for said in captions_of(tree, given.args[0])]
    returned = [
        node.value
        for function in tree.body
        if isinstance(function, ast.FunctionDef) and function.name == name
        for node in ast.walk(function)
        if isinstance(node, ast.Return)
    ]
    return [said for value in returned for said in captions_of(tree, value)]


def may_be_empty(value: ast.expr) -> bool:
    """Whether the value is, or falls back to, a text of nothing."""
    if isinstance(value, ast.IfExp):
        return may_be_empty(value.body) or may_be_empty(value.orelse)
    return isinstance(value, ast.Constant) and not str(value.value or "").strip()


def lacking(source: str) -> dict[int, list[str]]:
    """Line of a block → what its caption does not say; "caption" where there is none to read."""
    tree, found = ast.parse(source), {}
    for block in (call for kind in CAPTIONED for call in calls_of(tree, kind)):
        given = {keyword.arg: keyword.value for keyword in block.keywords}.get("caption")
        captions = captions_of(tree, given)
        missing = [] if captions else ["caption"]
        for said in captions:
            missing += [part for part in PARTS if part not in said or may_be_empty(said[part])]
        if missing:
            found[block.lineno] = missing
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_captions_have_all_four_parts(path):
    assert not lacking(path.read_text(encoding="utf-8"))


def test_the_blocks_are_found():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES]
    counted = {kind: sum(1 for t in trees for _ in calls_of(t, kind)) for kind in CAPTIONED}
    assert counted["Figure"] > 70
    assert counted["Table"] > 30
    assert counted["Attention"] == 1


GIVEN = {"text": "'x'", "estimand": "'e'", "n": "'3'", "interval": "'i'", "null": "'0'"}
EMPTY, SOMETIMES = "' '", "'3' if many else ''"


def caption(**parts: str | None) -> str:
    """A whole caption with other parts, as source; None leaves one out."""
    said = {name: value for name, value in {**GIVEN, **parts}.items() if value is not None}
    return f"Caption({', '.join(f'{name}={value}' for name, value in said.items())})"


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (f"Figure(title='t', caption={caption()})", []),
        (f"said = {caption()}\nFigure(caption=said)", []),
        (f"def _said(x):\n    return {caption()}\nFigure(caption=_said(1))", []),
        (f"said = {caption()}\nTable(caption=replace(said, text='y'))", []),
        (f"Figure(caption={caption(estimand=None, interval=None)})", ["estimand", "interval"]),
        (f"Table(title='t', caption={caption(n=None)})", ["n"]),
        (f"Attention(title='t', caption={caption(interval=None)})", ["interval"]),
        (f"said = {caption(n=None)}\nTable(caption=replace(said, null=' '))", ["n", "null"]),
        (f"Figure(caption={caption(null=EMPTY)})", ["null"]),
        (f"Figure(caption={caption(n=SOMETIMES)})", ["n"]),
        (f"said = {caption(null=None)}\nFigure(caption=said)", ["null"]),
        ("Figure(caption=from_elsewhere())", ["caption"]),
        ("Figure(title='t')", ["caption"]),
        ("Figure(caption=Caption(text='x', **parts))", list(PARTS)),
    ],
)
def test_what_a_caption_lacks_is_named(source, missing):
    assert list(lacking(source).values()) == ([missing] if missing else [])
