"""Hidden Markov processes: what they emit, and what an observer believes about their state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Int64

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.tasks.processes.chains import stationary_law
from mechnum.tasks.processes.updates import followed, histories

ROUNDING = 1e-9
"""How far rows may be from 1 as they are given, as decimal fractions are; they are rescaled."""


@dataclass(frozen=True, eq=False, repr=False)
class Process:
    """A hidden Markov process that emits on its transitions; made by `from_matrices`.

    Beliefs are row vectors η, the observer's probabilities of the hidden states. After token x they
    are ηTˣ / ηTˣ1, and ηTˣ1 is the probability of x (Shai et al. 2024, section 2).

    Attributes:
        name: stands in results.
        matrices: Tˣ[i, j] = P(emit x and go to state j | state i), read-only.
        tokens, states: names; token ids and state ids count in this order.
        start: belief before the first token, read-only.
    """

    name: str
    matrices: Float64[np.ndarray, "token state state"]
    tokens: tuple[str, ...]
    states: tuple[str, ...]
    start: Float64[np.ndarray, " state"]

    def __repr__(self) -> str:
        return f"Process({self.name}: {self.n_tokens} tokens, {self.n_states} hidden states)"

    @property
    def n_tokens(self) -> int:
        """Size of the alphabet; token ids are 0 to n_tokens − 1."""
        return len(self.tokens)

    @property
    def n_states(self) -> int:
        """Number of hidden states."""
        return len(self.states)

    @property
    def transition(self) -> Float64[np.ndarray, "state state"]:
        """P(next state | state), whatever is emitted."""
        return self.matrices.sum(axis=0)

    @property
    def emission(self) -> Float64[np.ndarray, "state token"]:
        """P(next token | state)."""
        return self.matrices.sum(axis=2).T

    def next_token(
        self, beliefs: Float64[np.ndarray, "*batch state"], ahead: int = 1
    ) -> Float64[np.ndarray, "*batch token"]:
        """Distribution of the token `ahead` steps from now, for beliefs that hold now."""
        positive_integer("ahead", ahead)
        return beliefs @ np.linalg.matrix_power(self.transition, ahead - 1) @ self.emission

    def beliefs(self, strings: Any) -> Float64[np.ndarray, "string pos state"]:
        """Beliefs before the first token and after each, so one position more than tokens.

        Args:
            strings: token ids [string, pos].

        Raises:
            MechnumError: on token ids outside the alphabet, and on a string that the process
                cannot emit.
        """
        strings = self._checked(strings)
        beliefs = histories(self.matrices, self.start, strings)
        impossible = np.flatnonzero(beliefs[:, -1] @ np.ones(self.n_states) == 0)
        if len(impossible):
            row = int(impossible[0])
            position = int((beliefs[row].sum(axis=1) > 0).sum()) - 1
            raise MechnumError(
                f"{self.name} cannot emit token {self.tokens[strings[row, position]]} at position "
                f"{position} of string {row}: give strings of this process"
            )
        return beliefs

    def log_likelihood(self, strings: Any) -> Float64[np.ndarray, " string"]:
        """log P(string) in nats; −∞ where the process cannot emit it.

        Summed in logs, so that long strings do not underflow.

        Raises:
            MechnumError: on token ids outside the alphabet.
        """
        strings = self._checked(strings)
        total = np.zeros(len(strings))
        before = np.broadcast_to(self.start, (len(strings), self.n_states))
        with np.errstate(divide="ignore"):
            for _, probability in followed(self.matrices, before, strings):
                total += np.log(probability)
        return total

    def sample(
        self, n: int, length: int, seed: int | np.random.SeedSequence = 0
    ) -> Int64[np.ndarray, "string pos"]:
        """`n` strings, each from a fresh start; the same seed gives the same strings."""
        positive_integer("n", n)
        positive_integer("length", length)
        if not isinstance(seed, np.random.SeedSequence):
            seed = seed_sequence(seed)
        generator = np.random.default_rng(seed)
        # What each state emits and where it goes, as one choice: cell x · n_states + j.
        cells = self.matrices.transpose(1, 0, 2).reshape(self.n_states, -1)
        state = _drawn(self.start[None], np.zeros(n, dtype=np.int64), generator)
        strings = np.empty((n, length), dtype=np.int64)
        for position in range(length):
            token, state = np.divmod(_drawn(cells, state, generator), self.n_states)
            strings[:, position] = token
        return strings

    def _checked(self, strings: Any) -> Int64[np.ndarray, "string pos"]:
        found = np.asarray(strings.cpu() if hasattr(strings, "cpu") else strings)
        if found.ndim != 2 or found.size == 0 or not np.issubdtype(found.dtype, np.integer):
            raise MechnumError(
                f"strings of shape {found.shape} and type {found.dtype} are none: give token ids "
                "[string, position], at least one"
            )
        if found.min() < 0 or found.max() >= self.n_tokens:
            outside = found[(found < 0) | (found >= self.n_tokens)][0]
            raise MechnumError(
                f"token {outside} is not in the alphabet of {self.name}: use 0 to "
                f"{self.n_tokens - 1}"
            )
        return found.astype(np.int64, copy=False)


def from_matrices(
    matrices: Any,
    name: str = "process",
    tokens: Sequence[str] | None = None,
    states: Sequence[str] | None = None,
    start: Any = None,
) -> Process:
    """A process from its matrices Tˣ[i, j] = P(emit x and go to j | i), as [token, state, state].

    Args:
        tokens, states: names, counted from 0 without them.
        start: belief before the first token; the stationary law without it.

    Raises:
        MechnumError: where the matrices have another shape, negative entries, or rows Σₓ Tˣ that
            do not sum to 1; on names that do not fit; on a start that is no distribution; and,
            without a start, where the chain has several closed classes and so no single
            stationary law.
    """
    given = as_array(matrices)
    if given.ndim != 3 or given.size == 0 or given.shape[1] != given.shape[2]:
        raise MechnumError(
            f"matrices of {name} are not [token, state, state]: give one square matrix for each "
            "token, all of one size"
        )
    n_tokens, n_states, _ = given.shape
    token_names = _names(tokens, n_tokens, "tokens", name)
    state_names = _names(states, n_states, "states", name)
    if not np.isfinite(given).all() or given.min() < 0:
        token, row, column = np.argwhere(~(given >= 0) | ~np.isfinite(given))[0]
        raise MechnumError(
            f"{name}: token {token_names[token]} takes state {state_names[row]} to "
            f"{state_names[column]} with {given[token, row, column]:g}: give probabilities"
        )
    sums = given.sum(axis=(0, 2))
    row = int(np.abs(sums - 1).argmax())
    if abs(sums[row] - 1) > ROUNDING:
        raise MechnumError(
            f"{name}: row {row} (state {state_names[row]}) sums to {sums[row]:.12g} over all "
            "tokens: make it 1"
        )
    given /= sums[None, :, None]
    begin = (
        stationary_law(given.sum(axis=0), state_names, name)
        if start is None
        else distribution(start, n_states, f"start of {name}")
    )
    for array in (given, begin):
        array.flags.writeable = False
    return Process(name, given, token_names, state_names, begin)


def as_array(values: Any) -> np.ndarray:
    """A copy in float64; empty where the values are no numbers or ragged."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def distribution(values: Any, size: int, what: str) -> Float64[np.ndarray, " entry"]:
    """`size` probabilities, rescaled to sum to 1 exactly.

    Raises:
        MechnumError: where they are not that.
    """
    given = as_array(values)
    if given.shape != (size,) or not np.isfinite(given).all() or given.min() < 0:
        raise MechnumError(f"{what} is not {size} probabilities: give one number for each, from 0")
    if abs(given.sum() - 1) > ROUNDING:
        raise MechnumError(f"{what} sums to {given.sum():.12g}: make it 1")
    return given / given.sum()


def _names(given: Sequence[str] | None, size: int, what: str, name: str) -> tuple[str, ...]:
    names = tuple(str(index) for index in range(size)) if given is None else tuple(map(str, given))
    if len(names) != size or len(set(names)) < size:
        raise MechnumError(
            f"{name} has {size} {what} and the names {names}: give as many, all different"
        )
    return names


def _drawn(
    rows: Float64[np.ndarray, "row cell"],
    which: Int[np.ndarray, " draw"],
    generator: np.random.Generator,
) -> Int64[np.ndarray, " draw"]:
    """One cell from row `which` of each draw."""
    n_cells = rows.shape[1]
    # All rows end to end: row r covers r to r + 1, so that one search serves all draws.
    edges = rows.cumsum(axis=1)
    edges /= edges[:, -1:]
    ends = (edges + np.arange(len(rows))[:, None]).ravel()
    found = np.searchsorted(ends, which + generator.random(len(which)), side="right")
    # A draw next to 1 rounds into the next row.
    last = n_cells - 1 - (rows[:, ::-1] > 0).argmax(axis=1)
    return np.minimum(found - which * n_cells, last[which]).astype(np.int64)
