"""Which ordered pairs of prompts are fit for patching, counted exactly and drawn evenly.

Whether two prompts fit depends only on the classes that they are in, so the pairs are counted by
class and drawn by rank: ten thousand prompts have 10⁸ pairs, and none is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int


@dataclass(frozen=True, eq=False)
class PairSpace:
    """All ordered pairs (clean, corrupt) of prompts that share a key.

    Attributes:
        key: prompts are only paired with prompts of the same key (the operand that stays).
        length: token count.
        layout: class of equal token count and equal positions.
        answer: right answer.
        first: token id of the answer, the same for equal answers.
        usable: prompts that may be used at all.
    """

    key: Int[np.ndarray, " prompt"]
    length: Int[np.ndarray, " prompt"]
    layout: Int[np.ndarray, " prompt"]
    answer: Int[np.ndarray, " prompt"]
    first: Int[np.ndarray, " prompt"]
    usable: Bool[np.ndarray, " prompt"]

    @property
    def candidates(self) -> int:
        """Pairs of equal key, before anything is dropped."""
        return _squares(self.key)

    @property
    def available(self) -> int:
        """Pairs that are left."""
        return self.candidates - sum(self.dropped.values())

    @cached_property
    def dropped(self) -> Mapping[str, int]:
        """Why → how many pairs; a pair counts under the first reason that holds."""
        use = self.usable
        key, length, layout = self.key[use], self.length[use], self.layout[use]
        answer, first = self.answer[use], self.first[use]
        usable = _squares(key)
        same_length = _squares(key, length)
        same_layout = _squares(key, layout)
        same_answer = _squares(key, layout, answer)
        same_first = _squares(key, layout, first)
        return {
            "answered wrong": self.candidates - usable,
            "different token count": usable - same_length,
            "different positions": same_length - same_layout,
            "clean equals corrupt": int(use.sum()),
            "same answer": same_answer - int(use.sum()),
            "same first answer token": same_first - same_answer,
        }

    def draw(
        self, n: int, generator: np.random.Generator
    ) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
        """`n` different pairs, each equally likely, as (clean row, corrupt row).

        `n` may be `available` at most.
        """
        rows = np.flatnonzero(self.usable)
        # Prompts of one class stand together, and in it those of one answer token, so that the
        # partners of a prompt are its class without one run.
        rows = rows[np.lexsort((self.first[rows], self.layout[rows], self.key[rows]))]
        class_start, class_end = _runs(self.key[rows], self.layout[rows])
        run_start, run_end = _runs(self.key[rows], self.layout[rows], self.first[rows])
        run = run_end - run_start
        partners = class_end - class_start - run
        ends = np.cumsum(partners)
        ranks = generator.choice(int(ends[-1]), size=n, replace=False)
        clean = np.searchsorted(ends, ranks, side="right")
        place = ranks - (ends - partners)[clean]
        corrupt = class_start[clean] + place
        corrupt += np.where(corrupt >= run_start[clean], run[clean], 0)
        return rows[clean], rows[corrupt]


def _squares(*keys: Int[np.ndarray, " prompt"]) -> int:
    """Ordered pairs of prompts that agree in all keys."""
    _, counts = np.unique(np.stack(keys), axis=1, return_counts=True)
    return int((counts.astype(np.int64) ** 2).sum())


def _runs(
    *keys: Int[np.ndarray, " prompt"],
) -> tuple[Int[np.ndarray, " prompt"], Int[np.ndarray, " prompt"]]:
    """Start and end of the run of equal keys that each row of sorted keys is in."""
    stacked = np.stack(keys)
    new = np.append(True, (stacked[:, 1:] != stacked[:, :-1]).any(axis=0))
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], stacked.shape[1])
    run = np.cumsum(new) - 1
    return starts[run], ends[run]
