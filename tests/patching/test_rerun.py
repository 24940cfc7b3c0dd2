"""The slow reference is right: its forward is that of transformers, its effects those of hooks.

It is what the patching engine is tested against, so nothing here uses the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.patching.edges import Edge, component_receivers, component_senders, possible
from mechnum.patching.nodes import Node, all_nodes
from mechnum.tasks import pairs_from_tokens
from tests import fixtures
from tests.patching import slow
from tests.patching.plain import Plain
from tests.patching.rerun import LOGITS, Rerun

pytestmark = pytest.mark.tl3

CLEAN = torch.tensor([[0, 10, 2, 20, 3], [0, 11, 2, 22, 3]])
CORRUPT = torch.tensor([[0, 12, 2, 31, 3], [0, 17, 2, 23, 3]])
ANSWERS, CORRUPT_ANSWERS = torch.tensor([30, 33]), torch.tensor([43, 40])
PAIRS = pairs_from_tokens(CLEAN, CORRUPT, ANSWERS, CORRUPT_ANSWERS)
SOME = ["gpt2", "gptj", "gpt_neox parallel", "gpt_neox sequential", "llama grouped"]


@contextmanager
def double_throughout() -> Iterator[None]:
    """Norms, scores and softmax of transformers in float64: it asks for float32 by this name."""
    single = torch.float32
    torch.float32 = torch.float64
    try:
        yield
    finally:
        torch.float32 = single


def logit_diff(logits: torch.Tensor) -> np.ndarray:
    rows = torch.arange(len(logits))
    return (logits[rows, ANSWERS] - logits[rows, CORRUPT_ANSWERS]).numpy()


def rerun(architecture: str, **changes: Any) -> Rerun:
    return Rerun(mn.wrap(fixtures.ARCHITECTURES[architecture]().double()), PAIRS, **changes)


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
def test_the_forward_is_that_of_transformers(architecture):
    model = fixtures.ARCHITECTURES[architecture]().double()
    tokens = fixtures.random_tokens(3, 11)
    with torch.no_grad(), double_throughout():
        expected = model(tokens).logits.numpy()
    found = Plain(mn.wrap(model)).run(tokens.numpy())
    assert np.abs(expected).max() > 0.5
    np.testing.assert_allclose(found.logits, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("architecture", SOME)
@pytest.mark.parametrize("kind", ["heads", "attn", "mlps"])
def test_total_effects_are_those_of_module_hooks(architecture, kind):
    model = fixtures.ARCHITECTURES[architecture]().double()
    reference = Rerun(mn.wrap(model), PAIRS)
    for layer, position in ((0, -4), (1, -1), (2, -1)):
        node = Node("head", layer, 3) if kind == "heads" else Node(kind.rstrip("s"), layer)
        with double_throughout(), torch.no_grad():
            before = logit_diff(model(CORRUPT).logits[:, -1])
            after = slow.patched_logits(model, kind, layer, 3, position % 5, CLEAN, CORRUPT)
        expected = logit_diff(after) - before
        np.testing.assert_allclose(reference.total(node, position), expected, atol=1e-10, rtol=0)
        assert np.abs(expected).max() > 1e-3


@pytest.mark.parametrize("architecture", SOME)
@pytest.mark.parametrize("kind", ["heads", "mlps"])
def test_direct_effects_are_those_of_a_hook_before_the_final_norm(architecture, kind):
    model = fixtures.ARCHITECTURES[architecture]().double()
    reference = Rerun(mn.wrap(model), PAIRS)
    with double_throughout():
        clean, corrupt = (
            slow.component_write(model, kind, 1, 2, tokens) for tokens in (CLEAN, CORRUPT)
        )
        after = slow.direct_logits(model, lambda _state: clean - corrupt, CORRUPT)
        with torch.no_grad():
            before = logit_diff(model(CORRUPT).logits[:, -1])
    node = Node("head", 1, 2) if kind == "heads" else Node("mlp", 1)
    np.testing.assert_allclose(
        reference.direct(node), logit_diff(after) - before, atol=1e-10, rtol=0
    )


def edge_by_hooks(model: Any, delta: torch.Tensor, receiver: Node) -> np.ndarray:
    """Metric with `delta` [pair, pos, d_model] added to what one receiver of layer 1 reads.

    The receiver's projection is computed again from the norm of the changed residual, and only its
    own columns are replaced.
    """
    if model.config.model_type == "gptj":
        block = model.transformer.h[1]
        attn, norms = block.attn, {"attn": block.ln_1, "mlp_in": block.ln_1}
    else:
        block = model.model.layers[1]
        attn = block.self_attn
        norms = {"attn": block.input_layernorm, "mlp_in": block.post_attention_layernorm}
    modules = {"q": attn.q_proj, "k": attn.k_proj, "v": attn.v_proj, "mlp_in": block.mlp}
    module, norm = modules[receiver.kind], norms.get(receiver.kind, norms["attn"])
    seen: dict[str, torch.Tensor] = {}

    def keep(_module: Any, given: tuple[torch.Tensor, ...]) -> None:
        seen["resid"] = given[0]

    def again(module: Any, _given: Any, output: torch.Tensor) -> torch.Tensor:
        changed = type(module).forward(module, type(norm).forward(norm, seen["resid"] + delta))
        columns = slice(None)
        if receiver.index is not None:
            columns = slice(8 * receiver.index, 8 * receiver.index + 8)
        output = output.clone()
        output[..., columns] = changed[..., columns]
        return output

    with (
        double_throughout(),
        torch.no_grad(),
        slow.removed(norm.register_forward_pre_hook(keep)),
        slow.removed(module.register_forward_hook(again)),
    ):
        return logit_diff(model(CORRUPT).logits[:, -1])


@pytest.mark.parametrize("architecture", ["gptj", "llama grouped"])
@pytest.mark.parametrize("receiver", ["q", "k", "v", "mlp_in"])
@pytest.mark.parametrize("position", [-2, None])
def test_edges_are_those_of_module_hooks(architecture, receiver, position):
    """d_head is 8, and Llama has two key-value groups."""
    model = fixtures.ARCHITECTURES[architecture]().double()
    reference = Rerun(mn.wrap(model), PAIRS)
    node = Node("mlp_in", 1) if receiver == "mlp_in" else Node(receiver, 1, 1)
    before = reference.score(reference.base)
    for sender in (Node("embed"), Node("head", 0, 3), Node("mlp", 0), Node("neuron", 0, 7)):
        delta = torch.from_numpy(reference.difference(sender, position))
        expected = edge_by_hooks(model, delta, node) - before
        found = reference.edge(sender, node, position)
        np.testing.assert_allclose(found, expected, atol=1e-10, rtol=0)
        if sender.kind != "neuron":
            assert np.abs(expected).max() > 1e-6


@pytest.mark.parametrize("architecture", SOME)
def test_writes_add_up_to_the_last_residual(architecture):
    """So the differences that edges carry are those of the terms of a sum."""
    reference = rerun(architecture)
    spec = reference.net.spec
    parts = [Node("embed"), *all_nodes("attn", spec), *all_nodes("neuron", spec)]
    for nodes in (component_senders(spec), parts):
        summed = sum(reference.difference(node) for node in nodes)
        last = reference.source.inputs[LOGITS] - reference.base.inputs[LOGITS]
        np.testing.assert_allclose(summed, last, atol=1e-12)


@pytest.mark.parametrize("architecture", ["gpt2", "gptj", "llama grouped"])
def test_variants_agree_where_they_must(architecture):
    """With everything else frozen a path is an edge, with nothing frozen a total effect."""
    reference = rerun(architecture)
    receivers = [Node("q", 2, 1), Node("k", 2, 1), Node("mlp_in", 2), Node("neuron_in", 2, 5)]
    for sender in (Node("embed"), Node("head", 0, 3), Node("mlp", 1), Node("v", 1, 0)):
        for receiver in (*receivers, LOGITS):
            np.testing.assert_allclose(
                reference.path(sender, receiver), reference.edge(sender, receiver), atol=1e-12
            )
        np.testing.assert_allclose(
            reference.path(sender, LOGITS, frozen=()), reference.total(sender), atol=1e-12
        )
        part = reference.path(sender, LOGITS, frozen=("mlps",))
        assert np.abs(part - reference.direct(sender)).max() > 1e-6


@pytest.mark.parametrize("architecture", ["gpt2", "gptj", "llama grouped"])
def test_patching_everything_gives_the_source_run(architecture):
    reference = rerun(architecture)
    spec, net = reference.net.spec, reference
    gap = net.score(net.source) - net.score(net.base)
    np.testing.assert_allclose(net.total(Node("embed")), gap, atol=1e-12)
    np.testing.assert_allclose(net.total(Node("resid_post", 2), -1), gap, atol=1e-12)
    np.testing.assert_allclose(net.direct(Node("resid_post", 2)), gap, atol=1e-12)
    senders, receivers = component_senders(spec), component_receivers(spec)
    allowed = possible(senders, receivers, spec)
    edges = [Edge(senders[i], receivers[j]) for i, j in np.argwhere(allowed)]
    np.testing.assert_allclose(net.kept(edges, receivers), net.score(net.source), atol=1e-12)
    np.testing.assert_allclose(net.kept([], receivers), net.score(net.base), atol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fixtures.gptj(n_layer=2, n_inner=8),
        lambda: fixtures.llama(num_hidden_layers=2, intermediate_size=8),
    ],
    ids=["parallel", "sequential"],
)
def test_impossible_edges_are_nan_and_no_other(make):
    reference = Rerun(mn.wrap(make()), PAIRS)
    spec = reference.net.spec
    senders = [
        *component_senders(spec),
        *(Node(kind, 1) for kind in ("attn", "resid_pre", "resid_post")),
        *(Node(kind, 0, 0) for kind in ("neuron", "q", "v", "pattern")),
    ]
    receivers = [*component_receivers(spec), Node("neuron_in", 0, 0)]
    found = np.array([[reference.edge(s, r)[0] for r in receivers] for s in senders])
    np.testing.assert_array_equal(~np.isnan(found), possible(senders, receivers, spec))


def test_frozen_direct_effects_add_up():
    """With the scale frozen the metric is linear in what is written."""
    reference = rerun("llama grouped")
    nodes = component_senders(reference.net.spec)
    summed = sum(reference.direct(node, norm="frozen") for node in nodes)
    at_once = reference.direct(frozenset(nodes), norm="frozen")
    np.testing.assert_allclose(summed, at_once, atol=1e-12)
    exact = sum(reference.direct(node) for node in nodes)
    assert np.abs(exact - at_once).max() > 1e-3


def test_noise_is_the_reverse_of_denoise():
    model = mn.wrap(fixtures.gptj().double())
    reverse = pairs_from_tokens(CORRUPT, CLEAN, ANSWERS, CORRUPT_ANSWERS)
    node = Node("head", 1, 0)
    np.testing.assert_array_equal(
        Rerun(model, PAIRS, direction="noise").total(node), Rerun(model, reverse).total(node)
    )


@pytest.mark.parametrize("metric", ["logit", "logprob", "prob"])
def test_metrics(metric):
    reference = rerun("gpt2", metric=metric)
    logits = torch.from_numpy(reference.base.logits[:, -1])
    values = {"logit": logits, "logprob": logits.log_softmax(-1), "prob": logits.softmax(-1)}
    expected = values[metric][torch.arange(2), ANSWERS].numpy()
    np.testing.assert_allclose(reference.score(reference.base), expected, atol=1e-12)
