"""The random streams of a run: all from its one seed, and no two the same."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a stream is drawn for. The split has the seed's own stream, without a key."""

    EMBED = 0
    UNEMBED = 1
    BATCH = 2
    HELD_OUT = 3


def stream(seed: int, purpose: Stream, *key: int) -> np.random.SeedSequence:
    """The seed of the stream for `purpose`, with `key` (such as a step) told apart within it.

    A spawn key and not a longer entropy, since numpy pads entropies with zeros: the entropies
    0 and [0, 0] are the same stream.
    """
    return np.random.SeedSequence(seed, spawn_key=(int(purpose), *key))
