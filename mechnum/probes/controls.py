"""What can be read without any net: the tokens before a number's state, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float32, Int
from torch import Tensor

from mechnum.errors import MechnumError
from mechnum.inputs import positive_integer
from mechnum.probes.tables import StateTable
from mechnum.tasks.contexts import ContextPrompts
from mechnum.tasks.prompts import fingerprint


def token_table(prompts: Sequence[ContextPrompts], back: int = 4) -> StateTable:
    """Which token stands at each number's place and at the places before it, as indicators.

    A probe that reads these knows all that the text says of the number, but nothing that a net
    computed: what it reads as well as a net's states do is in the spelling. The rows are those of
    `collect_states`.

    Args:
        back: how many places, the number's own being the first.

    Returns:
        A dimension for each token at each place that it is seen at, 0 or 1.

    Raises:
        MechnumError: no texts.
    """
    if not prompts:
        raise MechnumError("there are no texts: give one or more")
    return StateTable(
        token_indicators([(group.tokens, group.places) for group in prompts], back),
        torch.cat([group.values.flatten() for group in prompts]).numpy(),
        torch.cat(
            [
                group.variables["template"].repeat_interleave(group.places.shape[1])
                for group in prompts
            ]
        ).numpy(),
        {"prompts_fingerprint": fingerprint(prompts), "read": f"{back} tokens, no states"},
    )


def token_indicators(
    groups: Sequence[tuple[Int[Tensor, "_ _"], Int[Tensor, "_ _"]]], back: int
) -> Float32[np.ndarray, "row indicator"]:
    """Which token stands at each place and at the `back` − 1 places before it, as 0 and 1.

    Args:
        groups: the tokens [text, position] of some texts, and places [text, place] in each.

    Returns:
        A row for each place of each text, a column for each token at each distance that it is seen
        at.
    """
    reach = torch.arange(positive_integer("back", back))
    seen = []
    for tokens, places in groups:
        at = places[:, :, None] - reach
        rows = torch.arange(len(tokens))[:, None, None]
        ids = torch.where(at >= 0, tokens[rows, at.clamp_min(0)], -1)
        seen.append(ids.flatten(0, 1))
    columns = []
    for column in torch.cat(seen).T.numpy():
        known = np.unique(column[column >= 0])
        columns.append(column[:, None] == known)
    return np.concatenate(columns, axis=1).astype(np.float32)
