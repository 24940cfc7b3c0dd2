"""The training loop: one seed, one thread, the same weights each time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mechnum.errors import MechnumError
from mechnum.progress import track
from mechnum.training.checkpoint import load_state, save_state
from mechnum.training.claim import claim
from mechnum.training.data import Dataset, Split, split
from mechnum.training.log import Score, append_to_log, cut_log
from mechnum.training.recipe import Recipe
from mechnum.training.snapshot import keep_snapshot
from mechnum.training.streams import Stream, stream


def train(
    recipe: Recipe, folder: Path, on_step: Callable[[int, Score | None], None] = lambda *_: None
) -> nn.Module:
    """Run `recipe`, or what is left of it, and give back the trained net in evaluation mode.

    `folder` keeps the recipe, the last state, the log and the snapshots. The batch of each step
    depends on the seed and the step's number alone, so a run that was killed goes on to the
    bit-same weights.

    Args:
        on_step: called after each step with the number of steps done, and with the score where
            one was logged and the state saved.

    Raises:
        MechnumError: where the folder holds something else, the recipe is impossible, or the
            loss is no longer a number; the last saved state stays.
    """
    data = recipe.data()
    parts = split(data, recipe.train_fraction, recipe.seed)
    if recipe.batch_size is not None and recipe.batch_size > len(parts.train):
        raise MechnumError(
            f"a batch of {recipe.batch_size} is more than the {len(parts.train)} training "
            "prompts: make batch_size smaller"
        )
    claim(folder, recipe)
    with one_thread(), torch.enable_grad():
        net = recipe.net.build(recipe.seed).train()
        trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(
            trained, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, betas=recipe.betas
        )
        state = load_state(folder)
        if state is not None:
            state.restore(net, optimizer)
        start = state.step if state else 0
        log = cut_log(folder, start)
        seconds_before, clock = (log[-1].seconds if log else 0.0), time.monotonic()
        if start == 0:
            _snapshot_when_due(recipe, net, folder, 0)
        what = f"training {recipe.name}" + (f" from step {start}" if start else "")
        for step in track(range(start, recipe.steps), what):
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate * _rate(recipe, step)
            loss, _ = loss_and_accuracy(net, data, _batch(recipe, parts, step))
            _check_finite(loss.item(), recipe, step, folder)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            score = None
            if (step + 1) % recipe.checkpoint_every == 0 or step + 1 == recipe.steps:
                seconds = seconds_before + time.monotonic() - clock
                score = evaluate(net, data, parts, step + 1, seconds)
                _check_finite(score.train_loss + score.heldout_loss, recipe, step + 1, folder)
                # The log before the state: a kill in between leaves a line too many, cut on
                # reopening.
                _snapshot_when_due(recipe, net, folder, step + 1)
                append_to_log(folder, score)
                save_state(folder, net, optimizer, step + 1)
            on_step(step + 1, score)
    return net.eval()


def loss_and_accuracy(
    net: nn.Module, data: Dataset, rows: Int[Tensor, " row"]
) -> tuple[Tensor, float]:
    """Cross-entropy (nats, in float64: grokked losses are below float32's steps) and accuracy."""
    output = net(data.tokens[rows])
    logits = (output if isinstance(output, Tensor) else output.logits)[:, -1].double()
    answers = data.answers[rows]
    accuracy = (logits.argmax(-1) == answers).double().mean().item()
    return cross_entropy(logits, answers), accuracy


@torch.no_grad()
def evaluate(net: nn.Module, data: Dataset, parts: Split, step: int, seconds: float) -> Score:
    """Loss and accuracy on both parts, without dropout; the net's mode comes back."""
    mode = net.training
    net.eval()
    train_loss, train_accuracy = loss_and_accuracy(net, data, parts.train)
    heldout_loss, heldout_accuracy = loss_and_accuracy(net, data, parts.heldout)
    net.train(mode)
    return Score(
        step,
        round(seconds, 1),
        train_loss.item(),
        train_accuracy,
        heldout_loss.item(),
        heldout_accuracy,
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Run on one thread, on which sums have one order; the caller's number comes back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _check_finite(loss: float, recipe: Recipe, steps_done: int, folder: Path) -> None:
    if not math.isfinite(loss):
        raise MechnumError(
            f"the loss of {recipe.name} is {loss} after {steps_done} steps: lower the learning "
            f"rate; the last good state is kept in {folder}"
        )


def _snapshot_when_due(recipe: Recipe, net: nn.Module, folder: Path, steps_done: int) -> None:
    every = recipe.snapshot_every
    if every is not None and (steps_done % every == 0 or steps_done == recipe.steps):
        keep_snapshot(recipe, net, folder, steps_done)


def _batch(recipe: Recipe, parts: Split, step: int) -> Int[Tensor, " row"]:
    if recipe.batch_size is None:
        return parts.train
    generator = np.random.default_rng(stream(recipe.seed, Stream.BATCH, step))
    chosen = generator.choice(len(parts.train), size=recipe.batch_size, replace=False)
    return parts.train[torch.from_numpy(chosen)]


def _rate(recipe: Recipe, step: int) -> float:
    """The learning rate's factor at `step`."""
    warm = min(1.0, (step + 1) / max(recipe.warmup_steps, 1))
    if recipe.schedule == "constant":
        return warm
    return warm * 0.5 * (1 + math.cos(math.pi * step / recipe.steps))
