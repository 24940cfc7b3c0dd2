"""Addition as a process: digit by digit from the least significant one, the carry is hidden.

A column is two tokens: the digits of both operands, "a+b", and then the digit of their sum, "=c".
What comes after a column depends on it through the carry alone. With `hidden` > 0 some columns show
"?" in place of their digits; then the sum's digit is all that says something about the carry, and
beliefs lie between 0 and 1: after "?" and "=c" the belief of a carry η becomes (base − 1 − c + η) /
base, as though it were written out in digits.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from jaxtyping import Float64

from mechnum.errors import MechnumError
from mechnum.tasks.processes.process import Process, from_matrices

LARGEST = 16
"""Base up to which the matrices, which grow with its fourth power, stay small."""


def carry(base: int = 10, hidden: float = 0.0, carry_in: float = 0.0) -> Process:
    """The automaton of column addition, over digits that are drawn evenly.

    States: "carry 0" and "carry 1" before a column's digits, and "sum t", with t = a + b + carry,
    before the digit of its sum. Tokens: "a+b" with id base · a + b, then "=c" with id base² + c,
    and with `hidden` > 0 at last "?".

    Args:
        base: of the digits.
        hidden: how often a column's operands are not shown.
        carry_in: probability that a carry comes into the first column; 0 in whole sums.

    Raises:
        MechnumError: unless the base is 2 to 16 and 0 ≤ hidden, carry_in ≤ 1.
    """
    if isinstance(base, bool) or not isinstance(base, Integral) or not 2 <= base <= LARGEST:
        raise MechnumError(f"base is {base!r}: give a whole number from 2 to {LARGEST}")
    for name, value in (("hidden", hidden), ("carry_in", carry_in)):
        if not 0 <= value <= 1:
            raise MechnumError(f"{name} is {value}: give a number from 0 to 1")
    pairs = [(a, b) for a in range(base) for b in range(base)]
    tokens = [*(f"{a}+{b}" for a, b in pairs), *(f"={c}" for c in range(base)), "?"]
    states = _states(base)
    matrices = np.zeros((len(tokens), len(states), len(states)))
    for own in (0, 1):
        for token, (a, b) in enumerate(pairs):
            total = 2 + a + b + own
            matrices[token, own, total] = (1 - hidden) / base**2
            matrices[-1, own, total] += hidden / base**2
    for total in range(2 * base):
        out, digit = divmod(total, base)
        matrices[base**2 + digit, 2 + total, out] = 1.0
    if hidden == 0:
        matrices, tokens = matrices[:-1], tokens[:-1]
    start = np.zeros(len(states))
    start[:2] = 1 - carry_in, carry_in
    return from_matrices(matrices, f"carry:{base},{hidden:g}", tokens, states, start)


def carry_base(process: Process) -> int | None:
    """The base of a process with the states of `carry`, and None of others."""
    base = process.n_states // 2 - 1
    return base if process.states == _states(base) else None


def carry_readout(base: int = 10) -> Float64[np.ndarray, "state 2"]:
    """What makes beliefs over the states of `carry` beliefs about the carry, by `beliefs @ …`.

    Before a column's digits that is the carry into it, and after them the carry out of it.
    """
    outgoing = [0, 1, *(total // base for total in range(2 * base))]
    return np.eye(2)[outgoing]


def _states(base: int) -> tuple[str, ...]:
    return ("carry 0", "carry 1", *(f"sum {total}" for total in range(2 * base)))
