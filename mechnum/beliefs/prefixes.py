"""The prefixes of a process' strings, each once, with their beliefs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from mechnum.beliefs.rows import Rows
from mechnum.beliefs.streams import Stream, stream
from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer
from mechnum.tasks.processes.process import Process
from mechnum.tasks.processes.updates import continued, normalised


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Distinct prefixes; what a net computes at their last token depends on nothing else.

    Attributes:
        strings: token ids of whole strings, in random order.
        exact: whether these are all strings of the process; else they are a sample.
        string, position: where each prefix is read from: the first string that begins with it, and
            the position of its last token. A string's own prefixes are held out together.
        weights: probability of each prefix among all of the kept positions, 1 in all.
        beliefs: after each prefix.
    """

    process: Process
    strings: Int64[np.ndarray, "string pos"]
    exact: bool
    string: Int64[np.ndarray, " prefix"]
    position: Int64[np.ndarray, " prefix"]
    weights: Float64[np.ndarray, " prefix"]
    beliefs: Float64[np.ndarray, "prefix state"]

    def __len__(self) -> int:
        return len(self.string)

    @property
    def token(self) -> Int64[np.ndarray, " prefix"]:
        """The last token of each prefix."""
        return self.strings[self.string, self.position]

    def rows(self, folds: int, cutoffs: Sequence[float], seed: int) -> Rows:
        """The prefixes dealt to folds, those of one string together.

        Raises:
            MechnumError: where there are fewer strings than folds.
            InvalidInput: as `mechnum.beliefs.belief_regression`.
        """
        owners = len(np.unique(self.string))
        if owners < folds:
            raise MechnumError(
                f"{owners} different strings of {self.process.name} are too few to hold some out "
                f"in {folds} folds: read longer strings, more of them, or later positions"
            )
        return Rows.of(len(self), self.weights, self.string, folds, cutoffs, seed)


def prefixes(
    process: Process, length: int, n_strings: int, seed: int, positions: tuple[int, ...] | None
) -> Prefixes:
    """Prefixes of all strings of `length` tokens, or of `n_strings` drawn ones if there are more.

    Raises:
        MechnumError: on sizes below 1 and on positions outside the strings.
    """
    positive_integer("length", length)
    positive_integer("strings", n_strings)
    kept = tuple(range(length)) if positions is None else positions
    outside = [position for position in kept if not 0 <= position < length]
    if outside or not kept:
        what = f"position {outside[0]}" if outside else "no position"
        raise MechnumError(f"strings of {length} tokens have {what}: use 0 to {length - 1}")
    found = all_strings(process, length, n_strings)
    exact = found is not None
    if found is None:
        drawn = process.sample(n_strings, length, stream(seed, Stream.STRINGS))
        strings, counts = np.unique(drawn, axis=0, return_counts=True)
        found = strings, counts / n_strings
    strings, probability = found
    # Which string stands for a shared prefix is left to chance.
    order = np.random.default_rng(stream(seed, Stream.ORDER))
    shuffled = order.permutation(len(strings))
    strings, probability = strings[shuffled], probability[shuffled]
    node = np.zeros(len(strings), dtype=np.int64)
    owners, places, weights = [], [], []
    for position in range(max(kept) + 1):
        code = node * process.n_tokens + strings[:, position]
        _, first, node = np.unique(code, return_index=True, return_inverse=True)
        node = node.reshape(-1)
        if position in kept:
            owners.append(first)
            places.append(np.full(len(first), position))
            weights.append(np.bincount(node, probability))
    string, position = np.concatenate(owners), np.concatenate(places)
    weight = np.concatenate(weights)
    beliefs = process.beliefs(strings)[string, position + 1]
    return Prefixes(process, strings, exact, string, position, weight / weight.sum(), beliefs)


def all_strings(
    process: Process, length: int, most: int
) -> tuple[Int64[np.ndarray, "string pos"], Float64[np.ndarray, " string"]] | None:
    """All strings that can be emitted and their probabilities; None where more than `most`."""
    strings = np.zeros((1, 0), dtype=np.int64)
    beliefs, probability = process.start[None], np.ones(1)
    for _ in range(length):
        after, conditional = normalised(continued(process.matrices, beliefs))
        before, token = np.nonzero(conditional > 0)
        if len(before) > most:
            return None
        strings = np.column_stack([strings[before], token])
        beliefs, probability = (
            after[before, token],
            probability[before] * conditional[before, token],
        )
    return strings, probability
