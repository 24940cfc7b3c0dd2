"""Finds operands and answers among the tokens of a prompt, and refuses the ones it cannot find."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Literal

from mechnum.errors import MechnumError
from mechnum.tasks.encoding import Encoded, Encoder
from mechnum.tasks.numbers import check_distinct, some
from mechnum.tasks.templates import Filled, Span


class NumberReader:
    """Reads prompt after prompt, and remembers which numbers are not one token.

    Args:
        digits: "single": every number has to be one token; "last": see `addition`.
    """

    def __init__(self, encoder: Encoder, digits: Literal["single", "last"]):
        self._encoder = encoder
        self._digits = digits
        self._offending: set[int] = set()
        # The same number may have another id at each place (with a space before it, or without).
        self._ids: defaultdict[str, dict[int, int]] = defaultdict(dict)

    def operands(
        self, prompt: Filled, encoded: Encoded, numbers: Mapping[str, int]
    ) -> dict[str, int]:
        """Positions of the operands and the operator, by name: of each the last piece.

        Raises:
            MechnumError: one of them shares a token with other text, or the tokenizer does not
                know the text around them.
        """
        if self._encoder.unk_id in encoded.ids:
            self._check_known(encoded, prompt)
        return {
            name: self._number(name, numbers[name], encoded, span)
            if name in numbers
            else self._pieces(encoded, span)[-1]
            for name, span in prompt.spans.items()
        }

    def answer(self, prompt: Encoded, followed: Encoded, number: int) -> int:
        """Id of the token that has to follow the prompt; in "last" mode the answer's first piece.

        Args:
            followed: the prompt with the answer behind it.

        Raises:
            MechnumError: the prompt's tokens change when the answer follows, or an empty piece
                comes before the answer, so that the model would never be asked for the number.
        """
        n = len(prompt.ids)
        if followed.ids[:n] != prompt.ids:
            raise MechnumError(
                f"the last token of {prompt.text!r} changes when {number} follows, so the answer "
                f"has no token of its own for {self._encoder.owner}: end the template in a way "
                "that keeps it apart, not with a space"
            )
        pieces = self._pieces(followed, (len(prompt.text), len(followed.text)))
        if pieces[0] != n:
            raise MechnumError(
                f"{self._encoder.owner} puts an empty token between {prompt.text!r} and {number}: "
                "choose a template after which the number comes at once, such as '{a}+{b}='"
            )
        self._remember("answer", number, [followed.ids[piece] for piece in pieces])
        return followed.ids[n]

    def check(self) -> None:
        """Refuses what was read, after the last prompt.

        Raises:
            MechnumError: numbers that are not one token in "single" mode, numbers that the
                tokenizer does not know, or numbers that share a token.
        """
        if self._offending:
            self._refuse(sorted(self._offending))
        if self._digits == "single":
            for ids in self._ids.values():
                check_distinct(ids)

    def _refuse(self, offending: list[int]) -> None:
        read = {number for ids in self._ids.values() for number in ids}
        if self._digits == "single":
            raise MechnumError(
                f"{len(offending)} of the {len(read)} operands and answers are not one token "
                f"for {self._encoder.owner} ({some(offending)}): choose numbers (and max_sum) so "
                "that all are, or use digits='last'"
            )
        raise MechnumError(
            f"the tokenizer of {self._encoder.owner} has no token for {some(offending)}: choose "
            "numbers that it knows"
        )

    def _number(self, place: str, number: int, encoded: Encoded, span: Span) -> int:
        pieces = self._pieces(encoded, span)
        self._remember(place, number, [encoded.ids[piece] for piece in pieces])
        return pieces[-1]

    def _pieces(self, encoded: Encoded, span: Span) -> list[int]:
        pieces = self._encoder.pieces(encoded, *span)
        if not pieces:
            raise MechnumError(
                f"{encoded.text[slice(*span)]!r} shares a token with the text around it in "
                f"{encoded.text!r} for {self._encoder.owner}: choose a template that keeps "
                "numbers apart, or use pairs_from_tokens"
            )
        return pieces

    def _check_known(self, encoded: Encoded, prompt: Filled) -> None:
        """Refuses unknown words; unknown numbers are listed together at the end."""
        for token_id, (start, end) in zip(encoded.ids, encoded.spans, strict=True):
            if token_id != self._encoder.unk_id:
                continue
            word = encoded.text[start:end]
            in_number = any(first <= start and end <= last for first, last in self._numbers(prompt))
            # GPT-2 calls its end-of-text token unknown too, and a prompt may start with it.
            if not in_number and word not in ("", self._encoder.unk_token):
                raise MechnumError(
                    f"the tokenizer of {self._encoder.owner} has no token for {word!r} in "
                    f"{encoded.text!r}: choose a template that it knows"
                )

    @staticmethod
    def _numbers(prompt: Filled) -> list[Span]:
        return [span for name, span in prompt.spans.items() if name != "op"]

    def _remember(self, place: str, number: int, ids: list[int]) -> None:
        known = self._ids[place].setdefault(number, ids[0])
        split = self._digits == "single" and len(ids) > 1
        if split or self._encoder.unk_id in ids:
            self._offending.add(number)
        elif known != ids[0]:
            raise MechnumError(
                f"the number {number} does not start with the same token in every prompt for "
                f"{self._encoder.owner} ({known} and {ids[0]}): use another template"
            )
