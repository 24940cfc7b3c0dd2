"""What was worked out on paper for the micro nets is what rerunning them gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from mechnum.patching.edges import Edge, component_receivers, component_senders, possible
from mechnum.patching.node_names import parse_node
from tests.patching import micro, micro_norm
from tests.patching.answers import Answers, ByPosition, cases, with_neurons
from tests.patching.rerun import Rerun

NETS: dict[str, tuple[Callable[..., Any], Callable[[], Any], Answers]] = {
    "without norms": (micro.micro, micro.micro_pairs, micro.ANSWERS),
    "with LayerNorms": (micro_norm.micro_norm, micro_norm.micro_norm_pairs, micro_norm.ANSWERS),
}
each_net = pytest.mark.parametrize("name", NETS)


def rerun(name: str) -> tuple[Rerun, Answers]:
    make, pairs, answers = NETS[name]
    return Rerun(make(), pairs()), answers


def check(found: Callable[[str, int | None], np.ndarray], table: dict[str, ByPosition]) -> None:
    for name, position, expected in cases(table):
        (effect,) = found(name, position)
        assert effect == pytest.approx(expected, abs=1e-10), (name, position)


@each_net
def test_metrics_of_the_plain_runs(name):
    reference, answers = rerun(name)
    assert reference.score(reference.source) == pytest.approx([float(answers.clean_metric)])
    assert reference.score(reference.base) == pytest.approx([float(answers.corrupt_metric)])


@each_net
def test_the_wrapped_net_gives_the_same_metric(name):
    """In float32, as users run it: through TransformerLens' own forward."""
    make, pairs, answers = NETS[name]
    (group,) = pairs().groups
    model = make(dtype=torch.float32)
    with torch.no_grad():
        logits = model.wrapped(group.corrupt.tokens)[0, -1]
    assert float(logits[0] - logits[1]) == pytest.approx(float(answers.corrupt_metric), abs=1e-4)


@each_net
def test_total_effects(name):
    reference, answers = rerun(name)
    check(lambda node, at: reference.total(parse_node(node), at), with_neurons(answers.totals))


@each_net
def test_direct_effects(name):
    reference, answers = rerun(name)
    check(lambda node, at: reference.direct(parse_node(node), at), with_neurons(answers.directs))


@each_net
def test_direct_effects_with_the_norm_frozen(name):
    reference, answers = rerun(name)
    check(
        lambda node, at: reference.direct(parse_node(node), at, norm="frozen"),
        with_neurons(answers.frozen_directs),
    )


@each_net
def test_path_effects(name):
    reference, answers = rerun(name)

    def effect(text: str, at: int | None) -> np.ndarray:
        edge = Edge.parse(text)
        return reference.edge(edge.sender, edge.receiver, at)

    check(effect, with_neurons(answers.edges))


@each_net
def test_every_possible_edge_is_worked_out(name):
    make, _, answers = NETS[name]
    spec = make().spec
    senders, receivers = component_senders(spec), component_receivers(spec)
    found = np.argwhere(possible(senders, receivers, spec))
    assert {str(Edge(senders[i], receivers[j])) for i, j in found} == set(answers.edges)


@each_net
def test_the_cases_that_matter_are_there(name):
    """Total effects that are not direct, negative effects, edges that are 0, positions that do not
    add up."""
    _, answers = rerun(name)
    assert answers.totals["head 0.0"][1] != answers.directs["head 0.0"][1]
    effects = [effect for _, _, effect in cases(answers.edges)]
    assert min(effects) < -1
    assert 0 in effects
    assert any(abs(first + last - both) > 1e-3 for first, last, both in answers.edges.values())


def test_neurons_are_named_beside_their_mlps():
    named = with_neurons({"mlp 0 -> mlp_in 1": (1, 2, 3), "head 1.0": (0, 0, 0)})
    assert set(named) == {
        *("mlp 0 -> mlp_in 1", "neuron 0.0 -> mlp_in 1", "mlp 0 -> neuron_in 1.0"),
        *("neuron 0.0 -> neuron_in 1.0", "head 1.0"),
    }
