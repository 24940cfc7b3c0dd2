"""Nodes and edges are named as the field names them, and impossible ones are refused by name."""

from __future__ import annotations

import pytest

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.patching.edges import Edge, component_receivers, component_senders, possible
from mechnum.patching.node_names import node, parse_node, parse_target, parse_targets
from mechnum.patching.nodes import Node, all_nodes, label
from tests import fixtures


@pytest.fixture(scope="module")
def specs():
    built = {"parallel": fixtures.gptj(), "grouped": fixtures.llama()}
    return {name: mn.wrap(model).spec for name, model in built.items()}


NAMES = {
    "head 13.4": Node("head", 13, 4),
    "mlp 19": Node("mlp", 19),
    "neuron 20.7741": Node("neuron", 20, 7741),
    "v 5.g1": Node("v", 5, 1),
    "embed": Node("embed"),
    "logits": Node("logits"),
    "resid_mid 3": Node("resid_mid", 3),
    "blocks.10.hook_resid_post": Node("resid_post", 10),
    "blocks.5.attn.hook_z[3]": Node("head", 5, 3),
    "blocks.12.hook_mlp_out": Node("mlp", 12),
    "blocks.11.attn.hook_k[2]": Node("k", 11, 2),
    "blocks.20.mlp.hook_post[7741]": Node("neuron", 20, 7741),
    "hook_embed": Node("embed"),
}


@pytest.mark.parametrize("text", NAMES)
def test_names_and_hook_names(text):
    assert parse_node(text) == NAMES[text]
    assert parse_node(str(NAMES[text])) == NAMES[text]


def test_every_node_of_a_model_is_read_back(specs):
    for spec in specs.values():
        for kind in ("head", "attn", "mlp", "neuron", "q", "k", "v", "kv", "pattern", "logits"):
            for one in all_nodes(kind, spec):
                assert parse_node(str(one)) == one


def test_parts_as_arguments():
    assert node("blocks.5.attn.hook_z", head=3) == Node("head", 5, 3)
    assert node("neuron", layer=20, neuron=7741) == Node("neuron", 20, 7741)
    assert node("v", layer=5, group=1) == Node("v", 5, 1)
    assert node("blocks.10.hook_resid_post").layer == 10


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: node("resid_pre", layer=3, head=1), "resid_pre has no head"),
        (lambda: node("resid_pre", layer=3, neuron=5), "resid_pre has no neuron"),
        (lambda: node("blocks.3.hook_resid_pre", head=1), "resid_pre has no head"),
        (lambda: node("v", layer=3, head=1), "it has key-value groups, use group="),
        (lambda: node("head 3.1", head=2), "name different nodes"),
        (lambda: parse_node("head 3"), "head needs a head: write it as 'head 3.1'"),
        (lambda: parse_node("mlp 3.1"), "mlp has no parts"),
        (lambda: parse_node("v 5.1"), "v counts key-value groups: write it as 'v 3.g1'"),
        (lambda: parse_node("head 5.g1"), "head has no groups"),
        (lambda: parse_node("heads of 3"), "names no node"),
        (lambda: parse_node("blocks.3.hook_scale"), "is none of a node's"),
        (lambda: parse_node("head *.1"), "names no node"),
        (lambda: Edge.parse("head 0.1 q 2.0"), "names no edge"),
        (lambda: Edge.parse("logits -> q 2.0"), "logits writes nothing"),
        (lambda: Edge.parse("head 0.1 -> head 2.0"), "head 2.0 has no input of its own"),
    ],
)
def test_what_is_no_node_or_edge(make, message):
    with pytest.raises(MechnumError, match=message) as refused:
        make()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("model", "text", "message"),
    [
        ("parallel", "resid_mid 1", "resid_mid 1 does not exist: attention and MLP of a parallel"),
        ("parallel", "mlp 3", "the model has layers 0 to 2"),
        ("grouped", "k 0.g2", "a layer has key-value groups 0 to 1"),
        ("grouped", "neuron 0.64", "a layer has neurons 0 to 63"),
        ("parallel", "head 0.1 -> mlp_in 0", "head 0.1 -> mlp_in 0 is impossible: in a parallel"),
        ("grouped", "mlp 2 -> q 2.0", "reads the residual stream before mlp 2 writes"),
        ("grouped", "head 2.0 -> v 1.g0", "choose a later receiver"),
    ],
)
def test_what_a_model_does_not_have(specs, model, text, message):
    one = Edge.parse(text) if "->" in text else parse_node(text)
    with pytest.raises(MechnumError, match=message):
        one.check(specs[model])


def test_an_mlps_write_does_not_reach_its_own_layers_attention(specs):
    with pytest.raises(MechnumError, match="has no input of its own"):
        Edge(Node("mlp", 1), Node("attn", 1))
    Edge.parse("head 1.0 -> mlp_in 1").check(specs["grouped"])


def test_lists_sets_ranges_and_wildcards(specs):
    spec = specs["grouped"]
    assert parse_targets("head 1-2.*, mlp 0", spec) == [
        *(Node("head", layer, head) for layer in (1, 2) for head in range(4)),
        Node("mlp", 0),
    ]
    assert parse_targets("v", spec) == all_nodes("v", spec)
    assert parse_targets("k *.g0", spec) == [Node("k", layer, 0) for layer in range(3)]
    both = parse_target("head 0.2 + head 0.1")
    assert label(both) == "head 0.1 + head 0.2"
    assert parse_targets("head 0.1 + head 0.2, embed", spec) == [both, Node("embed")]
    with pytest.raises(MechnumError, match="the model has layers 0 to 2"):
        parse_targets("head 1-5.0", spec)


def test_possible_edges_are_those_that_check(specs):
    for spec in specs.values():
        senders, receivers = component_senders(spec), component_receivers(spec)
        table = possible(senders, receivers, spec)
        for row, sender in enumerate(senders):
            for column, receiver in enumerate(receivers):
                edge = Edge(sender, receiver)
                if table[row, column]:
                    edge.check(spec)
                else:
                    with pytest.raises(MechnumError, match="is impossible"):
                        edge.check(spec)
        assert table[0].all()
        assert table[:, -1].all()
