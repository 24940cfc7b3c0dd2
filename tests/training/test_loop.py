from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from mechnum.errors import MechnumError
from mechnum.training import loop, prompts
from mechnum.training.checkpoint import STATE_FILE, load_state
from mechnum.training.data import split
from mechnum.training.log import LOG_FILE, read_log
from mechnum.training.loop import train
from mechnum.training.nets import NativeNet
from mechnum.training.snapshot import snapshots
from tests.training import tiny

ROOT = Path(__file__).parents[2]
RECIPES = [tiny.ADDER, tiny.CLOCK]


class Stop(Exception):
    """Stands for a kill."""


def weights(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def assert_same(first: nn.Module, second: nn.Module) -> None:
    ours, theirs = weights(first), weights(second)
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


def without_times(folder: Path) -> list[dict]:
    return [vars(replace(score, seconds=0.0)) for score in read_log(folder)]


def stop_after(step: int):
    def on_step(done: int, _score: object) -> None:
        if done == step:
            raise Stop

    return on_step


@pytest.fixture(scope="module", params=RECIPES, ids=lambda recipe: recipe.name)
def whole(request, tmp_path_factory):
    """A recipe, the net of an uninterrupted run, and its folder."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    return request.param, train(request.param, folder), folder


@pytest.mark.parametrize("step", range(1, 11))
def test_run_stopped_after_any_step_goes_on_to_the_same_weights(whole, step, tmp_path):
    recipe, net, folder = whole
    with pytest.raises(Stop):
        train(recipe, tmp_path, stop_after(step))
    assert_same(train(recipe, tmp_path), net)
    assert without_times(tmp_path) == without_times(folder)


@pytest.mark.parametrize("recipe", tiny.ALL[2:], ids=lambda recipe: recipe.name)
def test_other_architectures_go_on_to_the_same_weights_too(recipe, tmp_path):
    net = train(recipe, tmp_path / "whole")
    with pytest.raises(Stop):
        train(recipe, tmp_path / "stopped", stop_after(5))
    assert_same(train(recipe, tmp_path / "stopped"), net)
    untrained = recipe.net.build(recipe.seed)
    # The frozen embedding; and at attention rate 0, where scores do not count, what starts at 0.
    stay = {
        tiny.RESCUED.name: {"transformer.wte.weight"},
        tiny.PIZZA.name: {"layers.0.attn.q.bias", "layers.0.attn.k.bias"},
    }.get(recipe.name, set())
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, untrained.state_dict()[name]) == (name in stay), name


def test_run_stopped_again_and_again_comes_to_the_same_weights(whole, tmp_path):
    recipe, net, folder = whole
    for step in (4, 7, 10):
        with pytest.raises(Stop):
            train(recipe, tmp_path, stop_after(step))
    assert_same(train(recipe, tmp_path), net)
    assert without_times(tmp_path) == without_times(folder)


def test_finished_run_is_not_trained_further(whole):
    recipe, net, folder = whole
    before = (folder / STATE_FILE).read_bytes(), (folder / LOG_FILE).read_bytes()
    steps = []
    assert_same(train(recipe, folder, lambda done, _: steps.append(done)), net)
    assert steps == []
    assert ((folder / STATE_FILE).read_bytes(), (folder / LOG_FILE).read_bytes()) == before


@pytest.mark.slow
def test_killed_process_goes_on_to_the_same_weights(tmp_path):
    recipe = replace(tiny.ADDER, steps=100, checkpoint_every=1)
    program = (
        "import sys; from dataclasses import replace; from pathlib import Path\n"
        "from mechnum.training import train; from tests.training import tiny\n"
        "train(replace(tiny.ADDER, steps=100, checkpoint_every=1), Path(sys.argv[1]))"
    )
    killed = tmp_path / "killed"
    with subprocess.Popen([sys.executable, "-c", program, str(killed)], cwd=ROOT) as process:
        deadline = time.monotonic() + 120
        while len(read_log(killed)) < 5 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    state = load_state(killed)
    assert state is not None
    assert 0 < state.step < recipe.steps
    assert_same(train(recipe, killed), train(recipe, tmp_path / "whole"))
    assert without_times(killed) == without_times(tmp_path / "whole")


def test_same_seed_same_weights_and_other_seed_others(whole, tmp_path):
    recipe, net, _ = whole
    assert_same(train(recipe, tmp_path / "again"), net)
    other = train(replace(recipe, seed=1), tmp_path / "other")
    equal = [torch.equal(w, weights(other)[name]) for name, w in weights(net).items()]
    # A norm's weights may still be where every seed starts.
    assert equal.count(True) < len(equal) / 3


def test_run_is_the_plain_loop(tmp_path):
    """The reference: the steps of the recipe written out, with torch's own optimiser."""
    recipe, data = tiny.CLOCK, tiny.CLOCK.data()
    rows = split(data, recipe.train_fraction, recipe.seed).train
    net = recipe.net.build(recipe.seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0, weight_decay=1.0, betas=(0.9, 0.98))
    for step in range(recipe.steps):
        optimizer.param_groups[0]["lr"] = 1e-2 * min(1, (step + 1) / 10)
        optimizer.zero_grad()
        logits = net(data.tokens[rows])[:, -1].double()
        cross_entropy(logits, data.answers[rows]).backward()
        optimizer.step()
    assert_same(train(recipe, tmp_path), net)


def test_scores_are_those_of_the_saved_weights(whole):
    recipe, net, folder = whole
    data = recipe.data()
    parts = split(data, recipe.train_fraction, recipe.seed)
    last = tiny.prompt_scores(folder)[-1]
    with torch.no_grad():
        output = net(data.tokens)
        logits = (output if isinstance(output, torch.Tensor) else output.logits)[:, -1].double()
    for rows, loss, accuracy in (
        (parts.train, last.train_loss, last.train_accuracy),
        (parts.heldout, last.heldout_loss, last.heldout_accuracy),
    ):
        chosen = logits[rows].softmax(-1)[torch.arange(len(rows)), data.answers[rows]]
        assert loss == pytest.approx(-chosen.log().mean().item(), rel=1e-5)
        right = logits[rows].argmax(-1) == data.answers[rows]
        assert accuracy == pytest.approx(right.double().mean().item())


def test_log_has_a_line_for_each_checkpoint_and_the_end(whole):
    _, _, folder = whole
    assert [score.step for score in read_log(folder)] == [3, 6, 9, 10]
    seconds = [score.seconds for score in read_log(folder)]
    assert seconds == sorted(seconds)


def test_net_comes_back_in_evaluation_mode(whole):
    assert not any(module.training for module in whole[1].modules())


def test_half_a_line_of_the_log_is_cut(whole, tmp_path):
    recipe, net, folder = whole
    with pytest.raises(Stop):
        train(recipe, tmp_path, stop_after(4))
    with (tmp_path / LOG_FILE).open("a") as log:
        log.write('{"step": 6, "seconds": 1.')
    assert_same(train(recipe, tmp_path), net)
    assert without_times(tmp_path) == without_times(folder)


def test_kill_between_log_and_state_leaves_no_second_line(whole, tmp_path, monkeypatch):
    recipe, net, folder = whole
    save_state = loop.save_state

    def die_at_six(to: Path, *rest: object) -> None:
        if rest[-1] == 6:
            raise Stop
        save_state(to, *rest)

    monkeypatch.setattr(loop, "save_state", die_at_six)
    with pytest.raises(Stop):
        train(recipe, tmp_path)
    assert [score.step for score in read_log(tmp_path)] == [3, 6]
    monkeypatch.undo()
    assert_same(train(recipe, tmp_path), net)
    assert without_times(tmp_path) == without_times(folder)


@pytest.mark.parametrize("content", [b"no log\n", b'{"step": 1}\n', b"\xff\n", b"[]\n"])
def test_log_of_something_else_is_refused(content, tmp_path):
    with pytest.raises(Stop):
        train(tiny.CLOCK, tmp_path, stop_after(4))
    (tmp_path / LOG_FILE).write_bytes(content)
    with pytest.raises(MechnumError, match="is not a log of a training run: delete"):
        train(tiny.CLOCK, tmp_path)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_loss_that_is_not_finite_stops_in_one_line_and_keeps_the_last_state(
    value, tmp_path, monkeypatch
):
    def spoilt(net, data, rows):
        loss, accuracy = loss_and_accuracy(net, data, rows)
        spoil = len(rows) == tiny.ADDER.batch_size and next(steps) == 7
        return loss * value if spoil else loss, accuracy

    steps, loss_and_accuracy = iter(range(100)), prompts.loss_and_accuracy
    monkeypatch.setattr(prompts, "loss_and_accuracy", spoilt)
    with pytest.raises(MechnumError, match="after 7 steps: lower the learning rate") as refusal:
        train(tiny.ADDER, tmp_path)
    assert "\n" not in str(refusal.value)
    state = load_state(tmp_path)
    assert state is not None
    assert state.step == 6
    assert all(tensor.isfinite().all() for tensor in state.weights.values())
    assert [score.step for score in read_log(tmp_path)] == [3, 6]


def test_diverging_run_never_saves_weights_that_are_not_finite(tmp_path):
    recipe = replace(tiny.CLOCK, learning_rate=1e30, steps=30, checkpoint_every=1, warmup_steps=1)
    with pytest.raises(MechnumError, match="the loss of tiny-clock is"):
        train(recipe, tmp_path)
    state = load_state(tmp_path)
    if state is not None:
        assert all(tensor.isfinite().all() for tensor in state.weights.values())
    for line in (tmp_path / LOG_FILE).read_text().splitlines():
        assert all(math.isfinite(value) for value in json.loads(line).values())


def test_global_generators_threads_and_grad_mode_are_left_alone(tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    # Python's own generator is not compared: beartype, which checks the shapes here, draws from it.
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    try:
        for recipe in RECIPES:
            train(recipe, tmp_path / recipe.name)
        assert torch.get_num_threads() == 2
        with pytest.raises(Stop):
            train(tiny.CLOCK, tmp_path / "stopped", stop_after(2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    assert torch.is_grad_enabled()


def test_caller_s_generator_and_threads_do_not_change_the_weights(whole, tmp_path):
    recipe, net, _ = whole
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.rand(5)
    try:
        assert_same(train(recipe, tmp_path), net)
    finally:
        torch.set_num_threads(threads)


def test_training_works_where_the_caller_has_switched_gradients_off(whole, tmp_path):
    recipe, net, _ = whole
    with torch.no_grad():
        assert_same(train(recipe, tmp_path), net)


def test_frozen_parameters_stay_as_they_are(tmp_path):
    class Frozen:
        def build(self, seed: int) -> nn.Module:
            net = tiny.ADDER.net.build(seed)
            net.get_input_embeddings().weight.requires_grad_(False)
            return net

        def __repr__(self) -> str:
            return "Frozen()"

    recipe = replace(tiny.ADDER, net=Frozen())
    start = recipe.net.build(0)
    with pytest.raises(Stop):
        train(recipe, tmp_path / "resumed", stop_after(5))
    net = train(recipe, tmp_path / "resumed")
    assert torch.equal(net.get_input_embeddings().weight, start.get_input_embeddings().weight)
    assert not torch.equal(net.lm_head.weight, start.lm_head.weight)
    assert_same(net, train(recipe, tmp_path / "whole"))


def test_batch_larger_than_the_training_set_is_refused(tmp_path):
    n_train = len(split(tiny.ADDER.data(), 0.8, 0).train)
    train(replace(tiny.ADDER, batch_size=n_train, steps=1), tmp_path / "largest")
    with pytest.raises(MechnumError, match=f"more than the {n_train} training prompts: make"):
        train(replace(tiny.ADDER, batch_size=n_train + 1, steps=1), tmp_path / "larger")
    assert not (tmp_path / "larger").exists()


def test_batches_are_drawn_from_the_training_part_without_repeats(tmp_path, monkeypatch):
    seen: list[list[int]] = []
    loss_and_accuracy = prompts.loss_and_accuracy

    def watched(net, data, rows):
        if torch.is_grad_enabled():
            seen.append(rows.tolist())
        return loss_and_accuracy(net, data, rows)

    monkeypatch.setattr(prompts, "loss_and_accuracy", watched)
    train(tiny.ADDER, tmp_path)
    rows = set(split(tiny.ADDER.data(), 0.8, 0).train.tolist())
    assert len(seen) == tiny.ADDER.steps
    assert all(len(set(batch)) == 16 and set(batch) <= rows for batch in seen)
    assert len({tuple(batch) for batch in seen}) == len(seen)


def test_schedules():
    constant = replace(tiny.ADDER, steps=100, warmup_steps=10, schedule="constant")
    cosine = replace(constant, schedule="cosine", warmup_steps=0)
    rate = partial(loop._rate, constant)
    assert [rate(0), rate(4), rate(9), rate(99)] == pytest.approx([0.1, 0.5, 1.0, 1.0])
    rate = partial(loop._rate, cosine)
    assert [rate(0), rate(50), rate(99)] == pytest.approx([1.0, 0.5, 0.0], abs=1e-3)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_snapshots_are_the_net_along_the_way_also_after_a_kill(recipe, tmp_path):
    recipe = replace(recipe, snapshot_every=6)
    with pytest.raises(Stop):
        train(recipe, tmp_path, stop_after(6))
    halfway = load_state(tmp_path)
    assert halfway is not None
    with pytest.raises(Stop):
        train(recipe, tmp_path, stop_after(8))
    net = train(recipe, tmp_path)
    untrained = recipe.net.build(recipe.seed)
    kept = snapshots(tmp_path)
    assert list(kept) == [0, 6, 10]
    along = (untrained.state_dict(), halfway.weights, net.state_dict())
    for folder, expected in zip(kept.values(), along, strict=True):
        stored = recipe.net.load(folder).state_dict()
        precision = torch.float32 if isinstance(recipe.net, NativeNet) else torch.float16
        for name, tensor in expected.items():
            assert torch.equal(stored[name], tensor.to(precision).float()), name


def test_snapshots_do_not_change_the_run_or_whose_it_is(whole, tmp_path):
    recipe, net, folder = whole
    assert_same(train(replace(recipe, snapshot_every=3), tmp_path), net)
    assert snapshots(folder) == {}
    assert_same(train(recipe, tmp_path), net)


def test_snapshots_between_two_saved_states_are_refused():
    with pytest.raises(MechnumError, match="snapshot_every=4 is no multiple of checkpoint_every=3"):
        replace(tiny.CLOCK, snapshot_every=4)
