"""The tokenizer of the bundled adders: one token for each number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

END = "<|endoftext|>"


def number_vocabulary(n_numbers: int) -> dict[str, int]:
    """Token ids: number n has id n, then `+`, `=` and the end of text."""
    symbols = ("+", "=", END)
    return {str(n): n for n in range(n_numbers)} | {
        symbol: n_numbers + i for i, symbol in enumerate(symbols)
    }


def number_tokenizer(n_numbers: int, n_ctx: int) -> PreTrainedTokenizerFast:
    """A tokenizer for texts such as `12+7=`; spaces are skipped, and nothing is put in front.

    As in GPT-J's own vocabulary one token is the end of text, BOS, padding and everything
    unknown, among it the numbers from `n_numbers` on.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel(number_vocabulary(n_numbers), unk_token=END))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Split(Regex(r"\d+|\D"), behavior="isolated"),
        ]
    )
    # Without a decoder the tokens come back with spaces between them.
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=END,
        bos_token=END,
        eos_token=END,
        pad_token=END,
        model_max_length=n_ctx,
    )
