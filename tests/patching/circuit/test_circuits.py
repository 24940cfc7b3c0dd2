"""Circuits of a net whose every edge is known: found, faithful, complete and minimal."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid

import mechnum as mn
from mechnum.patching.circuit.circuit import Circuit, owner
from mechnum.patching.circuit.curves import faithfulness_curve
from mechnum.patching.circuit.faithfulness import faithfulness
from mechnum.patching.circuit.graph import Graph
from mechnum.patching.circuit.quality import completeness, minimality
from mechnum.patching.edges import component_receivers, component_senders
from mechnum.patching.node_names import parse_node
from mechnum.patching.nodes import Node
from mechnum.patching.path.paths import path_effects
from mechnum.tasks import pairs_from_tokens
from tests.patching.constructed import constructed
from tests.patching.rerun import Rerun
from tests.patching.test_effects import given_pairs
from tests.patching.test_every_node import ARCHITECTURES, wrapped


@pytest.fixture(scope="module")
def net():
    return constructed(7, n_pairs=12)


def true_edges(net):
    spec = net.model.spec
    return net.true_edges(component_senders(spec), component_receivers(spec))


def test_path_patching_finds_all_edges_and_no_other(net):
    """Area under ROC = 1: the weakest true edge is above the strongest other."""
    effect = path_effects(net.model, net.pairs, "components", "components")["effect"]
    size = np.abs(effect).max("pair")
    truth = {str(edge) for edge in true_edges(net)}
    worth = {
        f"{sender} -> {receiver}": float(size.sel({"sender": sender, "receiver": receiver}))
        for sender in size["sender"].values
        for receiver in size["receiver"].values
    }
    inside = [value for name, value in worth.items() if name in truth]
    outside = [value for name, value in worth.items() if name not in truth and value == value]
    assert len(inside) == len(truth)
    assert min(inside) > 0.5
    assert max(outside) < 1e-9


def test_the_circuit_found_is_faithful_complete_and_minimal(net):
    effect = path_effects(net.model, net.pairs, "components", "components")["effect"]
    circuit = Circuit.from_scores(np.abs(effect), threshold=1e-6)
    assert circuit.edges == frozenset(true_edges(net))
    found = faithfulness(net.model, net.pairs, circuit)
    assert float(found["faithfulness"][0]) == pytest.approx(1, abs=1e-9)
    assert found["status"].values[0] == "measured"
    quality = minimality(net.model, net.pairs, circuit)
    assert float(quality["minimality"]) == 1
    whole = completeness(net.model, net.pairs, circuit)
    assert float(whole["completeness"]) == pytest.approx(1, abs=1e-9)
    more = Circuit(circuit.edges | {next(iter(circuit.complement(net.model.spec).edges))})
    assert float(minimality(net.model, net.pairs, more)["minimality"]) < 1


def test_a_circuit_of_single_neurons_is_faithful_too(net):
    circuit = Circuit(frozenset(net.edges))
    found = faithfulness(net.model, net.pairs, circuit)
    assert float(found["faithfulness"][0]) == pytest.approx(1, abs=1e-9)
    for edge in sorted(circuit.edges)[:5]:
        less = faithfulness(net.model, net.pairs, circuit.without([edge]))
        assert float(less["faithfulness"][0]) < 0.999


def test_curves_and_random_circuits(net):
    effect = path_effects(net.model, net.pairs, "components", "components")["effect"]
    n_edges = Graph(net.model.spec).n_edges
    fractions = (0.001, len(true_edges(net)) / n_edges, 0.5, 1.0)
    curve = faithfulness_curve(net.model, net.pairs, np.abs(effect), fractions)
    share = curve["faithfulness"].values
    assert share[1:] == pytest.approx(np.ones(3), abs=1e-9)
    assert float(curve["CPR"]) == pytest.approx(trapezoid(share, fractions), abs=1e-12)
    assert float(curve["CMD"]) == pytest.approx(trapezoid(np.abs(1 - share), fractions))
    assert (curve["random_CMD"] > curve["CMD"]).all()
    assert curve["n_edges"].values.tolist()[-1] == n_edges


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("neurons", [(), ("neuron 0.3", "neuron 2.5", "neuron 2.9")])
def test_runs_of_circuits_are_those_of_the_reference(architecture, neurons):
    """Random circuits on real architectures, whole MLPs and neurons apart."""
    model, pairs = wrapped(architecture), given_pairs()
    graph = Graph(model.spec, tuple(parse_node(name) for name in neurons))
    # In the reference the source run keeps the edges, so that it is the clean one here.
    slow = Rerun(model, pairs)
    edges = graph.edges()
    named = {}
    for seed, n in ((0, 20), (1, len(edges) // 2), (2, len(edges) - 10)):
        chosen = np.random.default_rng(seed).permutation(len(edges))[:n]
        named[str(seed)] = Circuit(frozenset(edges[row] for row in chosen) | _naming(neurons))
    named["full"] = Circuit(frozenset(edges))
    named["empty"] = Circuit(_naming(neurons))
    found = faithfulness(model, pairs, named)
    for name, circuit in named.items():
        if neurons:
            continue  # what is left of an MLP is no node of the reference
        expected = slow.kept(circuit.edges, graph.receivers)
        np.testing.assert_allclose(found["metric"].sel({"circuit": name}), expected, atol=1e-11)
    np.testing.assert_allclose(found["metric"].sel({"circuit": "full"}), found["model_metric"])
    assert float(found["faithfulness"].sel({"circuit": "full"})) == pytest.approx(1)


def _naming(neurons):
    """Edges that make the neurons nodes of the graph."""
    return frozenset(mn.patching.edges.Edge.parse(f"{name} -> logits") for name in neurons)


def test_all_neurons_apart_with_their_mlps_edges_are_the_whole_mlp():
    """Splitting an MLP changes nothing where each neuron has the edges that the MLP had."""
    model, pairs = wrapped("llama grouped"), given_pairs()
    edges = Graph(model.spec).edges()
    chosen = [edges[row] for row in np.random.default_rng(0).permutation(len(edges))[:60]]
    neurons = [Node("neuron", 1, n) for n in range(model.spec.d_mlp)]
    split = set(chosen)
    for edge in chosen:
        for neuron in neurons:
            reading = Node("neuron_in", 1, neuron.index)
            if edge.sender == Node("mlp", 1):
                split.add(mn.patching.edges.Edge(neuron, edge.receiver))
            if edge.receiver == Node("mlp_in", 1):
                split.add(mn.patching.edges.Edge(edge.sender, reading))
    whole = faithfulness(model, pairs, Circuit(frozenset(chosen)))["metric"]
    apart = faithfulness(model, pairs, Circuit(frozenset(split)))["metric"]
    np.testing.assert_allclose(apart, whole, atol=1e-11)


@pytest.mark.parametrize("values", ["zero", "mean", "resample"])
def test_cut_edges_may_carry_other_values(values):
    model, pairs = wrapped("gptj"), given_pairs()
    edges = Graph(model.spec).edges()
    named = {"full": Circuit(frozenset(edges)), "half": Circuit(frozenset(edges[::2]))}
    found = faithfulness(model, pairs, named, values=values)
    other = faithfulness(model, pairs, named)
    np.testing.assert_allclose(found["metric"][:, 0], other["metric"][:, 0], atol=1e-11)
    assert np.abs(found["metric"][:, 1] - other["metric"][:, 1]).max() > 1e-5
    assert np.abs(found["empty_metric"] - other["empty_metric"]).max() > 1e-5


def test_a_gap_that_vanishes_is_a_status_and_no_number(net):
    group = net.pairs.groups[0]
    tokens = group.clean.tokens[:1]
    # The metric reads two answers that the model never gives, whatever the prompt.
    other = group.corrupt.tokens[:1]
    given = {int(group.clean.answers[0]), int(group.corrupt.answers[0])}
    never = sorted(set(range(7)) - given)
    pairs = pairs_from_tokens(tokens, other, [never[0]], [never[1]])
    found = faithfulness(net.model, pairs, Circuit(frozenset(true_edges(net))))
    assert np.isnan(found["faithfulness"][0])
    assert found["status"].values[0].startswith("no gap")


def test_construction():
    effect = path_effects(wrapped("gptj"), given_pairs(), "components", "components")["effect"]
    ten = Circuit.from_scores(effect, n=10)
    assert len(ten) == 10
    assert set(ten.scores) == ten.edges
    worst = min(abs(score) for score in ten.scores.values())
    assert Circuit.from_scores(effect, threshold=worst).edges == ten.edges
    assert len(Circuit.from_scores(effect, fraction=1.0)) == Graph(wrapped("gptj").spec).n_edges
    spec = wrapped("gptj").spec
    one, two = Circuit.random(spec, 10, seed=1), Circuit.random(spec, 10, seed=2)
    assert len(one) == len(two) == 10
    assert one.edges != two.edges
    assert Circuit.random(spec, 10, seed=1).edges == one.edges
    assert len(ten.complement(spec)) == Graph(spec).n_edges - 10
    assert owner(parse_node("k 1.g0")) == parse_node("kv 1.g0")
    heads = parse_node("head 0.1"), parse_node("head 2.0")
    assert Circuit.of(["head 0.1 -> q 2.0"]).nodes == heads
    with pytest.raises(mn.MechnumError, match="a circuit needs one size"):
        Circuit.from_scores(effect)
    with pytest.raises(mn.MechnumError, match="no edge of a circuit"):
        faithfulness(wrapped("gptj"), given_pairs(), Circuit.of(["attn 0 -> q 2.0"]))
