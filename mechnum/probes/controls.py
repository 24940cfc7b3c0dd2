"""What can be read without any net: the tokens before a number's state, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

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
    reach = torch.arange(positive_integer("back", back))
    seen = []
    for group in prompts:
        at = group.places[:, :, None] - reach
        rows = torch.arange(len(group))[:, None, None]
        ids = torch.where(at >= 0, group.tokens[rows, at.clamp_min(0)], -1)
        seen.append(ids.flatten(0, 1))
    columns = []
    for column in torch.cat(seen).T.numpy():
        known = np.unique(column[column >= 0])
        columns.append(column[:, None] == known)
    return StateTable(
        np.concatenate(columns, axis=1).astype(np.float32),
        torch.cat([group.values.flatten() for group in prompts]).numpy(),
        torch.cat(
            [
                group.variables["template"].repeat_interleave(group.places.shape[1])
                for group in prompts
            ]
        ).numpy(),
        {"prompts_fingerprint": fingerprint(prompts), "read": f"{back} tokens, no states"},
    )
