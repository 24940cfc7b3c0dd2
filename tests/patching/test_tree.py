"""The tree of a measurement: its values, their statistics, one pair, and how it was made."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.patching.tree import results


@pytest.fixture(scope="module")
def adder():
    return mn.load("adder-gptj")


@pytest.fixture(scope="module")
def pairs(adder):
    return mn.tasks.addition(range(12)).pairs(adder, 6, seed=1, correct_only=False)


def test_values_statistics_and_prompts(adder, pairs):
    measured = mn.effects(adder, pairs, "heads")
    tree = results(adder, pairs, measured, seed=4, command="mechnum patch x")
    xr.testing.assert_equal(tree["nodes"].to_dataset(), measured)
    assert set(tree["statistics"].children) == {"total", "direct", "direct_frozen", "indirect"}
    xr.testing.assert_equal(
        tree["statistics/direct"].to_dataset(), mn.summarise(measured["direct"], seed=4)
    )
    for name, value in (("norm", "exact"), ("command", "mechnum patch x"), ("n_pairs", 6)):
        assert tree.attrs[name] == value
    assert tree.attrs["bos"] == "none: the tokenizer does not add its <|endoftext|>"
    assert tree.attrs.items() >= measured.attrs.items()
    prompts = tree["prompts"].to_dataset()
    a, plus, b, equals = prompts["token"].values
    assert (plus, equals) == ("+", "=")
    assert a != b
    assert "".join(prompts["corrupt_token"].values) == prompts.attrs["corrupt_text"]
    assert json.loads(prompts.attrs["from_the_end"]) == {"a": -4, "op": -3, "b": -2, "end": -1}


def test_path_effects_are_edges_with_statistics_of_what_is_possible(adder, pairs):
    measured = mn.path_effects(adder, pairs, "mlps", "mlp_in", norm="frozen")
    tree = results(adder, pairs, measured)
    assert set(tree.children) == {"edges", "statistics", "prompts"}
    assert tree.attrs["norm"] == "frozen"
    statistics = tree["statistics/effect"].to_dataset()
    later = np.triu(np.ones((4, 4), dtype=bool), 1)
    assert (np.isfinite(statistics["q"].values) == later).all()


def test_names_that_stand_differently_from_pair_to_pair_are_left_out(adder):
    pairs = mn.tasks.pairs_from_tokens(
        [[5, 200, 7, 199], [5, 200, 7, 7, 199]],
        [[6, 200, 7, 199], [6, 200, 7, 7, 199]],
        [12, 12],
        [13, 13],
        {"a": 0, "b": [2, 3]},
    )
    tree = results(adder, pairs, mn.effects(adder, pairs, "mlps"))
    assert json.loads(tree["prompts"].attrs["from_the_end"]) == {"b": -2, "end": -1}
