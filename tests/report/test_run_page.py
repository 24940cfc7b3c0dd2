"""The page of a run says what each step found, and says nothing twice."""

from __future__ import annotations

import json

import xarray as xr

from mechnum.report.blocks import Text
from mechnum.report.page import Page, Section
from mechnum.report.run import FOUND, _unsaid, run_page

RIGHT = "The model answers all prompts."


def page(name: str) -> Page:
    points = {
        "one": [("It", "the model answers all prompts."), ("A", "0.5."), ("B", "1."), ("C", "2.")],
        "two": [("A", "0.75."), ("B", "1.")],
        "bare": [],
    }  # fmt: skip
    sections = [
        Section(FOUND, [Text(points=points[name])]),
        Section("Else", [Text(points=[("X", "Y")])]),
    ]
    return Page(title="T", sections=sections, lead="" if name == "bare" else RIGHT)


def test_what_was_found_is_said_once():
    entry = {"instrument": "trace", "model": "m", "beside": [], "settings": {}}
    names = ["one", "two", "bare", "absent"]
    steps = [{"name": n, "title": n.title(), "shows": f"Shows {n}.", **entry} for n in names]
    attrs = {
        "title": "T", "question": "Q?", "paper": "P", "circuit": "c", "model": "m",
        "steps": json.dumps(steps), "left_out": json.dumps({"absent": "it does not suit"}),
    }  # fmt: skip
    tree = xr.DataTree.from_dict(
        {"/": xr.Dataset(attrs=attrs)}
        | {f"/steps/{n}": xr.Dataset(attrs={"step": n}) for n in names[:3]}
    )
    made = run_page(tree, lambda results: page(results.attrs["step"]))
    (found,) = [section for section in made.sections if section.title == FOUND]
    text = found.blocks[0]
    assert isinstance(text, Text)
    assert text.points == [
        ("One", f"{RIGHT} A: 0.5. B: 1."),
        ("Two", "A: 0.75."),
        ("Bare", "Shows bare."),
        ("Left out: Absent", "it does not suit."),
    ]


def test_a_lead_that_a_finding_begins_with_is_left_to_it():
    told = ["The net: informative (MSE 0.1); better than all."]
    assert _unsaid("The net: informative (MSE 0.1). All 3 are right.", told) == ["All 3 are right."]
    assert _unsaid("It adds 1.5 to all.", told) == ["It adds 1.5 to all."]
