"""The constructed net adds exactly, and its listed edges are the true ones.

Both are premises of other tests. They are measured by rerunning the whole net for every possible
edge, and never by the engine.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from mechnum.patching.edges import Edge, component_receivers, component_senders, possible
from mechnum.patching.nodes import Node, all_nodes
from tests.patching.constructed import Constructed, all_prompts, constructed
from tests.patching.rerun import Rerun

# The smallest effect of a true edge is 1; rounding gives 1e-13.
ZERO = 1e-9


@cache
def net() -> Constructed:
    return constructed(7)


@cache
def rerun() -> Rerun:
    return Rerun(net().model, net().pairs)


def fine(kinds: str) -> list[Node]:
    """Senders or receivers with single neurons in place of MLPs."""
    spec = net().model.spec
    if kinds == "senders":
        nodes = [node for node in component_senders(spec) if node.kind != "mlp"]
        return [*nodes, *all_nodes("neuron", spec)]
    nodes = [node for node in component_receivers(spec) if node.kind != "mlp_in"]
    return [*nodes, *all_nodes("neuron_in", spec)]


def largest(senders: list[Node], receivers: list[Node]) -> dict[Edge, float]:
    """Every possible edge → the largest of its effects on the metric, over all pairs."""
    allowed = possible(senders, receivers, net().model.spec)
    return {
        Edge(sender, receiver): float(np.abs(rerun().edge(sender, receiver)).max())
        for sender, row in zip(senders, allowed)
        for receiver, is_possible in zip(receivers, row)
        if is_possible
    }


@pytest.mark.parametrize("p", [5, 7, 11])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_adds_exactly(p, dtype):
    prompts = torch.from_numpy(all_prompts(p))
    with torch.no_grad():
        logits = constructed(p, dtype=dtype).model.decoder(prompts)[:, -1]
    expected = torch.eye(p, dtype=dtype)[prompts[:, :2].sum(1) % p]
    torch.testing.assert_close(
        logits, expected, atol=1e-12 if dtype == torch.float64 else 1e-4, rtol=0
    )


def test_every_prompt_is_a_clean_one_once():
    (group,) = net().pairs.groups
    assert sorted(map(tuple, group.clean.tokens.tolist())) == sorted(
        map(tuple, all_prompts(7).tolist())
    )
    assert len(constructed(7, n_pairs=5).pairs) == 5


def test_single_neurons_true_edges_are_those_that_change_the_logits():
    found = largest(fine("senders"), fine("receivers"))
    assert {edge for edge, effect in found.items() if effect > ZERO} == net().edges
    assert min(found[edge] for edge in net().edges) > 0.99
    assert max(effect for edge, effect in found.items() if edge not in net().edges) < 1e-11


def test_components_true_edges_are_those_that_change_the_logits():
    spec = net().model.spec
    senders, receivers = component_senders(spec), component_receivers(spec)
    found = largest(senders, receivers)
    true = net().true_edges(senders, receivers)
    assert {edge for edge, effect in found.items() if effect > ZERO} == true
    assert set(map(str, true)) == {
        *("embed -> v 0.g0", "embed -> v 0.g1", "embed -> mlp_in 0"),
        *("head 0.0 -> mlp_in 0", "head 0.1 -> mlp_in 0"),
        *("head 0.0 -> q 1.0", "head 0.1 -> q 1.0", "mlp 0 -> k 1.g1", "mlp 0 -> v 1.g2"),
        *("head 0.0 -> mlp_in 1", "head 1.0 -> mlp_in 1"),
        *("head 1.1 -> mlp_in 1", "head 1.2 -> mlp_in 1", "mlp 1 -> logits"),
    }


@pytest.mark.parametrize("level", ["neurons", "components"])
def test_the_true_edges_alone_are_the_net_and_none_can_be_spared(level):
    """All other edges carry the corrupt prompt's values at once, and the clean metric stays."""
    spec = net().model.spec
    senders, receivers = fine("senders"), fine("receivers")
    if level == "components":
        senders, receivers = component_senders(spec), component_receivers(spec)
    true = net().true_edges(senders, receivers)
    clean, corrupt = rerun().score(rerun().source), rerun().score(rerun().base)
    np.testing.assert_allclose(rerun().kept(true, receivers), clean, atol=1e-11)
    np.testing.assert_allclose(rerun().kept([], receivers), corrupt, atol=1e-11)
    for edge in true:
        assert np.abs(rerun().kept(true - {edge}, receivers) - clean).max() > 0.99, edge


def test_distractors_write_what_differs_between_prompts():
    """Finding the edges is not a matter of finding what writes at all."""
    active = {str(edge.sender) for edge in net().edges}
    writes = {str(node): float(np.abs(rerun().difference(node)).max()) for node in fine("senders")}
    differing = {name for name, size in writes.items() if size > 0.1}
    assert active < differing
    assert {"head 0.2", "head 0.3", "head 1.3", "neuron 0.2", "neuron 1.7"} < differing - active
    # Never firing (0.3, 1.8), and firing alike in all prompts (0.4).
    assert {"neuron 0.3", "neuron 0.4", "neuron 1.8"}.isdisjoint(differing)
    np.testing.assert_allclose(rerun().base.values[Node("neuron", 0, 4)][:, -1], 1)


def test_total_effects_of_nodes_that_no_true_edge_leaves_are_zero():
    senders = {edge.sender for edge in net().edges}
    for node in fine("senders"):
        effect = np.abs(rerun().total(node)).max()
        assert (effect > 0.99) if node in senders else (effect < 1e-11), node
