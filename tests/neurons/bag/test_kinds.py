"""Heuristics hold where their words say, and the generator gives each set of prompts once."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mechnum.errors import InvalidInput, MechnumError
from mechnum.neurons import all_heuristics, parse_heuristic
from mechnum.neurons.bag.kinds import (
    DigitPattern,
    Identical,
    InRange,
    MultiResult,
    Residue,
)
from tests.neurons.grids import grid


def read(words: str, a: int, b: int, result: int) -> bool:
    """The words taken literally, one prompt at a time."""
    value = {"a": a, "b": b, "result": result}
    if words == "a = b":
        return a == b
    if match := re.fullmatch(r"(.+) in \[(\d+), (\d+)\)", words):
        names = match[1].split(" and ")
        return all(value[name] in range(int(match[2]), int(match[3])) for name in names)
    if match := re.fullmatch(r"(.+) ≡ (\d+) \(mod (\d+)\)", words):
        return all(value[name] % int(match[3]) == int(match[2]) for name in match[1].split(" ≡ "))
    if match := re.fullmatch(r"(\w+) like (...)", words):
        digits = f"{value[match[1]]:03d}"
        return len(digits) == 3 and re.fullmatch(match[2], digits) is not None
    raise AssertionError(words)


def test_they_hold_where_their_words_say():
    numbers = {name: values[::83] for name, values in grid(100).items()}
    for one in all_heuristics(numbers):
        expected = [read(one.words, *prompt) for prompt in zip(*numbers.values(), strict=True)]
        np.testing.assert_array_equal(one.holds(numbers), expected, err_msg=one.words)


def test_all_kinds_and_variables_are_there():
    every = all_heuristics(grid(100))
    words = [one.words for one in every]
    assert len(set(words)) == len(words) == 870
    for kind in ("range", "modulo", "pattern"):
        assert {one.variable for one in every if one.kind == kind} == {"a", "b", "result"}
    assert {one.words for one in every if one.kind == "identical"} == {"a = b"}
    for one in ("a ≡ b ≡ 14 (mod 15)", "a and b in [20, 50)", "result in [96, 146)", "b like .37"):
        assert one in words
    assert {one.modulus for one in every if isinstance(one, Residue)} == {
        *(2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15)
    }


def test_nothing_vacuous_and_nothing_twice():
    numbers = grid(31)
    seen = set()
    for one in all_heuristics(numbers):
        held = one.holds(numbers)
        assert 2 <= held.sum() <= 0.55 * len(held)
        assert (one.kind, one.variable, held.tobytes()) not in seen
        seen.add((one.kind, one.variable, held.tobytes()))
    words = {one.words for one in all_heuristics(numbers)}
    # 16 of 31 numbers are even, 481 of 961 sums are.
    assert {"a ≡ 0 (mod 2)", "result ≡ 0 (mod 2)", "a in [0, 10)", "a like ..4"} <= words
    # Everything is below 100; "0.4" says no more than "..4"; the range ends where the numbers do.
    assert not {"a in [0, 31)", "a like 0..", "a like 0.4", "a in [20, 50)"} & words
    assert "a in [20, 31)" in words


def test_tasks_with_one_operand_have_nothing_of_a_second():
    a = np.arange(23, 100)
    every = all_heuristics({"a": a, "result": a - 23})
    assert {one.variable for one in every} == {"a", "result"}
    assert {one.kind for one in every} == {"range", "modulo", "pattern"}


def test_negative_and_long_results():
    values = np.array([-15, -5, 0, 5, 999, 1000, 1005])
    numbers = {"a": values, "result": values}
    assert InRange("result", -20, -10).holds(numbers).tolist() == [True] + 6 * [False]
    assert Residue("a", 0, 5).holds(numbers).tolist() == [True, True, True, True, False, True, True]
    assert DigitPattern("a", "..5").holds(numbers).tolist() == [*3 * [False], True, *3 * [False]]
    many = np.arange(-15, 1000, 4)
    words = {one.words for one in all_heuristics({"a": many, "result": many})}
    assert {"a in [-20, -10)", "a in [-10, 0)", "a in [990, 998)"} <= words


def test_words_are_read_back():
    for one in (
        *all_heuristics(grid(60)),
        Identical(),
        InRange("result", -20, -10),
        MultiResult("result", (-2, 3, 7)),
        InRange("both", 20, 50),
    ):
        assert parse_heuristic(one.words) == one
    assert str(MultiResult("result", (2, 3))) == "result in {2, 3}"


@pytest.mark.parametrize(
    "words", ["", "a", "c in [1, 2)", "a ≡ 1 (mod 0)", "a like 1234", "b in {1, 2}", "a ≠ b"]
)
def test_other_words_are_refused(words):
    with pytest.raises(MechnumError, match="are the words of no heuristic: write 'result in"):
        parse_heuristic(words)


def test_lengths_and_moduli_of_nothing_are_refused():
    with pytest.raises(InvalidInput, match="a length of 1 says nothing"):
        all_heuristics(grid(20), lengths=(1,))
    with pytest.raises(InvalidInput, match="a modulus of 0 says nothing"):
        all_heuristics(grid(20), moduli=(2, 0))
