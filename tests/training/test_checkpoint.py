from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from mechnum.errors import MechnumError
from mechnum.training import checkpoint
from mechnum.training.checkpoint import STATE_FILE, load_state, save_state
from mechnum.training.claim import RECIPE_FILE, claim, versions_of_run
from mechnum.training.loop import train
from tests.training import tiny


@pytest.fixture
def net_and_optimizer():
    net = tiny.CLOCK.net.build(0)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    net(torch.tensor([[1, 2, 5]])).sum().backward()
    optimizer.step()
    return net, optimizer


def test_restored_state_is_the_saved_one(net_and_optimizer, tmp_path):
    net, optimizer = net_and_optimizer
    save_state(tmp_path, net, optimizer, 1)
    other = tiny.CLOCK.net.build(1)
    other_optimizer = torch.optim.AdamW(other.parameters(), lr=1e-2)
    state = load_state(tmp_path)
    assert state is not None
    assert state.step == 1
    state.restore(other, other_optimizer)
    for ours, theirs in zip(net.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)
        for key, value in optimizer.state[ours].items():
            assert torch.equal(value, other_optimizer.state[theirs][key]), key


def test_no_state_yet(tmp_path):
    assert load_state(tmp_path) is None


def test_half_written_state_is_never_seen(net_and_optimizer, tmp_path, monkeypatch):
    save_state(tmp_path, *net_and_optimizer, 1)
    whole = (tmp_path / STATE_FILE).read_bytes()

    def killed_half_way(tensors: object, path: Path, metadata: object) -> None:
        path.write_bytes(whole[: len(whole) // 2])
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save_file", killed_half_way)
    with pytest.raises(KeyboardInterrupt):
        save_state(tmp_path, *net_and_optimizer, 2)
    assert (tmp_path / STATE_FILE).read_bytes() == whole
    state = load_state(tmp_path)
    assert state is not None
    assert state.step == 1


@pytest.mark.parametrize("damage", ["cut", "other", "empty"])
def test_damaged_state_is_refused_in_one_line(damage, net_and_optimizer, tmp_path):
    save_state(tmp_path, *net_and_optimizer, 1)
    path = tmp_path / STATE_FILE
    content = {"cut": path.read_bytes()[:-100], "other": b"x" * 1000, "empty": b""}[damage]
    path.write_bytes(content)
    with pytest.raises(MechnumError, match="is not a state of a training run: delete") as refusal:
        load_state(tmp_path)
    assert "\n" not in str(refusal.value)


def test_state_of_another_net_is_refused(net_and_optimizer, tmp_path):
    save_state(tmp_path, *net_and_optimizer, 1)
    state, adder = load_state(tmp_path), tiny.ADDER.net.build(0)
    assert state is not None
    with pytest.raises(MechnumError, match="other tensors than this recipe's net: start again"):
        state.restore(adder, torch.optim.AdamW(adder.parameters()))


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (replace(tiny.CLOCK, seed=1), "seed"),
        (replace(tiny.CLOCK, steps=20), "steps"),
        (tiny.ADDER, "name"),
    ],
)
def test_folder_of_another_recipe_is_refused_and_kept(other, named, tmp_path):
    train(tiny.CLOCK, tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(MechnumError, match=rf"another recipe \(its {named} differs\): choose"):
        train(other, tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_folder_with_other_files_is_refused_and_kept(tmp_path):
    (tmp_path / "log.jsonl").write_text("mine\n")
    with pytest.raises(MechnumError, match="holds other files: choose a new or an empty folder"):
        train(tiny.CLOCK, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["log.jsonl"]
    assert (tmp_path / "log.jsonl").read_text() == "mine\n"


def test_file_in_the_folder_s_place_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(MechnumError, match="is a file: choose another folder"):
        train(tiny.CLOCK, tmp_path / "file")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"settings": 1, "versions": {}}'])
def test_damaged_recipe_file_is_refused(content, tmp_path):
    (tmp_path / RECIPE_FILE).write_text(content)
    with pytest.raises(MechnumError, match="does not describe a run: delete"):
        train(tiny.CLOCK, tmp_path)


def test_run_killed_before_its_recipe_was_written_starts_again(tmp_path):
    (tmp_path / (RECIPE_FILE + ".tmp")).write_text('{"setti')
    claim(tmp_path, tiny.CLOCK)
    content = json.loads((tmp_path / RECIPE_FILE).read_text())
    assert content["settings"] == tiny.CLOCK.settings()


def test_versions_are_those_of_the_start(tmp_path):
    claim(tmp_path, tiny.CLOCK)
    assert versions_of_run(tmp_path)["torch"] == version("torch")
    path = tmp_path / RECIPE_FILE
    path.write_text(path.read_text().replace(version("torch"), "1.0"))
    claim(tmp_path, tiny.CLOCK)
    assert versions_of_run(tmp_path)["torch"] == "1.0"
