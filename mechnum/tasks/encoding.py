"""Texts to token ids: which characters each token covers, and at most one BOS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mechnum.errors import MechnumError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Encoded:
    """One text as token ids.

    Attributes:
        text: the text as given.
        ids: token ids, with the BOS token in front where the tokenizer adds one.
        spans: first character and one past the last character of each token in `text`;
            (0, 0) for a BOS token that the tokenizer added.
    """

    text: str
    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


class Encoder:
    """A tokenizer that also says which characters each token covers.

    It adds the tokens that the tokenizer puts in front by itself (BOS), unless the text starts
    with them already, and never the ones that it puts behind: a prompt that ends in EOS asks
    for nothing.

    Raises:
        MechnumError: there is no tokenizer, or it does not give character offsets.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase | None, owner: str = "this model"):
        if tokenizer is None:
            raise MechnumError(
                f"{owner} has no tokenizer: add its files (tokenizer.json) to the folder, or use "
                "modular_addition or pairs_from_tokens, which take token ids"
            )
        if not getattr(tokenizer, "is_fast", False):
            raise MechnumError(
                f"the tokenizer of {owner} gives no character offsets, so the numbers cannot be "
                "found among its tokens: load its fast version (the folder needs a tokenizer.json)"
            )
        self.owner = owner
        # Transformers types a token as anything that it may hold.
        self._tokenizer: Any = tokenizer
        self.unk_id: int | None = self._tokenizer.unk_token_id
        self.unk_token: str | None = self._tokenizer.unk_token
        self._leading = self._tokens_in_front()
        self._blank: dict[int, bool] = {}

    def __call__(self, texts: Sequence[str]) -> list[Encoded]:
        """The texts as tokens.

        Raises:
            MechnumError: a text is empty of tokens or starts with two BOS tokens.
        """
        if not texts:
            return []
        batch = self._tokenizer(
            list(texts),
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        bos = self._tokenizer.bos_token
        encoded = []
        for text, ids, spans in zip(
            texts, batch["input_ids"], batch["offset_mapping"], strict=True
        ):
            ids, spans = tuple(ids), tuple(spans)
            if bos and text.startswith(2 * bos):
                raise MechnumError(
                    f"the text {text[:40]!r} starts with two BOS tokens: leave one of them out"
                )
            if ids[: len(self._leading)] != self._leading:
                ids = self._leading + ids
                spans = ((0, 0),) * len(self._leading) + spans
            encoded.append(Encoded(text, ids, spans))
        return encoded

    def pieces(self, encoded: Encoded, start: int, end: int) -> list[int]:
        """Positions of the tokens that spell `text[start:end]`, in order.

        Pieces that hold nothing but a space (the `▁` that Llama-2 puts before a number at the
        start of a text) are left out. An empty list means that a token covers these characters
        together with others, so that they have no tokens of their own.
        """
        found = []
        for position, (first, last) in enumerate(encoded.spans):
            if last <= start or first >= end or self._is_blank(encoded.ids[position]):
                continue
            if encoded.text[first:start].strip() or encoded.text[end:last].strip():
                return []
            found.append(position)
        return found

    @property
    def n_front(self) -> int:
        """How many tokens the tokenizer puts before a text by itself."""
        return len(self._leading)

    def text_of(self, token_id: int) -> str:
        """The text that a token stands for."""
        return str(self._tokenizer.decode([token_id]))

    def _is_blank(self, token_id: int) -> bool:
        if token_id not in self._blank:
            # `▁` is how SentencePiece writes a space, and what an incomplete decoder leaves.
            self._blank[token_id] = not self.text_of(token_id).strip(" \t\n▁")
        return self._blank[token_id]

    def _tokens_in_front(self) -> tuple[int, ...]:
        """What the tokenizer adds before any text."""
        probe = "0"
        plain = list(self._tokenizer(probe, add_special_tokens=False)["input_ids"])
        full = list(self._tokenizer(probe)["input_ids"])
        for start in range(len(full) - len(plain) + 1):
            if full[start : start + len(plain)] == plain:
                return tuple(full[:start])
        raise MechnumError(
            f"the tokenizer of {self.owner} changes a text's tokens when it adds its special ones: "
            "use pairs_from_tokens with token ids of your own"
        )
