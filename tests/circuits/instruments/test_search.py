"""A circuit is found on one half of the pairs and tested on the other, and says both."""

from __future__ import annotations

import numpy as np
import pytest

import mechnum as mn
from mechnum.circuits.instruments.search import find_circuit
from mechnum.errors import MechnumError
from mechnum.patching.attribution.attribution import attribute
from mechnum.patching.edges import Edge


@pytest.fixture(scope="module")
def adder():
    return mn.load("adder-gptj")


@pytest.fixture(scope="module")
def pairs(adder):
    return mn.tasks.addition(range(20)).pairs(adder, 12, seed=2, correct_only=False)


@pytest.fixture(scope="module")
def found(adder, pairs):
    return find_circuit(adder, pairs, 30, seed=3, command="mechnum circuit x")


def test_edges_are_the_largest_on_the_first_half(adder, pairs, found):
    circuit, _ = found
    first, _ = pairs.split(seed=3)
    scores = attribute(adder, first, "eap-ig")["estimate"].mean("pair")
    assert circuit.edges == mn.Circuit.from_scores(scores, n=30).edges


def test_effects_are_exact_and_of_the_second_half(adder, pairs, found):
    circuit, results = found
    _, second = pairs.split(seed=3)
    expected = mn.path_effects(adder, second, "components", "components")["effect"]
    effects = results["effects/effect"]
    assert effects.dims == ("pair", "edge")
    for name in effects["edge"].values:
        edge = Edge.parse(str(name))
        own = expected.sel(sender=str(edge.sender), receiver=str(edge.receiver))
        np.testing.assert_allclose(effects.sel(edge=name), own, atol=1e-4)
        low, high = circuit.intervals[edge]
        assert low <= circuit.scores[edge] <= high
        assert circuit.scores[edge] == pytest.approx(float(own.mean()), abs=1e-4)


def test_tests_are_those_of_the_single_instruments(adder, pairs, found):
    circuit, results = found
    _, second = pairs.split(seed=3)
    expected = mn.faithfulness(adder, second, circuit, seed=3)
    for name in ("faithfulness", "low", "high"):
        assert results[f"faithfulness/{name}"].item() == expected[name].item()
    assert expected["faithfulness"].item() > 0.2
    assert float(results["minimality/minimality"]) == float(
        mn.minimality(adder, second, circuit, seed=3)["minimality"]
    )
    assert {"completeness", "curve", "circuit", "prompts"} <= set(results.children)
    attrs = results.attrs
    assert (attrs["n_pairs_found_on"], attrs["n_pairs"]) == (6, 6)
    assert (attrs["n_edges"], attrs["n_edges_of_the_model"]) == (30, 463)
    assert (attrs["found_by"], attrs["command"]) == ("eap-ig", "mechnum circuit x")


def test_exact_scores(adder, pairs):
    circuit, _ = find_circuit(adder, pairs, 3, "exact", metric="logprob", direction="noise")
    first, _ = pairs.split(seed=0)
    scores = mn.path_effects(
        adder, first, "components", "components", metric="logprob", direction="noise"
    )["effect"]
    assert circuit.edges == mn.Circuit.from_scores(scores, n=3).edges


@pytest.mark.parametrize("n_edges", [0, 464])
def test_sizes_that_no_circuit_has(adder, pairs, n_edges):
    with pytest.raises(MechnumError, match=f"a circuit of {n_edges} edges is none: give 1 to 463"):
        find_circuit(adder, pairs, n_edges)


def test_one_pair_cannot_be_split(adder, pairs):
    with pytest.raises(MechnumError, match="cannot be split"):
        find_circuit(adder, pairs.select([0]), 3)
