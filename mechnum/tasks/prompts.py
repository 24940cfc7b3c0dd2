"""Prompts as tokens, in groups of equal token count."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import torch
from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError

if TYPE_CHECKING:
    from mechnum.models.model import Model


@dataclass(frozen=True, eq=False)
class Prompts:
    """Prompts of one token count.

    Attributes:
        tokens: token ids, with the BOS token where the tokenizer adds one.
        positions: where the operands ("a", "b"), the operator ("op") and the last token ("end")
            stand, for each prompt; "op" is missing in tasks without an operator token.
        answers: token id of the right answer, as it follows this very prompt.
        variables: the integers behind the prompt: "a", "b" and "answer".
        texts: the prompts as text.
        index: row of each prompt in the task's order.
    """

    tokens: Int[Tensor, "prompt pos"]
    positions: Mapping[str, Int[Tensor, " prompt"]]
    answers: Int[Tensor, " prompt"]
    variables: Mapping[str, Int[Tensor, " prompt"]]
    texts: tuple[str, ...]
    index: Int[Tensor, " prompt"]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Prompts({len(self)} of {self.tokens.shape[1]} tokens, {self.texts[:1]})"

    def content(self) -> bytes:
        """Tokens, answers and positions as bytes, for fingerprints."""
        parts = [repr(tuple(self.tokens.shape)).encode(), as_bytes(self.tokens)]
        parts.append(as_bytes(self.answers))
        for name in sorted(self.positions):
            parts += [name.encode(), as_bytes(self.positions[name])]
        return b"".join(parts)

    def select(self, rows: Int[Tensor, " row"]) -> Prompts:
        """The prompts at these rows, in this order."""
        return Prompts(
            tokens=self.tokens[rows],
            positions=_each(self.positions, rows),
            answers=self.answers[rows],
            variables=_each(self.variables, rows),
            texts=tuple(self.texts[row] for row in rows.tolist()),
            index=self.index[rows],
        )


def group_by_length(
    token_ids: Sequence[Sequence[int]],
    positions: Mapping[str, Sequence[int]],
    answers: Sequence[int],
    variables: Mapping[str, Sequence[int]],
    texts: Sequence[str],
) -> tuple[Prompts, ...]:
    """One `Prompts` for each token count, shortest first; never pads."""
    rows_of: dict[int, list[int]] = {}
    for row, ids in enumerate(token_ids):
        rows_of.setdefault(len(ids), []).append(row)

    def column(values: Sequence[int], rows: list[int]) -> Int[Tensor, " prompt"]:
        return torch.tensor([values[row] for row in rows], dtype=torch.long)

    return tuple(
        Prompts(
            tokens=torch.tensor([list(token_ids[row]) for row in rows], dtype=torch.long),
            positions=MappingProxyType(
                {
                    **{name: column(values, rows) for name, values in positions.items()},
                    "end": torch.full((len(rows),), length - 1),
                }
            ),
            answers=column(answers, rows),
            variables=MappingProxyType(
                {name: column(values, rows) for name, values in variables.items()}
            ),
            texts=tuple(texts[row] for row in rows),
            index=torch.tensor(rows, dtype=torch.long),
        )
        for length, rows in sorted(rows_of.items())
    )


def fingerprint(groups: Sequence[Prompts]) -> str:
    """Short hash of all tokens, answers and positions, in order."""
    digest = hashlib.sha256()
    for group in groups:
        digest.update(as_bytes(group.index) + group.content())
    return digest.hexdigest()[:12]


def as_bytes(values: Int[Tensor, "..."]) -> bytes:
    """Integers as bytes, whatever their type."""
    return values.contiguous().to(torch.int64).numpy().tobytes()


def check_fits(model: Model, prompts: Prompts) -> None:
    """Refuses prompts that the model cannot read or answer.

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
    for what, ids, limit in (
        ("prompt", prompts.tokens, spec.d_vocab),
        ("answer", prompts.answers, spec.d_vocab_out),
    ):
        outside = ids[(ids < 0) | (ids >= limit)]
        if len(outside):
            raise MechnumError(
                f"{what} token id {int(outside[0])} is outside the vocabulary of {model.name} "
                f"(0 to {limit - 1}): use the tokenizer and the tokens that belong to this model"
            )


def _each(
    columns: Mapping[str, Int[Tensor, " prompt"]], rows: Int[Tensor, " row"]
) -> Mapping[str, Int[Tensor, " row"]]:
    return MappingProxyType({name: values[rows] for name, values in columns.items()})
