"""Each prefix once, with its probability and its own string."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mechnum.beliefs.prefixes import prefixes
from mechnum.errors import MechnumError
from mechnum.tasks import processes as P


def texts(found) -> list[tuple[int, ...]]:
    return [
        tuple(found.strings[string, : position + 1])
        for string, position in zip(found.string, found.position)
    ]


def test_all_prefixes_of_all_strings():
    process = P.rrxor()
    found = prefixes(process, 5, 100, 0, None)
    assert found.exact
    possible = [
        text
        for length in range(1, 6)
        for text in itertools.product((0, 1), repeat=length)
        if process.log_likelihood([text])[0] > -np.inf
    ]
    assert sorted(texts(found)) == sorted(possible)
    for text, weight, belief, token in zip(texts(found), found.weights, found.beliefs, found.token):
        # Each of the five positions has the same weight.
        assert weight == pytest.approx(np.exp(process.log_likelihood([text])[0]) / 5)
        np.testing.assert_allclose(belief, process.beliefs([text])[0, -1])
        assert token == text[-1]


def test_sampled_prefixes_are_weighted_by_how_often_they_came():
    process = P.mess3()
    found = prefixes(process, 6, 300, 0, (2, 5))
    assert not found.exact
    assert set(found.position) == {2, 5}
    own = texts(found)
    assert len(set(own)) == len(own)
    assert found.weights.sum() == pytest.approx(1)
    short = found.position == 2
    assert found.weights[short].sum() == pytest.approx(0.5)
    likelihood = np.exp(process.log_likelihood([text for text in own if len(text) == 3]))
    assert np.abs(2 * found.weights[short] - likelihood).max() < 4 * np.sqrt(0.25 / 300)


def test_shared_prefixes_are_dealt_to_strings_by_chance():
    first, other = (prefixes(P.mess3(), 4, 100, seed, None) for seed in (0, 1))
    owners = [
        {text: tuple(own.strings[string]) for text, string in zip(texts(own), own.string)}
        for own in (first, other)
    ]
    assert owners[0].keys() == owners[1].keys()
    assert owners[0] != owners[1]


def test_impossible_requests_are_refused():
    for length, n, positions in ((0, 10, None), (4, 0, None), (4, 10, (4,)), (4, 10, ())):
        with pytest.raises(MechnumError):
            prefixes(P.rrxor(), length, n, 0, positions)
