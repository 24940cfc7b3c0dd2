"""The training loop: one seed, one thread, the same weights each time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from mechnum.errors import MechnumError
from mechnum.progress import track
from mechnum.training.checkpoint import load_state, save_state
from mechnum.training.claim import claim
from mechnum.training.examples import Examples
from mechnum.training.log import Score, append_to_log, cut_log
from mechnum.training.recipe import Recipe
from mechnum.training.snapshot import keep_snapshot


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
    examples = recipe.data().examples(recipe)
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
            loss = examples.loss(net, step)
            _check_finite(loss.item(), recipe, step, folder)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            score = None
            if (step + 1) % recipe.checkpoint_every == 0 or step + 1 == recipe.steps:
                seconds = seconds_before + time.monotonic() - clock
                score = evaluate(net, examples, step + 1, seconds)
                _check_finite(sum(score.losses), recipe, step + 1, folder)
                # The log before the state: a kill in between leaves a line too many, cut on
                # reopening.
                _snapshot_when_due(recipe, net, folder, step + 1)
                append_to_log(folder, score)
                save_state(folder, net, optimizer, step + 1)
            on_step(step + 1, score)
    return net.eval()


@torch.no_grad()
def evaluate(net: nn.Module, examples: Examples, step: int, seconds: float) -> Score:
    """The score without dropout; the net's mode comes back."""
    mode = net.training
    net.eval()
    score = examples.score(net, step, round(seconds, 1))
    net.train(mode)
    return score


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


def _rate(recipe: Recipe, step: int) -> float:
    """The learning rate's factor at `step`."""
    warm = min(1.0, (step + 1) / max(recipe.warmup_steps, 1))
    if recipe.schedule == "constant":
        return warm
    return warm * 0.5 * (1 + math.cos(math.pi * step / recipe.steps))
