from __future__ import annotations

import numpy as np

from mechnum.training.streams import Stream, stream


def test_no_two_streams_of_a_run_are_the_same():
    seeds = [np.random.SeedSequence(0)]
    seeds += [stream(0, purpose) for purpose in Stream]
    seeds += [stream(0, Stream.BATCH, step) for step in range(100)]
    seeds += [stream(1, purpose) for purpose in Stream]
    assert len({tuple(seed.generate_state(4)) for seed in seeds}) == len(seeds)
