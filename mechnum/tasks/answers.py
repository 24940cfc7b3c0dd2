"""The tokens of the numbers that a task's answers are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.tasks.numbers import NumberTokens, some
from mechnum.tasks.prompts import Prompts

if TYPE_CHECKING:
    from mechnum.models.model import Model


def answer_tokens(model: Model, prompts: Sequence[Prompts]) -> Int[Tensor, " number"]:
    """Token ids of the numbers 0 … N − 1, where N − 1 is the largest answer of the prompts.

    Numbers that no prompt asks for are looked up in the tokenizer, as they follow a prompt.

    Raises:
        MechnumError: the prompts have no numbers or negative ones, a number is not one token, two
            numbers share one, or a number is missing and there is no tokenizer.
    """
    found: dict[int, int] = {}
    for group in prompts:
        if "answer" not in group.variables:
            raise MechnumError(
                "the prompts say no answers as numbers: use the prompts of a task, such as addition"
            )
        pairs = zip(group.variables["answer"].tolist(), group.answers.tolist(), strict=True)
        for number, token_id in pairs:
            if found.setdefault(number, token_id) != token_id:
                raise MechnumError(
                    f"the answer {number} has the tokens {found[number]} and {token_id}: use "
                    "prompts after which a number is always the same token"
                )
    if not found:
        raise MechnumError("there are no prompts: give at least one")
    if min(found) < 0:
        raise MechnumError(
            f"the answer {min(found)} is negative, and waves run over the numbers from 0 on: "
            "choose prompts with answers of 0 or more"
        )
    missing = sorted(set(range(max(found))) - set(found))
    if missing and model.tokenizer is None:
        raise MechnumError(
            f"no prompt has the answer {some(missing)}, and {model.name} has no tokenizer that "
            "knows its token: give all prompts of the task"
        )
    if missing:
        looked_up = NumberTokens.of(
            model.tokenizer, missing, prefix=prompts[0].texts[0], owner=model.name
        )
        found |= looked_up.ids("context")
    if len(set(found.values())) < len(found):
        raise MechnumError(
            f"{len(found)} numbers have {len(set(found.values()))} tokens, so that logits of "
            "tokens are not those of numbers: choose smaller numbers, of one token each"
        )
    return torch.tensor([found[number] for number in range(len(found))])
