"""Pages on probes: what they say of results, and of controls that read as much."""

from __future__ import annotations

import io

import pytest
import xarray as xr
from rich.console import Console

from mechnum.circuits.instruments.probe_ordinals import measure_ordinals
from mechnum.circuits.instruments.probe_task import measure_task
from mechnum.report import page_of, probe_summary, read_netcdf, save
from mechnum.report.probe_frames import what_it_means
from tests.circuits.instruments.probed import measured
from tests.probes.texts import reader

from .test_page import Document


def with_accuracies(states: float, tokens: float, untrained: float) -> xr.DataTree:
    names = ["states", "untrained net"]
    controls = xr.DataArray(
        [[[states]], [[untrained]]],
        {"control": names, "probe": ["fourier"], "layer": [0]},
        ("control", "probe", "layer"),
    )
    spelling = xr.DataArray(
        [[tokens], [1.0]],
        {"probe": ["fourier", "digits"], "reader": ["tokens"]},
        ("probe", "reader"),
    )
    return xr.DataTree.from_dict(
        {
            "/controls": xr.Dataset({"accuracy": controls, "chance": controls * 0 + 0.001}),
            "/spelling": xr.Dataset({"accuracy": spelling}),
        }
    )


@pytest.mark.parametrize(
    ("states", "tokens", "untrained", "said"),
    [
        (0.99, 0.95, 0.2, "does not show that it computed more"),
        (0.99, 0.3, 0.95, "does not show that training made a code of numbers"),
        (0.99, 0.3, 0.4, "The rest is what the trained net made of its tokens"),
        (0.004, 0.0, 0.0, "there is nothing to explain"),
    ],
)
def test_verdict_says_how_far_the_spelling_goes(states, tokens, untrained, said):
    assert said in str(what_it_means(with_accuracies(states, tokens, untrained)))


@pytest.mark.slow
def test_page_and_summary_hold_what_was_measured(tmp_path):
    found = measured()
    page, data = save(found, tmp_path)
    text = Document(page.read_text(encoding="utf-8")).text
    assert str(what_it_means(found)) in text
    sections = [section.title for section in page_of(found).sections]
    assert sections == [
        "What was found",
        "Layers",
        "What it means",
        "Residues",
        "Fitted sines",
        "Transfer",
        "How it was made",
    ]
    for section in page_of(found).sections:
        for block in section.blocks:
            if block.kind == "figure":
                facts = dict(block.caption.facts)
                assert {"Estimand", "n", "Null"} <= set(facts), block.title
    again = read_netcdf(data)
    assert [section.title for section in page_of(again).sections] == sections
    console = Console(file=io.StringIO(), width=200)
    console.print(probe_summary(again))
    rows = [line.split() for line in console.file.getvalue().splitlines()]
    own = 100 * float(found["probes"]["accuracy"].sel(probe="linear", layer=0))
    (row,) = [row for row in rows if row[:1] == ["0"]]
    assert float(row[1]) == pytest.approx(own, abs=0.06)


@pytest.mark.slow
def test_pages_of_tasks_and_ordinals():
    import mechnum as mn

    model = mn.load("clock-59")
    task = mn.tasks.parse(str(model.default_task))
    html = page_of(measure_task(model, task, 400, [-1, 0])).html()
    assert "Positions and layers" in html
    found = measure_ordinals(reader(), ("weekdays",), [0], permutations=1)
    assert [section.title for section in page_of(found).sections] == [
        "What was found",
        "Weekdays",
        "Published figures",
        "How it was made",
    ]


@pytest.mark.slow
def test_page_opens_in_a_browser_without_complaints(browser, tmp_path):
    page, _ = save(measured(), tmp_path)
    browser.open(page)
    browser.wait_for("document.documentElement.dataset.drawn === 'all'")
    assert browser.complaints == []
