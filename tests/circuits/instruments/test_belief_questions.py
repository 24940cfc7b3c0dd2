"""Where beliefs are read by default, against strings that are counted one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mechnum.circuits.instruments.belief_questions import question
from mechnum.errors import MechnumError
from mechnum.tasks import processes as P


@pytest.mark.parametrize("process", [P.rrxor(), P.mess3(), P.z1r(), P.golden_mean(), P.iid()])
def test_positions_with_few_prefixes_are_left_out(process):
    counts = []
    for length in range(1, 9):
        texts = np.array(list(itertools.product(range(process.n_tokens), repeat=length)))
        counts.append(int(np.isfinite(process.log_likelihood(texts)).sum()))
    asked = question(process, 8)
    first = next(place for place, count in enumerate(counts) if count >= 10)
    assert asked.positions == tuple(range(first, 8))
    assert asked.names == list(process.states)
    assert asked.readout is None


def test_all_positions_where_none_has_many():
    assert question(P.rrxor(), 3).positions is None
    assert question(P.mess3(), 10, range(10)).positions == tuple(range(10))


def test_column_addition_is_asked_for_what_no_token_tells():
    """After a sum's digit neither the next token nor more than a part of the carry is told."""
    process = P.carry(10, 0.25)
    asked = question(process, 8)
    assert (asked.positions, asked.also) == ((1, 3, 5), {"operands": (0, 2, 4, 6)})
    strings = process.sample(4000, 8, 0)
    beliefs = process.beliefs(strings)[:, 1:]
    assert asked.readout is not None
    for place in asked.positions or ():
        assert (strings[:, place] >= 100).all()
        following = process.next_token(beliefs[:, place])
        assert np.ptp(following, axis=0).max() < 1e-12
    carries = beliefs @ asked.readout
    np.testing.assert_allclose(carries.sum(axis=2), 1)
    # Columns of operands tell it but for those of sum 9 and those that are hidden.
    told = np.isin(carries[:, 2, 1].round(12), (0, 1))
    assert told.mean() > 0.65
    assert question(process, 2).positions is None
    # Beside another process its states are others, and so is the question.
    assert question(P.product(P.carry(2), P.iid()), 4).readout is None


def test_what_is_asked_for_is_asked():
    readout = np.eye(5)[:, :2]
    asked = question(P.rrxor(), 10, (2, 7), readout)
    assert asked.positions == (2, 7)
    np.testing.assert_array_equal(asked.readout, readout)
    assert asked.names == ["0", "1"]
    with pytest.raises(MechnumError, match="does not fit 5 hidden states"):
        question(P.rrxor(), 10, readout=np.eye(3))
