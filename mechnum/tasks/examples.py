"""One pair of a task, to be shown: its tokens, and where its operands stand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch
import xarray as xr
from jaxtyping import Int
from torch import Tensor

from mechnum.tasks.pairs import Pairs
from mechnum.tasks.prompts import Prompts, TokenSequences

if TYPE_CHECKING:
    from mechnum.models.model import Model


def example_pair(pairs: Pairs) -> tuple[Prompts, Prompts]:
    """A clean prompt and its corrupt one, each alone.

    The operands of the clean one differ, so that a and b can be told apart, if any do.
    """
    group = pairs.groups[0]
    row = _telling(group.clean)
    return group.clean.select(row), group.corrupt.select(row)


def example_tokens(model: Model, prompts: TokenSequences) -> xr.Dataset:
    """One prompt as reports show it: the first whose operands differ, if any do.

    Returns:
        `tokens` (ids) over position, with the coordinate `token`, the same as text. Attributes:
        `positions`, JSON of name → position; `text`.
    """
    prompts = prompts.select(_telling(prompts))
    ids = prompts.tokens[0].tolist()
    positions = {name: int(places[0]) for name, places in prompts.positions.items()}
    return xr.Dataset(
        {"tokens": ("position", ids)},
        coords={"token": ("position", token_texts(model, ids))},
        attrs={"positions": json.dumps(positions), "text": prompts.texts[0]},
    )


def _telling(prompts: TokenSequences) -> Int[Tensor, "1"]:
    """The row of a prompt in which a and b can be told apart, if there is one."""
    variables = prompts.variables
    if {"a", "b"} <= variables.keys():
        differ = (variables["a"] != variables["b"]).nonzero().flatten()
        if len(differ):
            return differ[:1]
    return torch.tensor([0])


def token_texts(model: Model, ids: list[int]) -> list[str]:
    """Each token as text; its id where the model has no tokenizer."""
    if model.tokenizer is None:
        return [str(token) for token in ids]
    return [model.tokenizer.decode([token]) for token in ids]


def bos_policy(model: Model, example: TokenSequences) -> str:
    """Whether prompts begin with a BOS token, in words."""
    if model.tokenizer is None:
        return "none: the model has no tokenizer"
    bos = model.tokenizer.bos_token_id
    if bos is None:
        return "none: the tokenizer has no such token"
    if int(example.tokens[0, 0]) == bos:
        return f"each prompt begins with {model.tokenizer.bos_token} (token {bos})"
    return f"none: the tokenizer does not add its {model.tokenizer.bos_token}"
