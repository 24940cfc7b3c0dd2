"""Estimates of nodes and edges are derivatives of the metric along the patch, and behave so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.models.decoder import Decoder
from mechnum.models.memory import memory_budget
from mechnum.patching.attribution.attribution import attribute
from mechnum.patching.edges import component_receivers, component_senders, possible
from mechnum.patching.effects import effects
from mechnum.patching.node_names import parse_node
from mechnum.patching.nodes import Node, all_nodes
from mechnum.patching.path.paths import path_effects
from mechnum.tasks import pairs_from_tokens
from tests import fixtures
from tests.patching.attribution.central import Central
from tests.patching.micro import micro, micro_pairs
from tests.patching.micro_norm import micro_norm, micro_norm_pairs
from tests.patching.plain import Trace
from tests.patching.test_effects import ANSWERS, CLEAN, CORRUPT, CORRUPT_ANSWERS, given_pairs
from tests.patching.test_every_node import POSITIONS, TABLES, TWO_KINDS, by_node, wrapped

SOME_POSITIONS = fixtures.rest_slow(POSITIONS, "end", "all")
# A step of 1e-4 leaves an error of about 1e-8 in float64; 1 % would hide half of what can go wrong.
CLOSE = {"rtol": 1e-5, "atol": 1e-9}


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", SOME_POSITIONS)
def test_nodes_are_central_differences(architecture, position):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Central(model, pairs), POSITIONS[position]
    for table, kind in TABLES.items():
        found = attribute(model, pairs, "gradient", table, position=position)
        for node in all_nodes(kind, model.spec)[::4]:
            expected = slow.node(node, at)
            np.testing.assert_allclose(by_node(found, "estimate", node), expected, **CLOSE)
        assert np.abs(found["estimate"]).max() > 1e-4


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", SOME_POSITIONS)
def test_neurons_and_residual_states_are_central_differences(architecture, position):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Central(model, pairs), POSITIONS[position]
    names = ["neuron 0.3", "neuron 0.17", "neuron 2.63", "neuron 1.5", "embed", "resid_post 0",
             "resid_pre 1", "resid_post 2", "head 2.1"]  # fmt: skip
    if not model.spec.parallel:
        names += ["resid_mid 0", "resid_mid 2"]
    found = attribute(model, pairs, "gradient", names, position=position)["estimate"]
    for column, name in enumerate(names):
        np.testing.assert_allclose(found[:, column], slow.node(parse_node(name), at), **CLOSE)
    neurons = attribute(model, pairs, "gradient", "neurons", position=position)["estimate"]
    np.testing.assert_allclose(neurons[:, 2, 63], found[:, 2], **CLOSE)
    residual = attribute(model, pairs, "gradient", "residual", position=position)["estimate"]
    np.testing.assert_allclose(residual.sel({"layer": -1}), found[:, 4], **CLOSE)


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", SOME_POSITIONS)
def test_edges_between_components_are_central_differences(architecture, position):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Central(model, pairs), POSITIONS[position]
    found = attribute(model, pairs, "eap", position=position)["estimate"]
    senders, receivers = component_senders(model.spec), component_receivers(model.spec)
    exists = possible(senders, receivers, model.spec)
    assert (np.isnan(found.values) == ~exists).all()
    for row, sender in enumerate(senders):
        for column, receiver in enumerate(receivers):
            if exists[row, column] and (row + 3 * column) % 11 == 0:
                expected = slow.edge_estimate(sender, receiver, at)
                np.testing.assert_allclose(found[:, row, column], expected, **CLOSE)
    assert np.nanmax(np.abs(found)) > 1e-3


SENDERS = ["neuron 0.3", "neuron 1.20", "neuron 1.2", "kv 0.g1", "v 0.g0", "k 1.g0", "q 1.2",
           "pattern 0.1", "attn 1", "resid_post 0", "resid_pre 1", "embed"]  # fmt: skip
RECEIVERS = ["neuron_in 1.5", "neuron_in 2.0", "neuron_in 2.9", "q 2.1", "k 2.g1", "v 1.g0",
             "mlp_in 2", "logits"]  # fmt: skip


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", SOME_POSITIONS)
@pytest.mark.parametrize("ig_steps", [None, 3])
def test_other_edges_are_central_differences(architecture, position, ig_steps):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Central(model, pairs), POSITIONS[position]
    method = "eap" if ig_steps is None else "eap-ig"
    found = attribute(
        model, pairs, method, None, SENDERS, RECEIVERS, position, ig_steps=ig_steps or 5
    )["estimate"]
    # Each sender with one or two of the receivers, others at each position.
    shift = 3 * list(POSITIONS).index(position)
    for row, sender in enumerate(map(parse_node, SENDERS)):
        for column, receiver in list(enumerate(map(parse_node, RECEIVERS)))[(row + shift) % 6 :: 6]:
            if not np.isnan(found[0, row, column]):
                expected = slow.edge_estimate(sender, receiver, at, ig_steps)
                np.testing.assert_allclose(found[:, row, column], expected, **CLOSE)


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", SOME_POSITIONS)
def test_integrated_gradients_of_nodes_are_means_of_central_differences(architecture, position):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Central(model, pairs), POSITIONS[position]
    names = ["head 0.1", "head 1.3", "mlp 1", "attn 2", "neuron 0.7", "q 1.0", "k 0.g1", "v 2.g0",
             "kv 1.g1", "pattern 1.2", "embed", "resid_post 1"]  # fmt: skip
    found = attribute(model, pairs, "eap-ig", names, position=position, ig_steps=3)
    for column, name in enumerate(names):
        expected = slow.node(parse_node(name), at, ig_steps=3)
        np.testing.assert_allclose(found["estimate"][:, column], expected, **CLOSE)
    assert found.attrs["ig_points"] == "other + k/3 × (base − other), k = 0 to 2"


@pytest.mark.parametrize("metric", ["logprob", "prob", "logit"])
@pytest.mark.parametrize("direction", ["denoise", "noise"])
def test_every_metric_and_direction(metric, direction):
    model, pairs = wrapped("llama grouped"), given_pairs()
    slow = Central(model, pairs, direction, metric)
    heads = attribute(model, pairs, "gradient", metric=metric, direction=direction)
    edges = attribute(model, pairs, "eap", metric=metric, direction=direction)["estimate"]
    for node in (Node("head", 0, 1), Node("head", 1, 2), Node("head", 2, 3)):
        np.testing.assert_allclose(by_node(heads, "estimate", node), slow.node(node, -1), **CLOSE)
        for receiver in ("logits", "mlp_in 2"):
            np.testing.assert_allclose(
                edges.sel({"sender": str(node), "receiver": receiver}),
                slow.edge_estimate(node, parse_node(receiver)),
                **CLOSE,
            )
    exact = effects(model, pairs, "heads", metric=metric, direction=direction)
    np.testing.assert_array_equal(heads["clean_metric"], exact["clean_metric"])
    np.testing.assert_array_equal(heads["corrupt_metric"], exact["corrupt_metric"])


@pytest.mark.parametrize("values", ["zero", "mean"])
@pytest.mark.parametrize("position", SOME_POSITIONS)
def test_ablations_are_central_differences(values, position):
    model, pairs = wrapped("gpt_neox sequential"), given_pairs()
    slow, at = Central(model, pairs), POSITIONS[position]
    ablated = {
        node: np.zeros_like(value)
        if values == "zero"
        else np.broadcast_to(value.mean(0), value.shape)
        for node, value in slow.base.values.items()
    }
    slow.source = Trace(values=ablated)
    names = ["head 1.0", "mlp 0", "neuron 1.3", "k 1.g2", "v 0.g1", "pattern 2.0", "resid_post 1"]
    nodes = list(map(parse_node, names))
    found = attribute(model, pairs, "gradient", nodes, position=position, values=values)
    for column, node in enumerate(nodes):
        np.testing.assert_allclose(found["estimate"][:, column], slow.node(node, at), **CLOSE)
    edges = attribute(model, pairs, "eap", position=position, values=values)["estimate"]
    for sender in ("head 0.2", "head 1.1", "mlp 0"):
        expected = slow.edge_estimate(parse_node(sender), Node("q", 2, 1), at)
        np.testing.assert_allclose(
            edges.sel({"sender": sender, "receiver": "q 2.1"}), expected, **CLOSE
        )


def test_resampled_values_are_those_of_another_pair():
    """In a cycle of three base prompts, whatever the seed draws."""
    model, pairs = wrapped("llama grouped"), given_pairs()
    found = attribute(model, pairs, "gradient", values="resample", seed=3)
    np.testing.assert_array_equal(
        found["estimate"],
        attribute(model, pairs, "gradient", values="resample", seed=3)["estimate"],
    )
    candidates = []
    for shift in (1, 2):
        others = CORRUPT[[(row + shift) % 3 for row in range(3)]]
        cyclic = pairs_from_tokens(others, CORRUPT, ANSWERS, CORRUPT_ANSWERS)
        candidates.append(attribute(model, cyclic, "gradient")["estimate"])
    assert any(np.allclose(found["estimate"], one, atol=1e-12) for one in candidates)
    assert found.attrs["resample_seed"] == 3


@pytest.mark.parametrize("architecture", ["gptj", "gpt_neox sequential", "llama grouped"])
@pytest.mark.parametrize("method", ["gradient", "eap", "eap-ig"])
def test_each_position_is_every_position_by_itself(architecture, method):
    model, pairs = wrapped(architecture), given_pairs()
    names = "head 0.1, kv 1.g0, mlp 1, embed"
    kinds = [{"nodes": names}, {"nodes": "neurons"}]
    if method != "gradient":
        kinds = [{"senders": names, "receivers": "components"}]
    for given in kinds:
        found = attribute(model, pairs, method, position="each", **given)["estimate"]
        assert found["position"].values.tolist() == [-5, -4, -3, -2, -1]
        for place in range(5):
            here = attribute(model, pairs, method, position=place, **given)["estimate"]
            np.testing.assert_allclose(found[:, place], here, atol=1e-12)
        assert (found[:, 0].values[~np.isnan(found[:, 0].values)] == 0).all()


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("method", ["eap", "eap-ig"])
def test_the_edges_out_of_a_component_add_up_to_its_node(architecture, method):
    """The derivative along a write is the sum of those along all that reads it."""
    model, pairs = wrapped(architecture), given_pairs()
    edges = attribute(model, pairs, method)["estimate"].sum("receiver")
    of_nodes = {"method": "gradient" if method == "eap" else method, "position": "all"}
    heads = attribute(model, pairs, nodes="heads", **of_nodes)["estimate"]
    mlps = attribute(model, pairs, nodes="mlps", **of_nodes)["estimate"]
    embed = attribute(model, pairs, nodes="embed", **of_nodes)["estimate"]
    for layer in range(3):
        np.testing.assert_allclose(
            edges.sel({"sender": f"mlp {layer}"}), mlps[:, layer], atol=1e-11
        )
        for head in range(4):
            np.testing.assert_allclose(
                edges.sel({"sender": f"head {layer}.{head}"}), heads[:, layer, head], atol=1e-11
            )
    np.testing.assert_allclose(edges.sel({"sender": "embed"}), embed[:, 0], atol=1e-11)


@pytest.mark.parametrize("architecture", ["gptj", "llama grouped"])
def test_neurons_add_up_to_their_mlp_on_both_sides(architecture):
    model, pairs = wrapped(architecture), given_pairs()
    neurons = [f"neuron 0.{n}" for n in range(model.spec.d_mlp)]
    inputs = [f"neuron_in 2.{n}" for n in range(model.spec.d_mlp)]
    for method in ("eap", "eap-ig"):
        found = attribute(model, pairs, method, None, neurons, inputs)["estimate"]
        whole = attribute(model, pairs, method, None, "mlp 0", "mlp_in 2")["estimate"]
        np.testing.assert_allclose(found.sum(("sender", "receiver")), whole[:, 0, 0], atol=1e-11)


@pytest.mark.parametrize("architecture", ["gpt2", "llama grouped"])
@pytest.mark.parametrize("direction", ["denoise", "noise"])
def test_integrated_gradients_of_the_embedding_are_complete(architecture, direction):
    """Their sum tends to the gap between the runs; the error of m points falls as 1/m.

    The embedding is the one cut through which the runs part, along the very line that is
    integrated; the writes of later cuts leave that line.
    """
    model, pairs = wrapped(architecture), given_pairs()
    sign = 1 if direction == "denoise" else -1
    by_steps = [
        attribute(
            model, pairs, "eap-ig", "embed", position="all", direction=direction, ig_steps=ig_steps
        )
        for ig_steps in (50, 100)
    ]
    found = by_steps[1]
    gap = sign * (found["clean_metric"] - found["corrupt_metric"]).values
    coarse, fine = (one["estimate"].values[:, 0] for one in by_steps)
    np.testing.assert_allclose(fine, gap, atol=0.02 * np.abs(gap).max())
    np.testing.assert_allclose((coarse - gap) / (fine - gap), 2, rtol=0.1)
    np.testing.assert_allclose(2 * fine - coarse, gap, atol=2e-4 * np.abs(gap).max())
    # The same along all edges that leave the embedding.
    edges = attribute(
        model, pairs, senders="embed", direction=direction, ig_steps=100
    )["estimate"]  # fmt: skip
    np.testing.assert_allclose(edges.sum("receiver")[:, 0], found["estimate"][:, 0], atol=1e-11)


@pytest.mark.parametrize("architecture", ["gptj", "llama grouped"])
def test_estimates_tend_to_exact_effects_as_the_difference_shrinks(architecture):
    """Halving the distance of the prompts' embeddings divides the relative error by two."""
    disagreements = []
    for share in (0.01, 0.005):
        net = fixtures.ARCHITECTURES[architecture]().double()
        embedding = net.get_input_embeddings().weight
        with torch.no_grad():
            for clean, corrupt in ((40, 50), (41, 51)):
                embedding[clean] = embedding[corrupt] + share * (
                    embedding[clean] - embedding[corrupt]
                )
        model = mn.wrap(net)
        clean, corrupt = [[0, 40, 2, 41, 3]], [[0, 50, 2, 51, 3]]
        pairs = pairs_from_tokens(clean, corrupt, ANSWERS[[0]], CORRUPT_ANSWERS[[0]])
        nodes = attribute(model, pairs, "gradient", position="all")["estimate"]
        exact = effects(model, pairs, "heads", position="all")["total"]
        edges = attribute(model, pairs, "eap")["estimate"]
        exact_edges = path_effects(model, pairs, "components", "components")["effect"]
        disagreements.append(
            [
                float(np.abs(nodes - exact).max() / np.abs(exact).max()),
                float(np.abs(edges - exact_edges).max() / np.abs(exact_edges).max()),
            ]
        )
    larger, smaller = np.array(disagreements)
    assert (smaller < 0.01).all()
    np.testing.assert_allclose(larger / smaller, 2, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gradient", "eap", "eap-ig"])
def test_batches_single_pairs_and_memory_budgets_agree(method):
    model, pairs = wrapped("llama grouped"), given_pairs()
    expected = attribute(model, pairs, method)["estimate"]
    for n_bytes in (1, 30_000, 300_000):
        with memory_budget(n_bytes):
            found = attribute(model, pairs, method)["estimate"]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    for row in range(3):
        alone = pairs_from_tokens(
            CLEAN[[row]], CORRUPT[[row]], ANSWERS[[row]], CORRUPT_ANSWERS[[row]]
        )
        found = attribute(model, alone, method)["estimate"]
        np.testing.assert_allclose(found[0], expected[row], atol=1e-12)


def test_neurons_as_senders_under_memory_budgets():
    model, pairs = wrapped("gptj"), given_pairs()
    given = {"senders": "neurons", "receivers": "q 2.0, neuron_in 2.1, neuron_in 2.7, logits"}
    expected = attribute(model, pairs, "eap", position="each", **given)["estimate"]
    for n_bytes in (1, 50_000):
        with memory_budget(n_bytes):
            found = attribute(model, pairs, "eap", position="each", **given)["estimate"]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_prompts_of_several_lengths_are_swept_from_the_end():
    model = wrapped("gpt_neox parallel")
    clean = [[0, 10, 2, 20, 3], [0, 10, 11, 2, 20, 3]]
    corrupt = [[0, 12, 2, 31, 3], [0, 12, 11, 2, 31, 3]]
    answers = torch.tensor([30, 33]), torch.tensor([43, 40])
    mixed = pairs_from_tokens(clean, corrupt, *answers)
    for method, given in (("gradient", {}), ("eap", {"senders": "heads", "receivers": "logits"})):
        found = attribute(model, mixed, method, position="each", confirm=3, **given)
        estimate = found["estimate"]
        assert np.isnan(estimate[0, 0]).all()
        for row in range(2):
            alone = pairs_from_tokens(
                [clean[row]], [corrupt[row]], answers[0][[row]], answers[1][[row]]
            )
            swept = attribute(model, alone, method, position="each", **given)["estimate"]
            np.testing.assert_allclose(estimate[row, -swept.shape[1] :], swept[0], atol=1e-12)


def test_equal_prompts_give_exactly_nothing():
    """A pair's own values at a position before the prompts part change nothing."""
    model, pairs = wrapped("gptj"), given_pairs()
    for table in ("heads", "q", "kv", "pattern", "attn", "mlps", "neurons", "residual"):
        assert (attribute(model, pairs, "gradient", table, position=0)["estimate"] == 0).all()
    edges = attribute(model, pairs, "eap-ig", position=0)["estimate"].values
    assert (edges[~np.isnan(edges)] == 0).all()


@pytest.mark.parametrize("position", SOME_POSITIONS)
def test_nets_without_mlps(position):
    model, pairs = wrapped("gpt2"), given_pairs()
    decoder = model.decoder
    blocks = tuple(replace(block, ln2=None, mlp=None) for block in decoder.weights.blocks)
    bare = Decoder(
        replace(model.spec, d_mlp=0), replace(decoder.weights, blocks=blocks), decoder.rotary
    )
    model = replace(model, spec=bare.spec, decoder=bare)
    slow, at = Central(model, pairs), POSITIONS[position]
    heads = attribute(model, pairs, "gradient", position=position)
    edges = attribute(model, pairs, "eap", position=position)["estimate"]
    for head in range(4):
        node = Node("head", 1, head)
        np.testing.assert_allclose(by_node(heads, "estimate", node), slow.node(node, at), **CLOSE)
        for receiver in ("k 2.g1", "logits"):
            np.testing.assert_allclose(
                edges.sel({"sender": str(node), "receiver": receiver}),
                slow.edge_estimate(node, parse_node(receiver), at),
                **CLOSE,
            )


@pytest.mark.parametrize("net", [(micro, micro_pairs), (micro_norm, micro_norm_pairs)])
def test_nets_set_by_hand(net):
    """Without any norm, and with LayerNorm. No ReLU is at its kink in the clean runs."""
    model, pairs = (make() for make in net)
    slow = Central(model, pairs, "noise")
    senders, receivers = component_senders(model.spec), component_receivers(model.spec)
    found = attribute(model, pairs, "eap", direction="noise")["estimate"]
    for row, sender in enumerate(senders):
        for column, receiver in enumerate(receivers):
            if not np.isnan(found[0, row, column]):
                expected = slow.edge_estimate(sender, receiver)
                np.testing.assert_allclose(found[:, row, column], expected, **CLOSE)
