"""Clean and corrupt prompts, side by side."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.tasks.numbers import check_integer
from mechnum.tasks.prompts import Prompts, as_bytes, check_fits
from mechnum.tasks.sampling import PairSpace

if TYPE_CHECKING:
    from mechnum.models.model import Model
    from mechnum.tasks.accuracy import Accuracy

# Operand that both prompts of a pair share.
_KEPT = {"a": "b", "b": "a", "any": None}


class TooFewPairs(MechnumError):
    """More pairs were asked for than exist; `available` is how many do."""

    def __init__(self, message: str, available: int) -> None:
        super().__init__(message)
        self.available = available


@dataclass(frozen=True, eq=False)
class PairGroup:
    """Pairs of one token count; row i of `clean` belongs to row i of `corrupt`.

    Attributes:
        clean: prompts whose answer is wanted.
        corrupt: prompts with another answer, and the same positions.
        index: place of each pair in the order in which the pairs were drawn or given.

    Raises:
        MechnumError: the two sides differ in shape or positions, or a pair has equal prompts or
            equal answers.
    """

    clean: Prompts
    corrupt: Prompts
    index: Int[Tensor, " pair"]

    def __post_init__(self) -> None:
        clean, corrupt = self.clean, self.corrupt
        if clean.tokens.shape != corrupt.tokens.shape:
            raise MechnumError(
                f"clean prompts of shape {tuple(clean.tokens.shape)} cannot be paired with corrupt "
                f"ones of shape {tuple(corrupt.tokens.shape)}: pair prompts of equal token count"
            )
        same_positions = clean.positions.keys() == corrupt.positions.keys() and all(
            torch.equal(positions, corrupt.positions[name])
            for name, positions in clean.positions.items()
        )
        if not same_positions:
            raise MechnumError(
                "clean and corrupt prompts have their operands at different positions: pair "
                "prompts of equal layout"
            )
        for what, equal in (
            ("answers", clean.answers == corrupt.answers),
            ("prompts", (clean.tokens == corrupt.tokens).all(dim=1)),
        ):
            if count := int(equal.sum()):
                row = int(equal.nonzero()[0])
                raise MechnumError(
                    f"{count} of {len(self)} pairs have equal {what}, the first in row {row} "
                    f"(tokens {clean.tokens[row].tolist()} and {corrupt.tokens[row].tolist()}, "
                    f"answers {int(clean.answers[row])} and {int(corrupt.answers[row])}): "
                    "leave them out, they show no effect"
                )

    def __len__(self) -> int:
        return len(self.index)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of a task, in groups of equal token count.

    Attributes:
        groups: the pairs, shortest prompts first.
        vary: which operand differs ("a", "b", "any"), or "given".
        seed: seed of the drawing; None for given pairs.
        dropped: why → how many of the candidates were not fit to be drawn, in ordered pairs; a
            pair counts under the first reason that holds.
        candidates: ordered pairs that the task has for this `vary`, fit or not.
        task: name of the task.
    """

    groups: tuple[PairGroup, ...]
    vary: str
    seed: int | None
    dropped: Mapping[str, int]
    candidates: int
    task: str

    def __len__(self) -> int:
        return sum(len(group) for group in self.groups)

    def __repr__(self) -> str:
        return f"Pairs({len(self)} of {self.task}, vary={self.vary!r}, seed={self.seed})"

    @property
    def dropped_shares(self) -> Mapping[str, float]:
        """Why → share of the candidates that were dropped, 0 to 1."""
        return {why: count / self.candidates for why, count in self.dropped.items()}

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of all tokens, answers and positions, in order."""
        digest = hashlib.sha256()
        for group in self.groups:
            digest.update(as_bytes(group.index))
            for prompts in (group.clean, group.corrupt):
                digest.update(prompts.content())
        return digest.hexdigest()[:12]

    def select(self, indices: Sequence[int]) -> Pairs:
        """Some of the pairs, in the order of their index, which begins at 0 again.

        Raises:
            MechnumError: on indices that do not exist or are there twice, and on none.
        """
        chosen = np.unique(np.asarray(indices, dtype=np.int64))
        if not len(chosen) or len(chosen) < len(indices):
            raise MechnumError("pairs are selected by different indices: give each once")
        if chosen[0] < 0 or chosen[-1] >= len(self):
            raise MechnumError(f"there are pairs 0 to {len(self) - 1}: give indices among these")
        groups = []
        for group in self.groups:
            rows = torch.from_numpy(np.flatnonzero(np.isin(group.index.numpy(), chosen)))
            if len(rows):
                places = torch.from_numpy(np.searchsorted(chosen, group.index[rows].numpy()))
                clean, corrupt = group.clean.select(rows), group.corrupt.select(rows)
                groups.append(PairGroup(clean, corrupt, places))
        return replace(self, groups=tuple(groups))

    def split(self, share: float = 0.5, seed: int = 0) -> tuple[Pairs, Pairs]:
        """Two disjoint parts, drawn at random: one to choose nodes on, one to score them on.

        Args:
            share: of the pairs in the first part.

        Raises:
            MechnumError: where one of the parts would be empty.
        """
        n_first = round(share * len(self))
        if not 0 < n_first < len(self):
            raise MechnumError(
                f"{len(self)} pairs cannot be split at a share of {share}, since "
                "both parts need one: give more pairs"
            )
        order = np.random.default_rng(np.random.SeedSequence(seed)).permutation(len(self))
        return self.select(order[:n_first].tolist()), self.select(order[n_first:].tolist())

    def check_fits(self, model: Model) -> None:
        """Refuses pairs that the model cannot read.

        Raises:
            MechnumError: too many tokens for the model, or ids outside its vocabulary.
        """
        for group in self.groups:
            check_fits(model, group.clean)
            check_fits(model, group.corrupt)


def draw_pairs(
    groups: Sequence[Prompts],
    n: int,
    vary: str,
    seed: int,
    accuracy: Accuracy | None,
    task: str,
) -> Pairs:
    """`n` different pairs, each fit pair equally likely.

    Fit are pairs of equal token count and equal positions whose answers differ, also in their
    first token, and whose prompts share the operand that `vary` does not name.

    Args:
        accuracy: where given, only prompts that the model answers correctly are used.

    Raises:
        TooFewPairs: `n` is larger than the number of fit pairs.
        MechnumError: `n` is not positive, `vary` or `seed` is none, or the prompts have no
            operand of that name.
    """
    if vary not in _KEPT:
        raise MechnumError(f"vary={vary!r} is not known: use 'a', 'b' or 'any'")
    if check_integer(n) < 1:
        raise MechnumError(f"{n} pairs cannot be drawn: ask for 1 or more")
    if check_integer(seed) < 0:
        raise MechnumError(f"the seed {seed} is negative: give 0 or more")
    kept = _KEPT[vary]
    if vary != "any" and vary not in groups[0].variables:
        raise MechnumError(f"the prompts of {task} have no number {vary}: vary 'any' or another")
    # Where there is one operand only, nothing stays when it varies.
    space, order = _pair_space(groups, kept if kept in groups[0].variables else None, accuracy)
    if space.available < n:
        if accuracy is not None and not accuracy.correct.any():
            raise TooFewPairs(
                f"the model answers 0 of {len(accuracy)} prompts of {task} correctly, so that no "
                "pair is left: pass correct_only=False, or choose a task that it can do",
                available=0,
            )
        reasons = ", ".join(f"{count} {why}" for why, count in space.dropped.items() if count)
        if not space.available:
            raise TooFewPairs(
                f"none of the {space.candidates} pairs of {task} with vary={vary!r} can be used "
                f"(dropped: {reasons}): give other numbers, a prompt that the model can do, or "
                "correct_only=False",
                available=0,
            )
        raise TooFewPairs(
            f"only {space.available} of the {n} pairs asked for exist in {task} with "
            f"vary={vary!r} ({space.candidates} candidates, dropped: {reasons}): ask for fewer, "
            "or give the task more numbers",
            available=space.available,
        )
    generator = np.random.default_rng(np.random.SeedSequence(seed))
    clean, corrupt = space.draw(n, generator)
    pair_groups = []
    for number, group in enumerate(groups):
        # Both sides are of one layout, so of one group.
        chosen = np.flatnonzero(order[clean, 0] == number)
        if len(chosen):
            pair_groups.append(
                PairGroup(
                    clean=group.select(torch.from_numpy(order[clean[chosen], 1])),
                    corrupt=group.select(torch.from_numpy(order[corrupt[chosen], 1])),
                    index=torch.from_numpy(chosen),
                )
            )
    return Pairs(
        groups=tuple(pair_groups),
        vary=vary,
        seed=seed,
        dropped=MappingProxyType(dict(space.dropped)),
        candidates=space.candidates,
        task=task,
    )


def _pair_space(
    groups: Sequence[Prompts], kept: str | None, accuracy: Accuracy | None
) -> tuple[PairSpace, Int[np.ndarray, "prompt 2"]]:
    """The prompts of all groups in one row, and (group, row in it) of each."""
    order = np.concatenate(
        [
            np.stack([np.full(len(group), number), np.arange(len(group))], axis=1)
            for number, group in enumerate(groups)
        ]
    )
    names = list(groups[0].positions)
    length = np.concatenate([np.full(len(g), g.tokens.shape[1]) for g in groups])
    positions = np.stack([_column(groups, lambda g, n=name: g.positions[n]) for name in names])
    _, layout = np.unique(np.vstack([length, positions]), axis=1, return_inverse=True)
    if accuracy is None:
        usable = np.ones(len(order), dtype=bool)
    else:
        usable = accuracy.correct.numpy()[_column(groups, lambda g: g.index)]
    space = PairSpace(
        key=np.zeros(len(order), dtype=np.int64)
        if kept is None
        else _column(groups, lambda g: g.variables[kept]),
        length=length,
        layout=layout.reshape(-1),
        answer=_column(groups, lambda g: g.variables["answer"]),
        first=_column(groups, lambda g: g.answers),
        usable=usable,
    )
    return space, order


def _column(groups, read) -> Int[np.ndarray, " prompt"]:
    return np.concatenate([read(group).numpy() for group in groups])
