"""Every figure says what was measured, over how many of what, how surely, and against what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mechnum.report

SOURCES = sorted(Path(mechnum.report.__path__[0]).rglob("*.py"))
PARTS = ("estimand", "n", "interval", "null")


def calls_of(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    """Calls of the function or class of this name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
            yield node


def captions_of(tree: ast.Module, given: ast.expr | None) -> list[ast.Call]:
    """The calls of `Caption` that an argument is: itself, what the variable of its name is set to,
    or what the module's function that it calls returns."""
    if isinstance(given, ast.Name):
        found = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and any(isinstance(to, ast.Name) and to.id == given.id for to in node.targets)
        ]
    elif isinstance(given, ast.Call) and getattr(given.func, "id", "") != "Caption":
        found = [
            node.value
            for function in tree.body
            if isinstance(function, ast.FunctionDef)
            and function.name == getattr(given.func, "id", "")
            for node in ast.walk(function)
            if isinstance(node, ast.Return)
        ]
    else:
        found = [given]
    return [
        call
        for call in found
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Caption"
    ]


def may_be_empty(value: ast.expr) -> bool:
    """Whether the value is, or falls back to, a text of nothing."""
    if isinstance(value, ast.IfExp):
        return may_be_empty(value.body) or may_be_empty(value.orelse)
    return isinstance(value, ast.Constant) and not str(value.value or "").strip()


def lacking(source: str) -> dict[int, list[str]]:
    """Line of a figure → what its caption does not say; "caption" where there is none to read."""
    tree, found = ast.parse(source), {}
    for figure in calls_of(tree, "Figure"):
        given = {keyword.arg: keyword.value for keyword in figure.keywords}.get("caption")
        captions = captions_of(tree, given)
        missing = [] if captions else ["caption"]
        for caption in captions:
            said = {keyword.arg: keyword.value for keyword in caption.keywords}
            missing += [part for part in PARTS if part not in said or may_be_empty(said[part])]
        if missing:
            found[figure.lineno] = missing
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_captions_have_all_four_parts(path):
    assert not lacking(path.read_text(encoding="utf-8"))


def test_the_figures_are_found():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES]
    assert sum(1 for tree in trees for _ in calls_of(tree, "Figure")) > 70


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
        (f"Figure(caption={caption(estimand=None, interval=None)})", ["estimand", "interval"]),
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
