"""Heuristics: what a neuron may recognise in the operands or in the result of a sum.

Source: Nikankin et al. 2025 (arXiv 2410.21272), sections 3 and 4.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Int

from mechnum.errors import InvalidInput, MechnumError

HeuristicKind = Literal["range", "modulo", "pattern", "both", "identical", "multi-result"]
KINDS: tuple[HeuristicKind, ...] = (
    "range",
    "modulo",
    "pattern",
    "both",
    "identical",
    "multi-result",
)
# "both" stands for a and b alike.
Variable = Literal["a", "b", "result", "both"]
# The integers behind the prompts: "a", "b" where there is one, and "result".
Numbers: TypeAlias = Mapping[str, Int[np.ndarray, " prompt"]]

LENGTHS = (10, 30, 50, 100)
# Modulo 10 is what a pattern of the last digit says.
MODULI = (2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15)
_DIGITS = 3
# Chance alone gives a heuristic that holds for a share s of the prompts the score s. Half of the
# prompts, and what parities and halves of grids of odd size have more.
MOST = 0.55


@dataclass(frozen=True)
class Heuristic(ABC):
    """Something that holds for some of the prompts; `parse_heuristic` makes one of its words.

    Attributes:
        variable: what it is about: "a", "b", "result", or "both" operands alike.
    """

    variable: Variable

    @property
    @abstractmethod
    def kind(self) -> HeuristicKind:
        """One of `KINDS`."""

    @property
    @abstractmethod
    def words(self) -> str:
        """As reports say it."""

    @property
    def direct(self) -> bool:
        """Whether it is about the result, so that it is looked for in what a neuron writes."""
        return self.variable == "result"

    def holds(self, numbers: Numbers) -> Bool[np.ndarray, " prompt"]:
        """For which prompts it holds.

        Args:
            numbers: the integers behind the prompts, by the names "a", "b" and "result".
        """
        names = ("a", "b") if self.variable == "both" else (self.variable,)
        return np.logical_and.reduce([self._holds(numbers[name]) for name in names])

    @abstractmethod
    def _holds(self, values: Int[np.ndarray, " prompt"]) -> Bool[np.ndarray, " prompt"]:
        """For which values of one variable it holds."""

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class InRange(Heuristic):
    """start ≤ value < end."""

    start: int
    end: int

    @property
    def kind(self) -> HeuristicKind:
        """ "range", or "both"."""
        return "both" if self.variable == "both" else "range"

    @property
    def words(self) -> str:
        """ "result in [30, 60)", "a and b in [20, 50)"."""
        subject = "a and b" if self.variable == "both" else self.variable
        return f"{subject} in [{self.start}, {self.end})"

    def _holds(self, values: Int[np.ndarray, " prompt"]) -> Bool[np.ndarray, " prompt"]:
        return (self.start <= values) & (values < self.end)


@dataclass(frozen=True)
class Residue(Heuristic):
    """The value leaves a residue."""

    residue: int
    modulus: int

    @property
    def kind(self) -> HeuristicKind:
        """ "modulo", or "both"."""
        return "both" if self.variable == "both" else "modulo"

    @property
    def words(self) -> str:
        """ "a ≡ 3 (mod 7)", "a ≡ b ≡ 2 (mod 5)"."""
        subject = "a ≡ b" if self.variable == "both" else self.variable
        return f"{subject} ≡ {self.residue} (mod {self.modulus})"

    def _holds(self, values: Int[np.ndarray, " prompt"]) -> Bool[np.ndarray, " prompt"]:
        return values % self.modulus == self.residue


@dataclass(frozen=True)
class DigitPattern(Heuristic):
    """The three digits of the value, zeros leading, with dots for any digit.

    Values below 0 and above 999 have no three digits, so that no pattern holds for them.
    """

    digits: str

    @property
    def kind(self) -> HeuristicKind:
        """ "pattern"."""
        return "pattern"

    @property
    def words(self) -> str:
        """ "result like .3."."""
        return f"{self.variable} like {self.digits}"

    def _holds(self, values: Int[np.ndarray, " prompt"]) -> Bool[np.ndarray, " prompt"]:
        held = (values >= 0) & (values < 10**_DIGITS)
        for place, digit in enumerate(reversed(self.digits)):
            if digit != ".":
                held &= values // 10**place % 10 == int(digit)
        return held


@dataclass(frozen=True)
class Identical(Heuristic):
    """Both operands are the same number."""

    variable: Variable = "both"

    @property
    def kind(self) -> HeuristicKind:
        """ "identical"."""
        return "identical"

    @property
    def words(self) -> str:
        """ "a = b"."""
        return "a = b"

    def holds(self, numbers: Numbers) -> Bool[np.ndarray, " prompt"]:
        """For which prompts a and b are the same."""
        return self._holds(numbers["a"] - numbers["b"])

    def _holds(self, values: Int[np.ndarray, " prompt"]) -> Bool[np.ndarray, " prompt"]:
        return values == 0


@dataclass(frozen=True)
class MultiResult(Heuristic):
    """The result is one of a few values."""

    values: tuple[int, ...]

    @property
    def kind(self) -> HeuristicKind:
        """ "multi-result"."""
        return "multi-result"

    @property
    def words(self) -> str:
        """ "result in {2, 3, 7}"."""
        return f"{self.variable} in {{{', '.join(map(str, self.values))}}}"

    def _holds(self, values: Int[np.ndarray, " prompt"]) -> Bool[np.ndarray, " prompt"]:
        return np.isin(values, self.values)


_ONE = r"(a|b|result)"
_INTEGER = r"(-?\d+)"
_FORMS: tuple[tuple[str, Callable[..., Heuristic]], ...] = (
    (rf"{_ONE} in \[{_INTEGER}, {_INTEGER}\)", lambda v, s, e: InRange(v, int(s), int(e))),
    (rf"a and b in \[{_INTEGER}, {_INTEGER}\)", lambda s, e: InRange("both", int(s), int(e))),
    (rf"{_ONE} ≡ (\d+) \(mod ([1-9]\d*)\)", lambda v, r, m: Residue(v, int(r), int(m))),
    (r"a ≡ b ≡ (\d+) \(mod ([1-9]\d*)\)", lambda r, m: Residue("both", int(r), int(m))),
    (rf"{_ONE} like ([\d.]{{{_DIGITS}}})", DigitPattern),
    (r"a = b", Identical),
    (
        rf"result in \{{({_INTEGER}(?:, {_INTEGER})*)\}}",
        lambda values, *_: MultiResult("result", tuple(map(int, values.split(", ")))),
    ),
)


def parse_heuristic(words: str) -> Heuristic:
    """The heuristic of which `words` are the words: `result in [30, 60)`, `a ≡ 3 (mod 7)`, ...

    Raises:
        MechnumError: on words of no heuristic.
    """
    for form, made in _FORMS:
        if match := re.fullmatch(form, words.strip()):
            return made(*match.groups())
    raise MechnumError(
        f"{words!r} are the words of no heuristic: write 'result in [30, 60)', 'a ≡ 3 (mod 7)', "
        "'b like .3.', 'a ≡ b ≡ 2 (mod 5)', 'a and b in [20, 50)', 'a = b' or 'result in {2, 3}'"
    )


def _is_one_value(one: Heuristic, numbers: Numbers, held: Bool[np.ndarray, " prompt"]) -> bool:
    """Whether a residue or range holds for one number alone, as 9 modulo 11 below 20."""
    if not isinstance(one, (Residue, InRange)):
        return False
    values = numbers["a" if one.variable == "both" else one.variable]
    return len(np.unique(values[held])) < 2


def all_heuristics(
    numbers: Numbers, lengths: Sequence[int] = LENGTHS, moduli: Sequence[int] = MODULI
) -> tuple[Heuristic, ...]:
    """Every range, residue and digit pattern that can tell these prompts apart.

    Of a, b, the result, and both operands alike; and that both are the same. Ranges start in steps
    of a third of their length, of 10 at least, and end with the largest number; patterns have one
    or two of three digits. Left out are heuristics that hold for one prompt or none; those that
    hold for more than half of the prompts, which chance would match (strictly more than 55 %: of a
    grid's sums a little more than half are even); and of those of a kind and variable that hold
    for the very same prompts all but the first. Sets of results ("multi-result") belong to a
    neuron: `heuristics` finds them.

    Args:
        numbers: the integers behind the prompts: "result", "a", and "b" where there is a second
            operand; without it there is nothing about b or both.
        lengths: of ranges (Nikankin et al. 2025: 10, 30, 50, 100; 2, 10, 100 for quotients).
        moduli: of residues; 10 is a pattern's.

    Raises:
        InvalidInput: on lengths and moduli that are none.
    """
    for what, given in (("length", lengths), ("modulus", moduli)):
        if wrong := [one for one in given if one < 2]:
            raise InvalidInput(f"a {what} of {wrong[0]} says nothing: give whole numbers above 1")
    operands = ("a", "b") if "b" in numbers else ("a",)
    found: dict[tuple[str, str, bytes], Heuristic] = {}
    for one in _candidates(numbers, operands, lengths, moduli):
        held = one.holds(numbers)
        if 1 < held.sum() <= MOST * len(held) and not _is_one_value(one, numbers, held):
            found.setdefault((one.kind, one.variable, np.packbits(held).tobytes()), one)
    return tuple(found.values())


def _candidates(
    numbers: Numbers, operands: Sequence[Variable], lengths: Sequence[int], moduli: Sequence[int]
) -> Iterator[Heuristic]:
    for variable in ("result", *operands):
        for start, end in _ranges(numbers[variable], lengths):
            yield InRange(variable, start, end)
        for modulus in moduli:
            yield from (Residue(variable, residue, modulus) for residue in range(modulus))
        yield from (DigitPattern(variable, digits) for digits in _patterns())
    if "b" in operands:
        shared = np.concatenate([numbers["a"], numbers["b"]])
        for start, end in _ranges(shared, lengths):
            yield InRange("both", start, end)
        for modulus in moduli:
            yield from (Residue("both", residue, modulus) for residue in range(modulus))
        yield Identical()


def _ranges(values: Int[np.ndarray, " value"], lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    smallest, largest = int(values.min()), int(values.max())
    for length in lengths:
        step = max(length // 3, 10)
        for start in range(min(0, smallest // step * step), largest + 1, step):
            yield start, min(start + length, largest + 1)


def _patterns() -> Iterator[str]:
    """Patterns of one fixed digit, then of two; three are one number, which is no pattern."""
    for fixed in (1, 2):
        for filled in range(1, 2**_DIGITS):
            places = [place for place in range(_DIGITS) if filled >> place & 1]
            if len(places) != fixed:
                continue
            for number in range(10**fixed):
                digits = ["."] * _DIGITS
                for place, digit in zip(places, f"{number:0{fixed}d}", strict=True):
                    digits[place] = digit
                yield "".join(digits)
