"""Our circuits, whole: every published figure is a row, and a run that is killed ends the same."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.circuits.running.catalogue import find_circuit
from mechnum.report import page_of, read_netcdf
from mechnum.report.sections.published import published_frame
from tests import published

from .test_catalogue import OWN

COMMAND = [sys.executable, "-m", "mechnum", "run", "clock_pizza", "-q", "--set",
           "steps.pizza.n_circles=2", "--set", "steps.clock.n_circles=2", "--out"]  # fmt: skip
NEED_TEXT = ["contexts", "ordinals"]


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_every_published_figure_is_a_row_measured_or_with_what_it_needs(name, tmp_path):
    found = mn.run_circuit(name, out=tmp_path)
    figures = find_circuit(name).published.figures
    table = found.results["published"].to_dataset()
    frame = published_frame(table)
    assert frame["quantity"].tolist() == [figure.name for figure in figures]
    needs = frame["measured"].astype(str).str.startswith("needs ")
    np.testing.assert_array_equal(needs, np.isnan(table["measured"].values))
    assert not needs.all()
    # Bundled models are none of the papers'.
    assert set(frame["tolerance met"]) == {""}
    left_out = json.loads(found.results.attrs.get("left_out", "{}"))
    assert list(left_out) == NEED_TEXT * (name == "universal_numbers")
    page, data, *circuits = found.save(tmp_path)
    assert page.stat().st_size < 10e6
    assert [path.name for path in circuits] == ["circuit.json"] * (name == "trigonometry")
    again = read_netcdf(data)
    xr.testing.assert_equal(again["steps"], found.results["steps"])
    titles = [part.title for part in page_of(again).parts]
    steps = find_circuit(name).recipe.steps
    measured = [step.title for step in steps if step.name not in left_out]
    assert titles == [*measured, "How it was run"]


@pytest.mark.slow
def test_a_released_net_meets_its_tolerances(tmp_path):
    model = mn.load(published.pizza_net(tmp_path, "clock_pizza_l8k1hzciux"))
    found = mn.run_circuit("clock_pizza", model)
    table = found.results["published"].to_dataset().to_dataframe().set_index("paper_model")
    # Model B is in the first step, and clock-59, of its shapes, in the second.
    assert table.loc["Model B", "within"].tolist() == ["yes"] * 3
    assert set(table.loc["Model B", "model"]) == {model.name}
    assert set(table.loc["Model A", "needs"]) == {"Model A"}


@pytest.mark.slow
def test_killed_ten_times_it_ends_with_the_same_results(tmp_path):
    started = time.monotonic()
    subprocess.run([*COMMAND, str(tmp_path / "undisturbed")], check=True)
    seconds = time.monotonic() - started
    moments = random.Random(0)
    for _ in range(10):
        process = subprocess.Popen([*COMMAND, str(tmp_path / "killed")])
        try:
            process.wait(timeout=moments.uniform(0.1, 1) * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    subprocess.run([*COMMAND, str(tmp_path / "killed")], check=True)
    results = [read_netcdf(tmp_path / name / "results.nc") for name in ("undisturbed", "killed")]
    xr.testing.assert_identical(*results)
