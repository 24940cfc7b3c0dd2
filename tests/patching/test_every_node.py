"""Every kind of node, at every position, against reruns of the whole model in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.models.memory import memory_budget
from mechnum.patching.effects import effects
from mechnum.patching.node_names import parse_node
from mechnum.patching.nodes import Node, all_nodes
from mechnum.tasks import pairs_from_tokens
from tests import fixtures
from tests.patching.rerun import Rerun
from tests.patching.test_effects import given_pairs

ARCHITECTURES = ["gpt2", "gptj", "gpt_neox parallel", "gpt_neox sequential", "llama grouped"]
# Parallel and sequential blocks, adjacent and half-split rotary pairs, plain and gated MLPs, heads
# with groups and without; what the others add shows in the tests that take all of them.
TWO_KINDS = fixtures.rest_slow(ARCHITECTURES, "gptj", "llama grouped")
TABLES = {
    "heads": "head",
    "attn": "attn",
    "mlps": "mlp",
    "q": "q",
    "k": "k",
    "v": "v",
    "kv": "kv",
    "pattern": "pattern",
}
POSITIONS = {"end": -1, 1: 1, "all": None}


def wrapped(architecture):
    """In float64, so that agreement is agreement."""
    return mn.wrap(fixtures.ARCHITECTURES[architecture]().double())


def by_node(found, name, node):
    values = found[name].values[:, node.layer]
    return values if values.ndim == 1 else values[:, node.index]


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("position", POSITIONS)
def test_tables_are_those_of_reruns(architecture, table, position):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Rerun(model, pairs), POSITIONS[position]
    found = effects(model, pairs, table, position)
    largest = 0.0
    # Every second node: each rerun computes every head by itself.
    for node in all_nodes(TABLES[table], model.spec)[::2]:
        total = slow.total(node, at)
        np.testing.assert_allclose(by_node(found, "total", node), total, atol=1e-11)
        np.testing.assert_allclose(
            by_node(found, "direct", node), slow.direct(node, at), atol=1e-11
        )
        np.testing.assert_allclose(
            by_node(found, "direct_frozen", node), slow.direct(node, at, "frozen"), atol=1e-11
        )
        largest = max(largest, np.abs(total).max())
    assert largest > 1e-4
    np.testing.assert_array_equal(found["indirect"], found["total"] - found["direct"])


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", POSITIONS)
def test_neurons_are_those_of_reruns(architecture, position):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Rerun(model, pairs), POSITIONS[position]
    found = effects(model, pairs, "neurons", position)
    assert found["total"].shape == (3, 3, model.spec.d_mlp)
    for node in [Node("neuron", layer, n) for layer in range(3) for n in (0, 17, 63)]:
        np.testing.assert_allclose(by_node(found, "total", node), slow.total(node, at), atol=1e-11)
        np.testing.assert_allclose(
            by_node(found, "direct", node), slow.direct(node, at), atol=1e-11
        )
        np.testing.assert_allclose(
            by_node(found, "direct_frozen", node), slow.direct(node, at, "frozen"), atol=1e-11
        )
    mlps = effects(model, pairs, "mlps", position)
    np.testing.assert_allclose(
        found["direct_frozen"].sum("neuron"), mlps["direct_frozen"], atol=1e-11
    )


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("metric", ["logprob", "prob", "logit"])
def test_direct_effects_of_neurons_in_other_metrics(architecture, metric):
    model, pairs = wrapped(architecture), given_pairs()
    slow = Rerun(model, pairs, metric=metric)
    found = effects(model, pairs, "neurons", metric=metric, estimands=("direct",))
    assert "total" not in found
    for node in [Node("neuron", layer, n) for layer in range(3) for n in (0, 17, 63)]:
        np.testing.assert_allclose(
            by_node(found, "direct", node), slow.direct(node, -1), atol=1e-11
        )


@pytest.mark.parametrize("nodes", ["heads", "neurons", ["head 0.1 + mlp 2", "attn 1"]])
def test_a_frozen_norm_is_that_of_the_direct_and_the_indirect_effect(nodes):
    model, pairs = wrapped("llama grouped"), given_pairs()
    exact = effects(model, pairs, nodes)
    frozen = effects(model, pairs, nodes, norm="frozen")
    np.testing.assert_array_equal(frozen["direct"], exact["direct_frozen"])
    np.testing.assert_array_equal(frozen["indirect"], frozen["total"] - frozen["direct"])
    assert np.abs(exact["direct"] - exact["direct_frozen"]).max() > 1e-6
    assert (exact.attrs["norm"], frozen.attrs["norm"]) == ("exact", "frozen")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("direction", ["denoise", "noise"])
def test_a_sweep_over_positions_is_every_position_by_itself(architecture, direction):
    model, pairs = wrapped(architecture), given_pairs()
    slow = Rerun(model, pairs, direction)
    for table in ("residual", "k", "heads"):
        found = effects(model, pairs, table, "each", direction=direction)
        assert found["position"].values.tolist() == [-5, -4, -3, -2, -1]
        for place in range(5):
            here = effects(model, pairs, table, place, direction=direction)
            swept = found.isel(position=place)
            for name in ("total", "direct", "direct_frozen"):
                np.testing.assert_allclose(swept[name], here[name], atol=1e-11)
    residual = effects(model, pairs, "residual", "each", direction=direction)
    assert residual["layer"].values.tolist() == [-1, 0, 1, 2]
    for layer in range(-1, 3):
        node = Node("embed") if layer < 0 else Node("resid_post", layer)
        for place in range(-5, 0):
            np.testing.assert_allclose(
                residual["total"].sel({"layer": layer, "position": place}),
                slow.total(node, place),
                atol=1e-11,
            )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_patching_all_of_the_last_residual_gives_the_other_prompts_metric(architecture):
    """And patching a prompt with itself gives exactly nothing."""
    model, pairs = wrapped(architecture), given_pairs()
    found = effects(model, pairs, "residual", "all")
    gap = found["clean_metric"] - found["corrupt_metric"]
    np.testing.assert_allclose(found["total"].sel({"layer": 2}), gap, atol=1e-11)
    np.testing.assert_allclose(found["total"].sel({"layer": -1}), gap, atol=1e-11)
    for table in ("heads", "q", "k", "v", "kv", "pattern", "attn", "mlps", "neurons", "residual"):
        # A position at which neither the tokens nor anything before them differ.
        here = effects(model, pairs, table, 0)
        for name in ("total", "direct", "direct_frozen"):
            assert (here[name] == 0).all(), (table, name)


@pytest.mark.parametrize("architecture", ["gptj", "llama grouped"])
def test_what_writes_nothing_at_the_end_has_no_direct_effect_at_all(architecture):
    """In float32, where rows and base run are rounded differently."""
    model = mn.wrap(fixtures.ARCHITECTURES[architecture]())
    for table in ("heads", "attn", "mlps", "neurons"):
        found = effects(model, given_pairs(), table, 1)
        assert (found["direct"] == 0).all()
        assert (found["direct_frozen"] == 0).all()
        assert (found["total"] != 0).any()


SETS = ["head 0.1 + head 2.3", "mlp 0 + mlp 2", "attn 1 + head 1.2 + neuron 2.7", "kv 1.g0 + q 2.1",
        "resid_pre 1 + head 2.0", "pattern 0.3 + v 0.g1 + embed"]  # fmt: skip


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", POSITIONS)
def test_sets_are_patched_in_one_run(architecture, position):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Rerun(model, pairs), POSITIONS[position]
    found = effects(model, pairs, SETS, position)
    for column, text in enumerate(SETS):
        nodes = frozenset(parse_node(part) for part in text.split("+"))
        np.testing.assert_allclose(found["total"][:, column], slow.total(nodes, at), atol=1e-11)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_direct_effect_of_a_set_is_that_of_the_sum_of_its_writes(architecture):
    model, pairs = wrapped(architecture), given_pairs()
    slow = Rerun(model, pairs)
    found = effects(model, pairs, SETS[:2])
    for column, text in enumerate(SETS[:2]):
        nodes = frozenset(parse_node(part) for part in text.split("+"))
        np.testing.assert_allclose(found["direct"][:, column], slow.direct(nodes, -1), atol=1e-11)
    # A head is part of its attention layer, and counts once.
    both = effects(model, pairs, ["attn 1 + head 1.2", "attn 1"])
    np.testing.assert_allclose(both["direct"][:, 0], both["direct"][:, 1], atol=1e-11)


@pytest.mark.parametrize("architecture", ["gptj", "llama grouped"])
def test_a_set_of_one_is_its_node(architecture):
    model, pairs = wrapped(architecture), given_pairs()
    names = ["head 1.2", "attn 0", "mlp 1", "neuron 2.5", "k 1.g1", "kv 0.g0", "q 2.2", "v 1.g0",
             "pattern 1.0", "resid_post 1", "embed"]  # fmt: skip
    for position in (1, "end", "all"):
        singles = effects(model, pairs, names, position)
        sets = [frozenset({parse_node(name)}) for name in names]
        joint = effects(model, pairs, sets, position)
        for name in ("total", "direct", "direct_frozen"):
            np.testing.assert_allclose(joint[name], singles[name], atol=1e-11)


def test_the_order_of_nodes_does_not_matter():
    """A list, its reverse and the tables agree, single pairs and all of them too."""
    model, pairs = wrapped("llama grouped"), given_pairs()
    names = ["head 2.1", "mlp 0", "v 1.g1", "head 0.3", "head 0.0"]
    found = effects(model, pairs, names)
    back = effects(model, pairs, names[::-1])
    np.testing.assert_array_equal(found["total"], back["total"][:, ::-1])
    heads = effects(model, pairs, "heads")
    np.testing.assert_allclose(found["total"][:, 3], heads["total"][:, 0, 3], atol=1e-12)
    np.testing.assert_allclose(
        effects(model, pairs, "head 0.*")["total"], heads["total"][:, 0], atol=1e-12
    )


@pytest.mark.parametrize("position", [1, "all"])
def test_swaps_at_several_layers_read_the_stored_run(position):
    """The value at a layer is that of its own run, whatever was put in at the layers below."""
    model, pairs = wrapped("llama grouped"), given_pairs()
    names = [f"resid_post {layer}" for layer in range(3)]
    sets = [" + ".join(names[:count]) for count in (1, 2, 3)]
    joint = effects(model, pairs, sets, position)["total"].values
    singles = effects(model, pairs, names, position)["total"].values
    if position == "all":
        # Each swap is overwritten by the one above it.
        np.testing.assert_allclose(joint, singles, atol=1e-11)
    slow = Rerun(model, pairs)
    for column, text in enumerate(sets):
        nodes = frozenset(parse_node(part) for part in text.split("+"))
        np.testing.assert_allclose(
            joint[:, column], slow.total(nodes, POSITIONS[position]), atol=1e-11
        )
    twice = frozenset({parse_node("resid_post 1"), parse_node("blocks.1.hook_resid_post")})
    assert twice == frozenset({parse_node("resid_post 1")})


@pytest.mark.parametrize("table", ["heads", "neuron 1.*, neuron 2.5", "k", "residual"])
@pytest.mark.parametrize("position", fixtures.rest_slow(["end", "all", "each"], "end", "all"))
def test_stacks_of_1_7_and_100_patches_agree(table, position, monkeypatch):
    from mechnum.patching import propagate

    model, pairs = wrapped("llama grouped"), given_pairs()
    expected = effects(model, pairs, table, position)["total"]
    for size in (1, 7, 100):
        monkeypatch.setattr(propagate, "rows_at_a_time", lambda row_bytes, size=size: size)
        monkeypatch.setattr(propagate, "working_rows", lambda row_bytes, device, size=size: size)
        found = effects(model, pairs, table, position)["total"]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    monkeypatch.undo()
    for n_bytes in (1, 100_000):
        with memory_budget(n_bytes):
            found = effects(model, pairs, table, position)["total"]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_prompts_of_several_lengths_are_swept_from_the_end():
    model = wrapped("gpt_neox parallel")
    clean = [[0, 10, 2, 20, 3], [0, 10, 11, 2, 20, 3]]
    corrupt = [[0, 12, 2, 31, 3], [0, 12, 11, 2, 31, 3]]
    answers = torch.tensor([30, 33]), torch.tensor([43, 40])
    found = effects(model, pairs_from_tokens(clean, corrupt, *answers), "heads", "each")["total"]
    assert found["position"].values.tolist() == [-6, -5, -4, -3, -2, -1]
    assert np.isnan(found[0, 0]).all()
    assert np.isfinite(found[0, 1:]).all()
    assert np.isfinite(found[1]).all()
    for row in range(2):
        alone = pairs_from_tokens(
            [clean[row]], [corrupt[row]], answers[0][[row]], answers[1][[row]]
        )
        swept = effects(model, alone, "heads", "each")["total"]
        np.testing.assert_allclose(found[row, -swept.shape[1] :], swept[0], atol=1e-12)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("head 9.0", "head 9.0 does not exist: the model has layers 0 to 2"),
        ("head 0.9", "a layer has heads 0 to 3"),
        ("v 0.g3", "a layer has key-value groups 0 to 1"),
        ("mlp_in 1", "mlp_in 1 holds no value to patch: patch the mlp instead"),
        (["head 0.1", "head 0.1"], "head 0.1 is there twice"),
        ([], "no nodes were named"),
        ([frozenset()], "a set of nodes is empty"),
    ],
)
def test_impossible_nodes_are_refused(nodes, message, unchecked):
    with pytest.raises(mn.MechnumError, match=message) as refused:
        effects(wrapped("llama grouped"), given_pairs(), nodes)
    assert "\n" not in str(refused.value)
