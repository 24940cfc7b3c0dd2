"""Which integers are one token, and where."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal, SupportsIndex

from mechnum.errors import MechnumError
from mechnum.tasks.encoding import Encoder

if TYPE_CHECKING:
    import xarray as xr
    from transformers import PreTrainedTokenizerBase

Place = Literal["bare", "spaced", "context"]
PLACES: tuple[Place, ...] = ("bare", "spaced", "context")


@dataclass(frozen=True)
class NumberTokens:
    """Token ids of integers in three places, since the place decides how a number is split.

    Tokenizers differ: GPT-2 knows `521` after a space only in pieces, Llama-2 puts an empty piece
    before a number at the start of a text, SmolLM2 splits every digit.

    Attributes:
        numbers: the integers.
        bare: ids of the number alone, without the BOS token.
        spaced: the same, with one space before the number.
        context: ids of the number between `prefix` and `suffix`; empty where a token covers
            the number together with other characters.
        continues: the tokens of `prefix` stay as they are when the number follows, and the
            next token is the number's first piece: only then can a model predict it there.
        prefix: text before the number in the place "context".
        suffix: text after it.
    """

    numbers: tuple[int, ...]
    bare: tuple[tuple[int, ...], ...]
    spaced: tuple[tuple[int, ...], ...]
    context: tuple[tuple[int, ...], ...]
    continues: tuple[bool, ...]
    prefix: str
    suffix: str
    unk_id: int | None = None

    @classmethod
    def of(
        cls,
        tokenizer: PreTrainedTokenizerBase | None,
        numbers: Iterable[SupportsIndex] = range(1000),
        prefix: str = "1+1=",
        suffix: str = "",
        owner: str = "this model",
    ) -> NumberTokens:
        """Encodes the numbers in each place.

        Raises:
            MechnumError: no tokenizer, one without character offsets, or no numbers.
        """
        encoder = Encoder(tokenizer, owner)
        integers = check_numbers(numbers)
        words = [str(number) for number in integers]
        front = encoder.n_front
        before = encoder([prefix])[0].ids
        context, continues = [], []
        for word, encoded in zip(
            words, encoder([prefix + word + suffix for word in words]), strict=True
        ):
            pieces = encoder.pieces(encoded, len(prefix), len(prefix) + len(word))
            context.append(tuple(encoded.ids[piece] for piece in pieces))
            continues.append(encoded.ids[: len(before)] == before and pieces[:1] == [len(before)])
        return cls(
            numbers=integers,
            bare=tuple(encoded.ids[front:] for encoded in encoder(words)),
            spaced=tuple(encoded.ids[front:] for encoded in encoder([" " + w for w in words])),
            context=tuple(context),
            continues=tuple(continues),
            prefix=prefix,
            suffix=suffix,
            unk_id=encoder.unk_id,
        )

    def single(self, place: Place = "context") -> tuple[int, ...]:
        """The numbers that are one token there (the token for unknown words does not count)."""
        return tuple(
            number
            for number, ids in zip(self.numbers, getattr(self, place), strict=True)
            if len(ids) == 1 and ids[0] != self.unk_id
        )

    def offending(self, place: Place = "context") -> tuple[int, ...]:
        """The numbers that are not one token there."""
        single = set(self.single(place))
        return tuple(number for number in self.numbers if number not in single)

    def ids(self, place: Place = "context") -> dict[int, int]:
        """Number → its token id.

        Raises:
            MechnumError: some numbers are not one token, or two numbers share one.
        """
        if offending := self.offending(place):
            raise MechnumError(
                f"{some(offending)} of {len(self.numbers)} numbers are not one token {place!r}: "
                "choose a range without them"
            )
        found = {
            number: ids[0] for number, ids in zip(self.numbers, getattr(self, place), strict=True)
        }
        check_distinct(found)
        return found

    def table(self) -> xr.Dataset:
        """Everything as a Dataset.

        Variables: `tokens` (number, place), how many tokens; `first_id` (number, place), the id
        of the first one, −1 where there is none; `continues` (number).
        """
        import numpy as np
        import xarray as xr

        columns = [getattr(self, place) for place in PLACES]
        tokens = np.array([[len(ids) for ids in column] for column in columns]).T
        first = np.array([[ids[0] if ids else -1 for ids in column] for column in columns]).T
        return xr.Dataset(
            {
                "tokens": (("number", "place"), tokens),
                "first_id": (("number", "place"), first),
                "continues": ("number", np.array(self.continues)),
            },
            coords={"number": list(self.numbers), "place": list(PLACES)},
            attrs={"prefix": self.prefix, "suffix": self.suffix},
        )


def parse_range(text: str) -> range:
    """`0-99` → the integers 0 to 99, both ends included; also `-5-5` and a single number.

    Raises:
        MechnumError: the text is something else, or the range is empty.
    """
    match = re.fullmatch(r"\s*(-?\d+)(?:\s*-\s*(-?\d+))?\s*", text)
    if match is None:
        raise MechnumError(f"{text!r} is not a range of numbers: write one like 0-99")
    first = int(match[1])
    last = first if match[2] is None else int(match[2])
    if last < first:
        raise MechnumError(f"the range {text} is empty: write the smaller number first")
    return range(first, last + 1)


def check_integer(value: object) -> int:
    """The value as a Python integer.

    Raises:
        MechnumError: it is something else (True and 3.0 are).
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise MechnumError(f"{value!r} is not an integer: give an integer")
    return operator.index(value)


MOST_NUMBERS = 1_000_000
"""Numbers that are read or written at once, at most."""


def check_numbers(numbers: Iterable[object]) -> tuple[int, ...]:
    """The numbers as a tuple of Python integers.

    Raises:
        MechnumError: none, more than a million, one twice, or something that is not an integer.
    """
    found = [check_integer(number) for number in islice(numbers, MOST_NUMBERS + 1)]
    if len(found) > MOST_NUMBERS:
        raise MechnumError(
            f"these are more than {MOST_NUMBERS:,} numbers, too many to be held: choose fewer"
        )
    if not found:
        raise MechnumError("there are no numbers: give at least one, such as range(100)")
    if len(set(found)) < len(found):
        twice = next(number for number in found if found.count(number) > 1)
        raise MechnumError(f"the number {twice} is there twice: give each number once")
    return tuple(found)


def check_distinct(ids: dict[int, int]) -> None:
    """Refuses numbers that share a token id: their answers could not be told apart.

    Raises:
        MechnumError: two numbers have the same id.
    """
    owners: dict[int, int] = {}
    for number, token_id in ids.items():
        other = owners.setdefault(token_id, number)
        if other != number:
            raise MechnumError(
                f"the numbers {other} and {number} share the token id {token_id} "
                f"({len(ids)} numbers have {len(set(ids.values()))} ids): this tokenizer cannot "
                "tell them apart, choose other numbers"
            )


def some(numbers: Iterable[int], most: int = 5) -> str:
    """`521, 527, 531, … (12)`: the first few and how many."""
    listed = list(numbers)
    if len(listed) <= most:
        return ", ".join(map(str, listed))
    return ", ".join(map(str, listed[:most])) + f", … ({len(listed)})"
