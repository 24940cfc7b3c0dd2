"""The random streams of a measurement: all from its one seed, and no two the same."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from mechnum.inputs import seed_sequence


class Stream(IntEnum):
    """What a stream is drawn for."""

    FOLDS = 0
    RESAMPLES = 1
    SHUFFLES = 2
    PAIRS = 3
    STRINGS = 4
    ORDER = 5
    HISTORIES = 6
    SUBSPACES = 7


def stream(seed: int, purpose: Stream) -> np.random.SeedSequence:
    """The seed of the stream for `purpose`.

    Raises:
        InvalidInput: on a seed that is not a whole number from 0.
    """
    return np.random.SeedSequence(seed_sequence(seed).entropy, spawn_key=(int(purpose),))
