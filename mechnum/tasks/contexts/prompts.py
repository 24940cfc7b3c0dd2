"""Texts as tokens, with the place, the value and the origin of every number in them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.tasks.contexts.texts import CONTEXTS, Context, around_numbers, own_context
from mechnum.tasks.encoding import Encoded, Encoder
from mechnum.tasks.numbers import check_integer, check_numbers, some
from mechnum.tasks.prompts import TokenSequences, check_fits, sequences_by_length

if TYPE_CHECKING:
    from mechnum.models.model import Model

LONGEST = 128
"""Tokens of a text that are read, where nothing else is said."""


@dataclass(frozen=True, eq=False, repr=False)
class ContextPrompts(TokenSequences):
    """Texts of one token count, each with the same count of values to be read.

    Positions and variables "n1", "n2", … are where the values stand and what they are; variable
    "template" counts the templates of all contexts.

    Attributes:
        contexts: the context that each text is of.
    """

    contexts: tuple[str, ...]

    @property
    def places(self) -> Int[Tensor, "prompt value"]:
        """The position of each value."""
        return self._by_value(self.positions)

    @property
    def values(self) -> Int[Tensor, "prompt value"]:
        """The values."""
        return self._by_value(self.variables)

    def _by_value(self, columns: Any) -> Int[Tensor, "prompt value"]:
        count = len(self.variables) - 1  # The other one is "template".
        return torch.stack([columns[f"n{place + 1}"] for place in range(count)], dim=1)

    def _columns(self, rows: Int[Tensor, " row"]) -> dict[str, Any]:
        contexts = tuple(self.contexts[row] for row in rows.tolist())
        return {**super()._columns(rows), "contexts": contexts}


@dataclass(frozen=True)
class Draft:
    """A text before it is tokens: parts, and between them the words that stand for values."""

    context: str
    template: int
    parts: tuple[str, ...]
    words: tuple[str, ...]
    values: tuple[int, ...]

    def written(self) -> tuple[str, list[tuple[int, int]]]:
        """The text, and the first character and one past the last of each word."""
        text, spans = self.parts[0], []
        for word, after in zip(self.words, self.parts[1:], strict=True):
            spans.append((len(text), len(text) + len(word)))
            text += word + after
        return text, spans


def context_prompts(
    model: Model,
    contexts: Sequence[str | Context] = CONTEXTS,
    numbers: Iterable[SupportsIndex] = range(1000),
    per_number: int = 4,
    seed: int = 0,
    piece: int = -1,
    longest: int = LONGEST,
) -> tuple[ContextPrompts, ...]:
    """Texts with drawn numbers in the place of their own.

    Every number stands `per_number` times in the texts, and a few once more, which fill the last
    text; those behind the end of a text that is cut are not read. The texts are used in turn, in a
    new order each time round. Source: Štefánik et al. 2026
    (arXiv 2510.26285), who replace every digit string of natural texts.

    Args:
        contexts: names of those that come with the package, or texts of `read_texts` and
            `hub_texts`.
        numbers: what is drawn, from 0 on.
        seed: of which number stands where.
        piece: which token of a number is its position: −1 the last, 0 the first; numbers that have
            no such token are not read.
        longest: texts are cut behind that many tokens.

    Returns:
        Groups of equal token count and of equally many numbers, shortest first.

    Raises:
        MechnumError: no numbers or contexts, one of them twice, negative or huge numbers, a model
            without tokenizer, one whose tokenizer does not know a number or most of the words, and
            no text with a number that can be read.

    Warns:
        UserWarning: some numbers share a token with the text around them, and are not read.
    """
    integers = check_numbers(numbers)
    if wrong := [number for number in (min(integers), max(integers)) if not 0 <= number < 2**53]:
        raise MechnumError(f"{wrong[0]} is negative or too large: give numbers from 0 to 2**53 - 1")
    chosen = [own_context(one) if isinstance(one, str) else one for one in contexts]
    names = [one.name for one in chosen]
    if not names or len(set(names)) < len(names):
        raise MechnumError(f"contexts {tuple(names)}: give one or more, each with its own name")
    texts = [(one.name, around_numbers(text)) for one in chosen for text in one.texts]
    drafts = list(_drawn(texts, integers, positive_integer("per_number", per_number), seed))
    return prompts_of(model, drafts, piece, longest)


def prompts_of(
    model: Model, drafts: Sequence[Draft], piece: int = -1, longest: int = LONGEST
) -> tuple[ContextPrompts, ...]:
    """The drafts as tokens, in groups.

    Raises:
        MechnumError: as `context_prompts`.
    """
    if model.tokenizer is None:
        raise MechnumError(f"{model.name} has no tokenizer, so it reads no text: use another model")
    piece = check_integer(piece)
    longest = min(positive_integer("longest", longest), model.spec.n_ctx)
    encoder = Encoder(model.tokenizer, model.name)
    written = [draft.written() for draft in drafts]
    rows = []
    covered: list[int] = []
    looked_for = 0
    for draft, (_, spans), encoded in zip(
        drafts, written, encoder([text for text, _ in written]), strict=True
    ):
        # Numbers behind what is read of a long text are not even looked for.
        end = max(last for _, last in encoded.spans[:longest])
        near = [span for span in spans if span[0] < end]
        pieces = [encoder.pieces(encoded, *span) for span in near]
        looked_for += len(near)
        covered += [v for v, own in zip(draft.values, pieces, strict=False) if not own]
        row = _row(draft, encoded, pieces, piece, longest, encoder.unk_id)
        if row.values:
            rows.append(row)
    if covered:
        warnings.warn(
            f"{len(covered)} of {looked_for} numbers share a token "
            f"with the text around them, so they are not read: {some(covered)}",
            stacklevel=3,
        )
    if not rows:
        raise MechnumError(
            f"{model.name} has no token to read any of the numbers at (piece {piece}, within "
            f"{longest} tokens): use another piece, longer texts or other numbers"
        )
    _check_words(model, rows, encoder.unk_id)
    groups = [group for count in {len(row.values) for row in rows} for group in _of(count, rows)]
    for group in groups:
        check_fits(model, group)
    return tuple(sorted(groups, key=lambda group: (group.tokens.shape[1], len(group.positions))))


def _check_words(model: Model, rows: Sequence[_Row], unk_id: int | None) -> None:
    """Refuse texts that are unknown words to the model, as to one that knows numbers alone."""
    tokens = sum(len(row.ids) for row in rows)
    unknown = sum(row.ids.count(unk_id) for row in rows)
    if 2 * unknown > tokens:
        raise MechnumError(
            f"{unknown:,} of {tokens:,} tokens of the texts are unknown to {model.name}: use a "
            "model that reads text, or a task of this one"
        )


@dataclass(frozen=True)
class _Row:
    draft: Draft
    text: str
    ids: tuple[int, ...]
    values: tuple[int, ...]
    places: tuple[int, ...]


def _row(
    draft: Draft,
    encoded: Encoded,
    pieces: list[list[int]],
    piece: int,
    longest: int,
    unk_id: int | None,
) -> _Row:
    values, places = [], []
    for word, value, own in zip(draft.words, draft.values, pieces, strict=False):
        if not -len(own) <= piece < len(own) or own[piece] >= longest:
            continue
        if encoded.ids[own[piece]] == unk_id:
            raise MechnumError(
                f"{word!r} has no token of its own in this model's tokenizer: choose a model that "
                "reads text, or numbers that this one knows"
            )
        values.append(value)
        places.append(own[piece])
    return _Row(draft, encoded.text, encoded.ids[:longest], tuple(values), tuple(places))


def _of(count: int, rows: list[_Row]) -> Iterator[ContextPrompts]:
    """The groups of the texts that have this many values."""
    order = [index for index, row in enumerate(rows) if len(row.values) == count]
    own = [rows[index] for index in order]
    names = [f"n{place + 1}" for place in range(count)]
    groups = sequences_by_length(
        token_ids=[row.ids for row in own],
        positions=dict(zip(names, zip(*(row.places for row in own), strict=True), strict=True)),
        variables={
            **dict(zip(names, zip(*(row.values for row in own), strict=True), strict=True)),
            "template": [row.draft.template for row in own],
        },
        texts=[row.text for row in own],
    )
    for group in groups:
        contexts = tuple(own[row].draft.context for row in group.index.tolist())
        index = torch.tensor(order)[group.index]
        yield ContextPrompts(**vars(replace(group, index=index)), contexts=contexts)


def _drawn(
    texts: Sequence[tuple[str, tuple[str, ...]]], numbers: Sequence[int], times: int, seed: int
) -> Iterator[Draft]:
    """Texts with numbers from a shuffled deck, until it is used up."""
    generator = np.random.default_rng(seed_sequence(seed))
    deck = generator.permutation(np.repeat(np.array(numbers, dtype=np.int64), times)).tolist()
    while True:
        for template in generator.permutation(len(texts)).tolist():
            if not deck:
                return
            context, parts = texts[template]
            holes = len(parts) - 1
            drawn, deck = deck[:holes], deck[holes:]
            drawn += generator.choice(numbers, size=holes - len(drawn)).tolist()
            yield Draft(context, template, parts, tuple(map(str, drawn)), tuple(drawn))
