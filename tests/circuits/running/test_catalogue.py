"""Circuits of this package and of others are found, and what is broken does not break the rest."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import mechnum.circuits
from mechnum.circuits.running.catalogue import circuits, find_circuit
from mechnum.circuits.running.steps import steps_of
from mechnum.errors import MechnumError

from ...cli.running import runner
from . import planted

ROOT = Path(str(mechnum.circuits.__file__)).parent
OWN = sorted(path.parent.name for path in ROOT.glob("*/recipe.toml"))


@pytest.mark.parametrize("name", OWN)
def test_our_recipes_and_figures_are_valid(name):
    circuit = find_circuit(name)
    steps = {step.name for step in steps_of(circuit.recipe)}
    figures = circuit.published.figures
    assert circuit.recipe.model in mechnum.models.bundled()
    assert figures
    for figure in figures:
        assert set(figure.steps) <= steps
        if figure.reading is not None:
            assert circuit.reading(figure.reading).__doc__
    # A model of which nothing was published has no place there.
    assert {figure.model for figure in figures} == set(circuit.published.models)


@pytest.mark.parametrize("name", OWN)
def test_read_me_has_the_steps_of_the_recipe_in_order(name):
    text = (ROOT / name / "README.md").read_text(encoding="utf-8")
    table = text.split("| step | shows |\n")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `([a-z0-9_]+)` \|", table, flags=re.MULTILINE)
    assert rows == [step.name for step in find_circuit(name).recipe.steps]
    for part in ("## What it costs", "## Where released code errs"):
        assert part in text


def test_circuits_of_other_packages(site, circuit):
    assert circuits()[circuit].recipe.title == "T"
    assert list(circuits())[: len(OWN)] == OWN


def test_broken_ones_are_a_line_of_warning_each(site, monkeypatch, capsys):
    planted.package(site, "whole")
    planted.package(site, "wrong", planted.RECIPE.replace("title", "titel") + planted.STEPS)
    (site / "crashes.py").write_text("raise RuntimeError('first line\\nsecond line')\n")
    planted.distribution(
        site, whole="whole", wrong="wrong", crashes="crashes", absent="no_such", grokking="whole"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = circuits()
    assert [name for name in found if name not in OWN] == ["whole"]
    said = {str(one.message) for one in caught}
    assert len(said) == 4
    assert "circuit crashes is left out: first line second line" in said
    assert any("grokking is left out: mechnum.circuits.grokking has this name" in s for s in said)
    assert any("did you mean title?" in line for line in said)
    with pytest.warns(UserWarning, match="circuit crashes is left out"):
        code, out, _ = runner(monkeypatch, capsys)("circuits")
    assert code == 0
    assert "whole" in out


def test_the_list_takes_no_torch():
    code = (
        "import sys; from mechnum.circuits.running.catalogue import circuits;"
        "assert all(one.recipe.steps for one in circuits().values());"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_circuits_and_readings(circuit):
    with pytest.raises(MechnumError, match="there is no circuit 'groking': did you mean grokking"):
        find_circuit("groking")
    with pytest.raises(MechnumError, match="there is no reading 'valeu': did you mean value"):
        find_circuit(circuit).reading("valeu")
