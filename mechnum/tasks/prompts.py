"""Prompts as tokens, in groups of equal token count."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError

if TYPE_CHECKING:
    from mechnum.models.model import Model

Selected = TypeVar("Selected", bound="TokenSequences")


@dataclass(frozen=True, eq=False)
class TokenSequences:
    """Texts of one token count, about known integers, that need not ask for an answer.

    Attributes:
        tokens: token ids, with the BOS token where the tokenizer adds one.
        positions: where the numbers ("n", or the operands "a" and "b"), the operator ("op") and
            the last token ("end") stand, for each text; what a text does not have is missing.
        variables: the integers behind the text.
        texts: the texts themselves.
        index: row of each text in the order in which they were asked for.
    """

    tokens: Int[Tensor, "prompt pos"]
    positions: Mapping[str, Int[Tensor, " prompt"]]
    variables: Mapping[str, Int[Tensor, " prompt"]]
    texts: tuple[str, ...]
    index: Int[Tensor, " prompt"]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        count = f"{len(self)} of {self.tokens.shape[1]} tokens"
        return f"{type(self).__name__}({count}, {self.texts[:1]})"

    def select(self: Selected, rows: Int[Tensor, " row"]) -> Selected:
        """The texts at these rows, in this order."""
        return replace(self, **self._columns(rows))

    def content(self) -> bytes:
        """All token ids and positions as bytes, for fingerprints."""
        parts = [repr(tuple(self.tokens.shape)).encode(), *map(as_bytes, self._token_ids())]
        for name in sorted(self.positions):
            parts += [name.encode(), as_bytes(self.positions[name])]
        return b"".join(parts)

    def _token_ids(self) -> tuple[Int[Tensor, "prompt *pos"], ...]:
        return (self.tokens,)

    def _columns(self, rows: Int[Tensor, " row"]) -> dict[str, Any]:
        return {
            "tokens": self.tokens[rows],
            "positions": _each(self.positions, rows),
            "variables": _each(self.variables, rows),
            "texts": tuple(self.texts[row] for row in rows.tolist()),
            "index": self.index[rows],
        }


@dataclass(frozen=True, eq=False, repr=False)
class Prompts(TokenSequences):
    """Prompts of one token count, each with its right answer.

    Attributes:
        answers: token id of the right answer, as it follows this very prompt. The variables are
            "a", "b" and "answer".
    """

    answers: Int[Tensor, " prompt"]

    def _columns(self, rows: Int[Tensor, " row"]) -> dict[str, Any]:
        return {**super()._columns(rows), "answers": self.answers[rows]}

    def _token_ids(self) -> tuple[Int[Tensor, "prompt *pos"], ...]:
        return (self.tokens, self.answers)


def group_by_length(
    token_ids: Sequence[Sequence[int]],
    positions: Mapping[str, Sequence[int]],
    answers: Sequence[int],
    variables: Mapping[str, Sequence[int]],
    texts: Sequence[str],
) -> tuple[Prompts, ...]:
    """One `Prompts` for each token count, shortest first; never pads."""
    return tuple(
        Prompts(**vars(group), answers=_column(answers, group.index.tolist()))
        for group in sequences_by_length(token_ids, positions, variables, texts)
    )


def sequences_by_length(
    token_ids: Sequence[Sequence[int]],
    positions: Mapping[str, Sequence[int]],
    variables: Mapping[str, Sequence[int]],
    texts: Sequence[str],
) -> tuple[TokenSequences, ...]:
    """One `TokenSequences` for each token count, shortest first; never pads."""
    rows_of: dict[int, list[int]] = {}
    for row, ids in enumerate(token_ids):
        rows_of.setdefault(len(ids), []).append(row)
    return tuple(
        TokenSequences(
            tokens=torch.tensor([list(token_ids[row]) for row in rows], dtype=torch.long),
            positions=MappingProxyType(
                {
                    **{name: _column(values, rows) for name, values in positions.items()},
                    "end": torch.full((len(rows),), length - 1),
                }
            ),
            variables=MappingProxyType(
                {name: _column(values, rows) for name, values in variables.items()}
            ),
            texts=tuple(texts[row] for row in rows),
            index=torch.tensor(rows, dtype=torch.long),
        )
        for length, rows in sorted(rows_of.items())
    )


def fingerprint(groups: Sequence[TokenSequences]) -> str:
    """Short hash of all tokens, answers and positions, in order."""
    digest = hashlib.sha256()
    for group in groups:
        digest.update(as_bytes(group.index) + group.content())
    return digest.hexdigest()[:12]


def as_bytes(values: Int[Tensor, "..."]) -> bytes:
    """Integers as bytes, whatever their type."""
    return values.contiguous().to(torch.int64).numpy().tobytes()


def check_fits(model: Model, prompts: TokenSequences) -> None:
    """Refuses texts that the model cannot read, and prompts that it cannot answer.

    Raises:
        MechnumError: too many tokens for the model, or ids outside its vocabulary.
    """
    spec = model.spec
    length = prompts.tokens.shape[1]
    if length > spec.n_ctx:
        raise MechnumError(
            f"prompts of {length} tokens are too long for {model.name}, which reads "
            f"{spec.n_ctx}: use fewer shots or a shorter template"
        )
    limits = [("prompt", prompts.tokens, spec.d_vocab)]
    if isinstance(prompts, Prompts):
        limits.append(("answer", prompts.answers, spec.d_vocab_out))
    for what, ids, limit in limits:
        outside = ids[(ids < 0) | (ids >= limit)]
        if len(outside):
            raise MechnumError(
                f"{what} token id {int(outside[0])} is outside the vocabulary of {model.name} "
                f"(0 to {limit - 1}): use the tokenizer and the tokens that belong to this model"
            )


def _column(values: Sequence[int], rows: Sequence[int]) -> Int[Tensor, " prompt"]:
    return torch.tensor([values[row] for row in rows], dtype=torch.long)


def _each(
    columns: Mapping[str, Int[Tensor, " prompt"]], rows: Int[Tensor, " row"]
) -> Mapping[str, Int[Tensor, " row"]]:
    return MappingProxyType({name: values[rows] for name, values in columns.items()})
