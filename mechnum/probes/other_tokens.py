"""Rows of tokens that are no numbers: what numbers are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float64

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer, seed_sequence
from mechnum.models import Model, TokenTable
from mechnum.models.token_table import token_embeddings


def shared_words(
    models: Sequence[Model | TokenTable], n: int = 3000, seed: int = 0
) -> list[list[int]]:
    """Token ids of random words that all the models have, in the same order for each.

    Tokens are the same where they stand for the same text. Those with a digit, without a letter,
    and special ones are left out. Štefánik et al. 2026 compare with common tokens, whose
    similarity across models of a family can be as large as that of numbers.

    Args:
        n: tokens, at most.

    Raises:
        MechnumError: no models, one without tokenizer, or no token that all have.
    """
    if not models:
        raise MechnumError("there are no models: give one or more")
    known = [_by_text(model) for model in models]
    shared = sorted(set.intersection(*(set(ids) for ids in known)))
    if not shared:
        raise MechnumError("no word is a token of all these models: compare without tokens")
    generator = np.random.default_rng(seed_sequence(seed))
    chosen = generator.permutation(len(shared))[: positive_integer("n", n)].tolist()
    return [[ids[shared[place]] for place in chosen] for ids in known]


def token_rows(
    models: Sequence[Model | TokenTable], n: int = 3000, seed: int = 0
) -> list[Float64[np.ndarray, "token d"]]:
    """Embeddings of `shared_words`.

    Raises:
        MechnumError: as `shared_words`.
    """
    return [
        token_embeddings(model)[torch.tensor(ids)].double().cpu().numpy()
        for model, ids in zip(models, shared_words(models, n, seed), strict=True)
    ]


def _by_text(model: Model | TokenTable) -> dict[str, int]:
    """The text of each token that stands for a word → its id."""
    if model.tokenizer is None:
        raise MechnumError(
            f"{model.name} has no tokenizer, so its tokens are no words: leave it out"
        )
    special = set(model.tokenizer.all_special_ids)
    ids = [
        token
        for token in range(min(len(model.tokenizer), len(token_embeddings(model))))
        if token not in special
    ]
    texts = model.tokenizer.batch_decode([[token] for token in ids])
    return {
        text: token
        for text, token in zip(texts, ids, strict=True)
        if any(map(str.isalpha, text)) and not any(map(str.isdigit, text)) and "\ufffd" not in text
    }
