"""Tokens before a number as indicators: worked out text by text."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.probes import CircularDigitProbe, token_table
from mechnum.probes.tables import hold_out

from .texts import texts


def test_each_row_says_which_tokens_stand_where():
    table = token_table(texts(), back=3)
    seen = []
    for group in texts():
        for tokens, places in zip(group.tokens.tolist(), group.places.tolist(), strict=True):
            seen += [tokens[place : place - 3 : -1] for place in places]
    seen = np.array(seen)
    assert len(table) == len(seen)
    assert table.states.sum(axis=1).tolist() == [3] * len(seen)
    assert table.states.shape[1] == sum(len(np.unique(column)) for column in seen.T)
    same = (seen[:, None] == seen[None]).sum(axis=2)
    np.testing.assert_array_equal(table.states @ table.states.T, same)


def test_digits_are_read_off_the_spelling():
    table = token_table(texts(60, 6), back=3)
    held = hold_out({0: table}, 0.2, 0.0)
    train, test = held.train(table), held.test(table)
    probe = CircularDigitProbe(numbers=range(200)).fit(train.states, train.values)
    assert probe.score(test.states, test.values) == 1
    with pytest.raises(MechnumError, match="no texts"):
        token_table(())
