from __future__ import annotations

import sys

import pytest

from mechnum.cli import main
from mechnum.training import loop, recipes
from mechnum.training.checkpoint import load_state
from tests.training import tiny


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Runs `mechnum train` in an empty folder; gives exit code and both outputs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recipes, "RECIPES", {"tiny-adder": tiny.ADDER, "tiny-clock": tiny.CLOCK})

    def run(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["mechnum", "train", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return run


@pytest.mark.parametrize("name", ["tiny-adder", "tiny-clock"])
def test_trains_into_a_folder_of_the_recipe_s_name(run, tmp_path, name):
    code, out, err = run(name)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split("  ")[0] == "step"
    assert [line.split()[0] for line in lines[1:5]] == ["3", "6", "9", "10"]
    assert lines[-1].startswith(f"{name} is in {name}; as stored there, its held-out accuracy is ")
    assert {file.name for file in tmp_path.iterdir()} == {name}
    assert lines[-1].endswith(f"; its curves are in {name}/training/report.html")
    assert (tmp_path / name / "model.safetensors").is_file()
    assert (tmp_path / name / "training" / "report.html").is_file()


def test_out_and_a_second_call_that_trains_nothing(run, tmp_path):
    first = run("tiny-clock", "--out", "somewhere/else")
    assert first[0] == 0
    made = (tmp_path / "somewhere/else/model.safetensors").read_bytes()
    assert run("tiny-clock", "--out", "somewhere/else") == first
    assert (tmp_path / "somewhere/else/model.safetensors").read_bytes() == made


def test_interrupted_run_says_from_where_it_goes_on_and_does(run, tmp_path, monkeypatch):
    save_state = loop.save_state

    def interrupted_at_nine(folder, net, optimizer, step):
        if step == 9:
            raise KeyboardInterrupt
        save_state(folder, net, optimizer, step)

    monkeypatch.setattr(loop, "save_state", interrupted_at_nine)
    code, out, err = run("tiny-clock")
    assert (code, out) == (130, "")
    assert err == ("stopped: the same command goes on from step 6\nmechnum: interrupted\n")
    monkeypatch.undo()
    loop.train(tiny.CLOCK, tmp_path / "tiny-clock" / "training")
    stopped = load_state(tmp_path / "tiny-clock" / "training")
    loop.train(tiny.CLOCK, tmp_path / "whole")
    whole = load_state(tmp_path / "whole")
    assert stopped is not None
    assert whole is not None
    assert all(stopped.weights[name].equal(tensor) for name, tensor in whole.weights.items())


def test_unknown_recipe(run, tmp_path):
    code, out, err = run("adder")
    assert (code, out) == (2, "")
    assert err == "mechnum: there is no recipe 'adder': choose from tiny-adder, tiny-clock\n"
    assert list(tmp_path.iterdir()) == []


def test_folder_in_use_is_refused_and_kept(run, tmp_path):
    (tmp_path / "tiny-clock").mkdir()
    (tmp_path / "tiny-clock" / "notes").write_text("mine")
    code, out, err = run("tiny-clock")
    assert (code, out) == (2, "")
    assert err == "mechnum: tiny-clock holds other files: choose a new or an empty folder\n"
    assert [file.name for file in (tmp_path / "tiny-clock").iterdir()] == ["notes"]


def test_folder_of_another_run_is_refused(run):
    assert run("tiny-clock", "--out", "run")[0] == 0
    code, _, err = run("tiny-adder", "--out", "run")
    assert code == 2
    assert "holds a run of another recipe (its name differs): choose another folder" in err
    assert err.count("\n") == 1
