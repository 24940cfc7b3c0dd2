"""Values of one's own, and who reads them, against plain module hooks on transformers models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.memory import memory_budget
from mechnum.patching import Given, effects, given_effects, joint_given_effects
from mechnum.patching.node_names import parse_node
from mechnum.patching.nodes import Node
from tests import fixtures
from tests.patching.slow import direct_logits
from tests.patching.test_effects import CORRUPT, given_pairs, logit_diff

ARCHITECTURES = ["gptj", "gpt_neox parallel", "gpt_neox sequential", "llama grouped"]
NODES = ["head 0.1", "head 1.3", "head 2.0", "mlp 0", "mlp 1", "attn 2", "neuron 1.5"]
POSITIONS = {"end": 4, "a": 1}
CLOSE = 1e-11


@cache
def double(architecture: str) -> Any:
    return fixtures.ARCHITECTURES[architecture]().double()


@cache
def wrapped(architecture: str) -> Any:
    return mn.wrap(double(architecture))


def drawn(model: Any, names: list[str], seed: int = 0) -> dict[str, np.ndarray]:
    """Values that no prompt gives."""
    rng = np.random.default_rng(seed)
    d_head = model.config.hidden_size // model.config.num_attention_heads
    widths = {"head": d_head, "neuron": 1}
    return {
        name: rng.normal(size=(3, widths.get(parse_node(name).kind, 32))) for name in names
    }  # fmt: skip


def hook(model: Any, node: Node, position: int, new: Tensor, seen: dict[str, Any]) -> Any:
    """A plain module hook that overwrites a node's value; `seen` gets what it writes, before."""
    o_proj, mlp = fixtures.submodules(model, node.layer or 0)
    if node.kind in ("attn", "mlp"):

        def after(module: Any, given: Any, output: Tensor) -> Tensor:
            output = output.clone()
            seen["difference"] = new - output[:, position]
            output[:, position] = new
            return output

        return (o_proj if node.kind == "attn" else mlp).register_forward_hook(after)
    names = {"gptj": "fc_out", "gpt_neox": "dense_4h_to_h", "llama": "down_proj"}
    down = getattr(mlp, names[model.config.model_type])
    module = o_proj if node.kind == "head" else down
    size = new.shape[1]
    columns = slice((node.index or 0) * size, ((node.index or 0) + 1) * size)

    def before(module: Any, given: tuple[Tensor, ...]) -> tuple[Tensor]:
        state = given[0].clone()
        change = torch.zeros_like(state[:, position])
        change[:, columns] = new - state[:, position, columns]
        seen["difference"] = change @ module.weight.T
        state[:, position, columns] = new
        return (state,)

    return module.register_forward_pre_hook(before)


def in_double() -> Any:
    """Transformers computes the norms of Llama, and in some releases the attention scores of GPT-J,
    in `torch.float32` whatever the model's precision: not here."""
    return mock.patch.object(torch, "float32", torch.float64)


def hooked(
    model: Any, values: Mapping[Node, Tensor], position: int, at_end: Callable[..., Tensor]
) -> np.ndarray:
    """The metric with nodes overwritten, and `at_end` added to the input of the final norm."""
    handles = [hook(model, node, position, new, {}) for node, new in values.items()]
    try:
        with in_double():
            return logit_diff(direct_logits(model, at_end, CORRUPT))
    finally:
        for handle in handles:
            handle.remove()


def write(model: Any, node: Node, new: Tensor) -> Tensor:
    """What the value at the last position writes, minus what the corrupt run's writes."""
    seen: dict[str, Any] = {}
    handle = hook(model, node, 4, new, seen)
    with torch.no_grad(), in_double():
        model(CORRUPT)
    handle.remove()
    return seen["difference"]


def nothing(state: Tensor) -> Tensor:
    return torch.zeros_like(state[:, -1])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("position", ["end", pytest.param("a", marks=pytest.mark.slow)])
def test_effects_of_single_nodes_are_those_of_module_hooks(architecture, position):
    model = double(architecture)
    values = drawn(model, NODES)
    found = given_effects(wrapped(architecture), given_pairs(), values, position=position)
    assert found["node"].values.tolist() == NODES
    base = hooked(model, {}, 4, nothing)
    np.testing.assert_allclose(found["corrupt_metric"], base, atol=CLOSE)
    largest = 0.0
    for name, array in values.items():
        node, new = parse_node(name), torch.from_numpy(array)
        total = hooked(model, {node: new}, POSITIONS[position], nothing) - base
        largest = max(largest, np.abs(total).max())
        own = found.sel(node=name)
        np.testing.assert_allclose(own["total"], total, atol=CLOSE)
        direct = np.zeros(3)
        if position == "end":
            difference = write(model, node, new)
            direct = hooked(model, {}, 4, lambda state, d=difference: d) - base
        np.testing.assert_allclose(own["direct"], direct, atol=CLOSE)
        np.testing.assert_allclose(own["indirect"], total - direct, atol=CLOSE)
    assert largest > 1e-2


MIXED = {
    "head 0.1": "indirect",
    "head 0.2": "direct",
    "head 1.3": "all",
    "head 1.0": "direct",
    "mlp 1": "indirect",
    "head 2.0": "direct",
    "neuron 2.5": "indirect",
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_set_of_mixed_routes_is_that_of_module_hooks(architecture):
    """Others read the given value along the route, and the corrupt run's off it, in one run."""
    model = double(architecture)
    values = drawn(model, list(MIXED), seed=1)
    sets = {"mixed": {name: Given(values[name], route) for name, route in MIXED.items()}}
    found = joint_given_effects(wrapped(architecture), given_pairs(), sets)["effect"].sel(
        set="mixed"
    )
    forward, offset = {}, torch.zeros(3, 32, dtype=torch.float64)
    for name, route in MIXED.items():
        node, new = parse_node(name), torch.from_numpy(values[name])
        difference = write(model, node, new)
        offset = offset + {"direct": 1, "all": 0, "indirect": -1}[route] * difference
        forward[node] = new if route != "direct" else corrupt_value(model, node, new.shape[1])
    base = hooked(model, {}, 4, nothing)
    expected = hooked(model, forward, 4, lambda state: offset) - base
    np.testing.assert_allclose(found, expected, atol=CLOSE)
    # Each route matters: with everything on "all" the effect is another one.
    plain = {"all": {name: Given(values[name]) for name in MIXED}}
    other = joint_given_effects(wrapped(architecture), given_pairs(), plain)["effect"].sel(
        set="all"
    )
    assert np.abs(other - expected).max() > 1e-3


def corrupt_value(model: Any, node: Node, size: int) -> Tensor:
    """A head's z in the corrupt run, at the last position."""
    o_proj, _ = fixtures.submodules(model, node.layer or 0)
    kept: list[Tensor] = []
    handle = o_proj.register_forward_pre_hook(lambda module, given: kept.append(given[0]))
    with torch.no_grad():
        model(CORRUPT)
    handle.remove()
    return kept[0][:, -1, (node.index or 0) * size : ((node.index or 0) + 1) * size]


@pytest.mark.parametrize("architecture", ["gptj", "llama grouped"])
def test_routes_of_one_node_are_its_effects(architecture):
    model = wrapped(architecture)
    values = drawn(model.wrapped, ["head 1.2", "mlp 0"])
    sets = {
        f"{name} {route}": {name: Given(array, route)}
        for name, array in values.items()
        for route in ("all", "direct")
    }
    joint = joint_given_effects(model, given_pairs(), sets)["effect"]
    single = given_effects(model, given_pairs(), values)
    for name in values:
        for route, estimand in (("all", "total"), ("direct", "direct")):
            np.testing.assert_allclose(
                joint.sel(set=f"{name} {route}"), single[estimand].sel(node=name), atol=1e-11
            )


def test_the_other_prompts_values_give_the_effects_of_patching():
    """Sets too, and in batches of one pair, whose rows are found again."""
    model, pairs = wrapped("llama grouped"), given_pairs()
    tokens = torch.cat([group.clean.tokens for group in pairs.groups])
    run = model.run(tokens, keep=("z", "mlp_out", "q", "k", "v"))
    both = frozenset({Node("head", 0, 1), Node("mlp", 1)})
    values = {
        Node("head", 0, 1): run["z", 0][:, -1, 1],
        Node("mlp", 1): run["mlp_out", 1][:, -1],
        Node("q", 1, 3): run["q", 1][:, -1, 3],
        Node("k", 2, 1): run["k", 2][:, -1, 1],
        Node("v", 2, 0): run["v", 2][:, -1, 0],
    }
    nodes = [*values, both]
    expected = effects(model, pairs, nodes)
    with memory_budget(1):
        found = given_effects(model, pairs, values, nodes)
    for name in ("total", "direct", "direct_frozen", "indirect", "clean_metric", "corrupt_metric"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-11)
    assert (found.attrs["values"], expected.attrs["values"]) == ("given", "other")


def test_the_base_runs_own_values_change_nothing():
    """Exactly nothing, for single nodes; to rounding for a set that is run."""
    model, pairs = mn.wrap(fixtures.gptj()), given_pairs()
    run = model.run(CORRUPT, keep=("z",))
    own = run["z", 1][:, -1, 2]
    found = given_effects(model, pairs, {"head 1.2": own})
    assert not found["total"].any()
    assert not found["direct"].any()
    sets = {route: {"head 1.2": Given(own, route)} for route in ("all", "indirect", "direct")}
    np.testing.assert_allclose(joint_given_effects(model, pairs, sets)["effect"], 0, atol=1e-5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "no values were given"),
        ({"head 9.9": np.zeros((3, 8))}, "does not exist"),
        ({"head 0.1": np.zeros((3, 9))}, r"\(3, 9\) do not fit head 0.1: give \(3, 8\)"),
        ({"head 0.1": np.zeros((2, 8))}, "do not fit"),
        ({"head 0.1": np.full((3, 8), np.nan)}, "not finite"),
        ({"head 0.1": [["x"] * 8] * 3}, "not numbers"),
        ({"kv 0.g0": np.zeros((3, 8))}, "give k and v"),
        ({"mlp_in 0": np.zeros((3, 32))}, "only reads"),
        ({"head 0.1": np.zeros((3, 8)), Node("head", 0, 1): np.zeros((3, 8))}, "there twice"),
        ({"mlp": np.zeros((3, 32))}, "needs a layer"),
    ],
)
def test_refusals(unchecked, values, message):
    with pytest.raises(MechnumError, match=message) as refused:
        given_effects(wrapped("gptj"), given_pairs(), values)
    assert "\n" not in str(refused.value)


def test_refusals_of_sets_and_positions(unchecked):
    model, pairs, z = wrapped("gptj"), given_pairs(), np.zeros((3, 8))
    for call, message in (
        (lambda: given_effects(model, pairs, {"head 0.1": z}, position="all"), "one position"),
        (lambda: given_effects(model, pairs, {"head 0.1": z}, ["head 0.2"]), "has no value"),
        (lambda: Given(z, "both"), "unknown route"),
        (lambda: joint_given_effects(model, pairs, {}), "no sets"),
        (lambda: joint_given_effects(model, pairs, {"x": {}}), "no values"),
        (
            lambda: joint_given_effects(model, pairs, {"x": {"q 0.1": Given(z, "direct")}}),
            "q 0.1 has no direct path",
        ),
        (
            lambda: joint_given_effects(
                model,
                pairs,
                {"x": {"head 0.1": Given(z), "attn 0": Given(np.zeros((3, 32)))}},
            ),
            "head 0.1 is a part of attn 0",
        ),
    ):
        with pytest.raises(MechnumError, match=message):
            call()
