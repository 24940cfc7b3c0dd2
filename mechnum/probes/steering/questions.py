"""Prompts by the question that they ask: what is trained on, what is chosen on, what is tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from mechnum.errors import MechnumError
from mechnum.inputs import seed_sequence
from mechnum.intervals import wilson
from mechnum.tasks.prompts import Prompts
from mechnum.tasks.states import numbers_of


def questions_of(prompts: Sequence[Prompts]) -> Int[np.ndarray, " prompt"]:
    """Which question each prompt asks, group after group: prompts of the same operands ask one.

    Raises:
        MechnumError: the prompts say no operands.
    """
    names = sorted(prompts[0].variables.keys() - {"answer"}) if prompts else []
    operands = numbers_of(prompts, names)
    return np.unique(operands, axis=0, return_inverse=True)[1].reshape(-1)


def answers_of(prompts: Sequence[Prompts]) -> Int[np.ndarray, " prompt"]:
    """The right answers as numbers, group after group."""
    return numbers_of(prompts, ("answer",))[:, 0].astype(np.int64)


def pooled(draws: Sequence[Sequence[Prompts]]) -> tuple[Prompts, ...]:
    """Prompts of several draws of a task's examples as one set, each with an index of its own."""
    found: list[Prompts] = []
    before = 0
    for groups in draws:
        found += [replace(group, index=group.index + before) for group in groups]
        before += 1 + max(int(group.index.max()) for group in groups)
    return tuple(found)


def training_split(
    prompts: Sequence[Prompts], train_share: float = 0.5, seed: int = 0
) -> tuple[tuple[Prompts, ...], tuple[Prompts, ...]]:
    """Training prompts and the others; no question is in both.

    The questions of each answer are dealt by themselves, at least one of them to training, so that
    no other prompt has an answer that training has not seen.

    Raises:
        MechnumError: on a share that is not above 0 and below 1, and where no prompt is left.
    """
    if not 0 < train_share < 1:
        raise MechnumError(f"train_share is {train_share}: give a share above 0 and below 1")
    question, answer = questions_of(prompts), answers_of(prompts)
    generator = np.random.default_rng(seed_sequence(seed))
    trained = np.zeros(len(question), dtype=bool)
    for value in np.unique(answer):
        own = generator.permutation(np.unique(question[answer == value]))
        trained |= np.isin(question, own[: max(1, round(train_share * len(own)))])
    if trained.all():
        raise MechnumError(
            "every question is needed for training, so that none is left to steer: give more "
            "prompts for each answer"
        )
    return some_prompts(prompts, trained), some_prompts(prompts, ~trained)


def question_halves(question: Int[np.ndarray, " prompt"], seed: int) -> Bool[np.ndarray, " prompt"]:
    """Whether each prompt is in the first half of the questions, which are dealt at random."""
    asked = np.unique(question)
    dealt = np.random.default_rng(seed_sequence(seed)).permutation(asked)
    return np.isin(question, dealt[: (len(asked) + 1) // 2])


def share_by_question(
    hit: Bool[np.ndarray, "*cell prompt"],
    rows: Bool[np.ndarray, " prompt"],
    question: Int[np.ndarray, " prompt"],
) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """Share of some of the prompts that are hit, and its 95 % Wilson interval.

    Prompts of one question are not independent: the interval counts each question once.

    Returns:
        Share, low and high; NaN of no prompts.
    """
    if not rows.any():
        nothing = np.full(hit.shape[:-1], np.nan)
        return nothing, nothing, nothing
    share = np.asarray(hit[..., rows].mean(axis=-1))
    return (share, *wilson(share, len(np.unique(question[rows]))))


def some_prompts(
    prompts: Sequence[Prompts], rows: Bool[np.ndarray, " prompt"]
) -> tuple[Prompts, ...]:
    """Those of the prompts, counted group after group."""
    ends = np.cumsum([len(group) for group in prompts])[:-1]
    own = [torch.from_numpy(np.flatnonzero(part)) for part in np.split(rows, ends)]
    picked = [group.select(part) for group, part in zip(prompts, own, strict=True)]
    return tuple(group for group in picked if len(group))
