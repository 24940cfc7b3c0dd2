"""Runs: what is stored is what was measured, and only what depends on a change is measured anew."""

from __future__ import annotations

import json

import pytest
import torch
import xarray as xr

import mechnum as mn
from mechnum.circuits.running.context import Context
from mechnum.circuits.running.store import Store
from mechnum.errors import MechnumError
from mechnum.models.digest import weights_digest
from mechnum.report import read_netcdf

from . import planted


@pytest.fixture
def run(circuit, clock_59, tmp_path):
    def run(out=tmp_path / "out", model=clock_59, **settings):
        planted.measured.clear()
        dotted = {name.replace("__", "."): value for name, value in settings.items()}
        return mn.run_circuit(circuit, model, out, dotted)

    return run


def values(found):
    return {name: float(step["value"]) for name, step in found.results["steps"].children.items()}


def test_a_second_run_measures_nothing_and_gives_the_same(run, tmp_path):
    first = run()
    assert planted.measured == ["number", "doubled", "answers"]
    # All pairs modulo 59 are right, and three are asked for.
    assert values(first) == {"first": 2.0, "second": 4.0, "third": 4.0}
    again = run()
    assert planted.measured == []
    xr.testing.assert_identical(first.results, again.results)
    assert "published" not in first.results["steps/first"].children
    elsewhere = run(out=tmp_path / "else")
    xr.testing.assert_identical(first.results, elsewhere.results)
    without = run(out=None)
    xr.testing.assert_identical(first.results, without.results)
    stored = {path.name for path in (tmp_path / "out" / "steps").iterdir()}
    assert len(stored) == 8  # three steps and the accuracy, each with its record


def test_a_changed_setting_measures_what_depends_on_it(run):
    first = run()
    assert values(run(steps__first__number=5.0))["second"] == 10.0
    assert planted.measured == ["number", "doubled"]
    run(steps__second__number=7.0)
    assert planted.measured == ["doubled"]
    changed = run(seed=1)
    assert planted.measured == ["number", "doubled", "answers"]
    assert json.loads(changed.results.attrs["steps"])[0]["settings"] == {"number": 2.0, "seed": 1}
    xr.testing.assert_identical(run().results, first.results)
    assert planted.measured == []


def test_a_setting_of_the_run_that_no_step_takes_is_refused(run):
    with pytest.raises(MechnumError, match="no step of planted takes n_pairs from the run"):
        run(n_pairs=5)
    assert planted.measured == []


@pytest.mark.parametrize("task", ["additoin", "mess4", "mess3:2,0.5", "no_such.toml"])
def test_a_task_that_there_is_not_is_refused_before_anything_is_measured(run, task):
    with pytest.raises(MechnumError):
        run(task=task)
    assert planted.measured == []


@pytest.mark.parametrize("stopped", ["number", "doubled", "answers"])
def test_after_an_interruption_it_goes_on(run, stopped, tmp_path):
    order = ["number", "doubled", "answers"]
    planted.interrupted.add(stopped)
    with pytest.raises(KeyboardInterrupt):
        run()
    assert planted.measured == order[: order.index(stopped)]
    planted.interrupted.clear()
    found = run()
    assert planted.measured == order[order.index(stopped) :]
    xr.testing.assert_identical(found.results, run(out=tmp_path / "undisturbed").results)


def truncated(data, record):
    data.write_bytes(data.read_bytes()[:-100])


def one_byte_changed(data, record):
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(bytes(content))


def without_record(data, record):
    record.unlink()


def without_data(data, record):
    data.unlink()


def half_a_record(data, record):
    record.write_text(record.read_text()[:40])


def record_of_nothing(data, record):
    record.write_text("[]")


@pytest.mark.parametrize(
    "damage",
    [truncated, one_byte_changed, without_record, without_data, half_a_record, record_of_nothing],
)
def test_what_is_damaged_is_measured_again(run, damage, tmp_path):
    first = run()
    (data,) = (tmp_path / "out" / "steps").glob("first-*.nc")
    damage(data, data.with_suffix(".json"))
    xr.testing.assert_identical(run().results, first.results)
    assert planted.measured == ["number"]
    run()
    assert planted.measured == []


def test_a_weight_that_fingerprints_do_not_sample_counts(clock_59, run):
    run()
    other = mn.load("clock-59")
    assert weights_digest(other) == weights_digest(clock_59)
    weight = other.decoder.weights.blocks[0].mlp.W_in
    with torch.no_grad():
        weight[1, 1] += 1e-3
    assert other.fingerprint == clock_59.fingerprint
    assert weights_digest(other) != weights_digest(clock_59)
    run(model=other)
    assert planted.measured == ["number", "doubled", "answers"]


def test_accuracy_and_pairs_are_those_of_the_task(clock_59, tmp_path, monkeypatch):
    task = mn.tasks.modular_addition(59)
    truth, wanted = task.accuracy(clock_59), task.pairs(clock_59, 9, "a", 4).fingerprint

    def own():
        context = Context(clock_59, "modular_addition:59", Store(tmp_path), {})
        assert context.accuracy() is context.accuracy()
        assert context.pairs(9, "a", 4).fingerprint == wanted
        return context.accuracy()

    first = own()
    # From now on it is read.
    monkeypatch.setattr(type(task), "accuracy", None)
    for accuracy in (first, own()):
        for name in ("predicted", "answers", "predicted_numbers", "errors"):
            assert torch.equal(getattr(accuracy, name), getattr(truth, name))
        assert accuracy.texts == truth.texts


def test_steps_that_do_not_suit_are_left_out(site, clock_59, tmp_path):
    steps = (
        planted.step("first", "refused")
        + planted.step("second", "doubled", ["first"])
        + planted.step("third", "number")
    )
    planted.package(site, "partly", planted.RECIPE + steps)
    planted.package(site, "wholly", planted.RECIPE + planted.step("first", "refused"))
    planted.distribution(site, partly="partly", wholly="wholly")
    found = mn.run_circuit("partly", clock_59)
    assert values(found) == {"third": 2.0}
    assert json.loads(found.results.attrs["left_out"]) == {
        "first": "this model has no numbers: give another one",
        "second": "it needs first, which is left out",
    }
    page, data = found.save(tmp_path / "saved")
    html = page.read_text(encoding="utf-8")
    assert "Left out: The first" in html
    xr.testing.assert_equal(read_netcdf(data)["steps"], found.results["steps"])
    with pytest.raises(MechnumError, match="this model has no numbers"):
        mn.run_circuit("wholly", clock_59)
    (tmp_path / "file").write_text("")
    with pytest.raises(MechnumError, match="is a file: give a folder as out"):
        mn.run_circuit("partly", clock_59, out=tmp_path / "file")


def test_an_instrument_of_another_package_that_fails_is_named(site, clock_59, tmp_path):
    """What was measured before it stays, so that a corrected one goes on."""
    steps = planted.step("first", "number") + planted.step("second", "failing")
    planted.package(site, "fails", planted.RECIPE + steps)
    planted.distribution(site, fails="fails")
    wanted = r"planted:failing of step second fails with IndexError \(layer 7 is not there\)"
    with pytest.raises(MechnumError, match=wanted) as refused:
        mn.run_circuit("fails", clock_59, tmp_path)
    assert isinstance(refused.value.__cause__, IndexError)
    assert [path.suffix for path in sorted((tmp_path / "steps").glob("first-*"))] == [
        ".json",
        ".nc",
    ]


def test_a_step_that_brings_its_own_texts_and_models(site, clock_59, tmp_path):
    steps = planted.step("first", "number") + planted.step("beside", "compared")
    planted.package(site, "compares", planted.RECIPE + steps)
    planted.distribution(site, compares="compares")
    # The net cannot do this task, which is nothing to the second step.
    settings = {"task": "addition", "steps.beside.beside": ["pizza-59"]}
    found = mn.run_circuit("compares", clock_59, tmp_path, settings)
    other = mn.load("pizza-59")
    assert values(found) == {"beside": other.spec.d_vocab}
    left_out = json.loads(found.results.attrs["left_out"])
    assert set(left_out) == {"first"}
    assert "the commands of single steps, such as mechnum trace, take --range" in left_out["first"]
    (record,) = (tmp_path / "steps").glob("beside-*.json")
    (beside,) = json.loads(record.read_text(encoding="utf-8"))["made_from"]["others"]
    assert (beside["model"], beside["weights"]) == ("pizza-59", weights_digest(other))
    assert values(mn.run_circuit("compares", clock_59, tmp_path, {"task": "addition"})) == {
        "beside": 0
    }


def test_the_same_whatever_the_command_and_the_time(run):
    attrs = run().results.attrs
    assert "command" not in attrs
    assert not any("date" in name or "time" in name for name in attrs)
