"""Path effects are those of reruns with one receiver's input edited, for every kind of edge."""

from __future__ import annotations

import numpy as np
import pytest

import mechnum as mn
from mechnum.models.memory import memory_budget
from mechnum.patching.edges import component_receivers, component_senders, possible
from mechnum.patching.effects import effects
from mechnum.patching.node_names import parse_node
from mechnum.patching.path.paths import path_effects
from tests.patching.rerun import Rerun
from tests.patching.test_effects import given_pairs
from tests.patching.test_every_node import ARCHITECTURES, POSITIONS, TWO_KINDS, wrapped


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", ["end", "all"])
@pytest.mark.parametrize("norm", ["exact", "frozen"])
def test_every_edge_between_components(architecture, position, norm):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Rerun(model, pairs), POSITIONS[position]
    found = path_effects(model, pairs, "components", "components", position=position, norm=norm)[
        "effect"
    ]
    senders, receivers = component_senders(model.spec), component_receivers(model.spec)
    exists = possible(senders, receivers, model.spec)
    assert (np.isnan(found.values) == ~exists).all()
    for row, sender in enumerate(senders):
        for column, receiver in enumerate(receivers):
            if exists[row, column] and (row + column) % 7 == 0:
                np.testing.assert_allclose(
                    found[:, row, column], slow.edge(sender, receiver, at, norm), atol=1e-11
                )
    assert np.nanmax(np.abs(found)) > 1e-3


OTHER_SENDERS = ["neuron 0.3", "neuron 1.20", "kv 0.g1", "v 0.g0", "attn 1", "resid_post 0",
                 "resid_pre 1", "head 0.0 + mlp 0", "head 0.1 + head 1.1"]  # fmt: skip
OTHER_RECEIVERS = ["neuron_in 1.5", "neuron_in 2.0", "q 2.1", "q 2.0 + q 2.3", "k 2.g0 + v 2.g1",
                   "q 1.0 + q 2.0", "mlp_in 1 + logits", "logits",
                   "q 1.1 + mlp_in 1 + v 2.g0 + neuron_in 2.4"]  # fmt: skip


def sets(names):
    return [frozenset(parse_node(part) for part in name.split("+")) for name in names]


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", ["end", "all"])
@pytest.mark.parametrize("norm", ["exact", "frozen"])
def test_neurons_groups_residuals_and_sets(architecture, position, norm):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Rerun(model, pairs), POSITIONS[position]
    found = path_effects(
        model, pairs, OTHER_SENDERS, OTHER_RECEIVERS, position=position, norm=norm
    )["effect"].values
    for row, sender in enumerate(sets(OTHER_SENDERS)):
        for column, receiver in list(enumerate(sets(OTHER_RECEIVERS)))[row % 3 :: 3]:
            expected = slow.edge(sender, receiver, at, norm)
            np.testing.assert_allclose(found[:, row, column], expected, atol=1e-11)
    assert np.nanmax(np.abs(found)) > 1e-3


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("frozen", [(), ("attn",), ("mlps",), ("attn", "mlps")])
@pytest.mark.parametrize("position", ["end", "all"])
def test_paths_with_components_frozen(architecture, frozen, position):
    model, pairs = wrapped(architecture), given_pairs()
    slow, at = Rerun(model, pairs), POSITIONS[position]
    senders = ["embed", "head 0.1", "head 1.3", "mlp 0", "neuron 0.3", "kv 0.g0"]
    receivers = ["q 2.0", "k 2.g1", "v 1.g0", "mlp_in 2", "neuron_in 2.7", "logits",
                 "q 1.0 + mlp_in 2", "v 2.g0 + q 2.3"]  # fmt: skip
    found = path_effects(
        model, pairs, senders, receivers, variant="path", frozen=frozen, position=position
    )["effect"].values
    held = ["heads" if kind == "attn" else kind for kind in frozen]
    for row, sender in enumerate(senders):
        for column, receiver in enumerate(sets(receivers)):
            if np.isnan(found[0, row, column]) or (row + column) % 3:
                continue
            expected = slow.path(parse_node(sender), receiver, held, at)
            np.testing.assert_allclose(found[:, row, column], expected, atol=1e-11)
    assert np.nanmax(np.abs(found)) > 1e-3


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_variants_are_four_different_numbers_and_agree_where_they_must(architecture):
    model, pairs = wrapped(architecture), given_pairs()
    edge = path_effects(model, pairs, "heads", "q")["effect"]
    frozen = path_effects(model, pairs, "heads", "q", variant="path")["effect"]
    np.testing.assert_allclose(edge, frozen, atol=1e-12)
    others = [
        path_effects(model, pairs, "heads", "q", variant="path", frozen=held)["effect"]
        for held in ((), ("attn",), ("mlps",))
    ]
    others.append(path_effects(model, pairs, "heads", "q", norm="frozen")["effect"])
    for one in others:
        assert np.nanmax(np.abs(one - edge)) > 1e-7
    direct = effects(model, pairs, "heads")
    for norm, name in (("exact", "direct"), ("frozen", "direct_frozen")):
        to_logits = path_effects(model, pairs, "heads", "logits", norm=norm, position="end")
        np.testing.assert_array_equal(
            to_logits["effect"][..., 0].values.reshape(3, 3, 4), direct[name]
        )


def test_each_position_is_every_position_by_itself():
    model, pairs = wrapped("gpt_neox sequential"), given_pairs()
    found = path_effects(model, pairs, "heads", "k", position="each")["effect"]
    for place in range(5):
        here = path_effects(model, pairs, "heads", "k", position=place)["effect"]
        np.testing.assert_allclose(found[:, place], here, atol=1e-12)
    assert (found[:, 0].values[~np.isnan(found[:, 0].values)] == 0).all()


@pytest.mark.slow
def test_the_memory_budget_changes_nothing():
    model, pairs = wrapped("llama grouped"), given_pairs()
    expected = path_effects(model, pairs, "components", "components")["effect"]
    for n_bytes in (1, 50_000, 1_000_000):
        with memory_budget(n_bytes):
            found = path_effects(model, pairs, "components", "components")["effect"]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"senders": "head 2.0", "receivers": "q 1.0"}, "q 1.0 reads before any of the senders"),
        ({"senders": "logits"}, "logits writes nothing"),
        ({"receivers": "head 1.0"}, "head 1.0 has no input of its own"),
        ({"variant": "edges"}, "unknown variant 'edges'"),
        ({"norm": "thawed"}, "unknown norm handling"),
        ({"variant": "path", "frozen": ("norms",)}, "cannot freeze"),
        ({"position": "c"}, "no position 'c'"),
        ({"receivers": "q 1.0, q 1.0"}, None),
    ],
)
def test_bad_requests_are_one_line(changes, message, unchecked):
    model = wrapped("gptj")
    if message is None:
        assert path_effects(model, given_pairs(), **changes)["receiver"].values.tolist() == [
            "q 1.0"
        ]
        return
    with pytest.raises(mn.MechnumError, match=message) as refused:
        path_effects(model, given_pairs(), **changes)
    assert "\n" not in str(refused.value)


SENDER_SETS = [
    "head 0.1 + mlp 1", "embed + head 1.0", "attn 1 + head 1.2", "k 1.g0 + mlp 0",
    "v 2.g1 + head 0.1 + resid_pre 1", "neuron 0.3 + neuron 2.5 + mlp 1",
    "q 2.1 + head 0.2 + pattern 1.1", "resid_post 0 + resid_pre 1", "mlp 2 + resid_post 2",
]  # fmt: skip


@pytest.mark.parametrize("architecture", TWO_KINDS)
@pytest.mark.parametrize("position", ["all", 1, "end"])
def test_sets_of_senders_hold_their_values(architecture, position):
    """With nothing frozen the path to the logits is the total effect of the set, and with all
    frozen its direct effect: no member's value is changed by those below it."""
    model, pairs = wrapped(architecture), given_pairs()
    joint = effects(model, pairs, SENDER_SETS, position)
    live = path_effects(
        model, pairs, SENDER_SETS, "logits", variant="path", frozen=[], position=position
    )["effect"][:, :, 0]
    np.testing.assert_allclose(live.values, joint["total"].values, atol=1e-11)
    held = path_effects(model, pairs, SENDER_SETS, "logits", position=position)["effect"][:, :, 0]
    np.testing.assert_allclose(held.values, joint["direct"].values, atol=1e-11)


@pytest.mark.parametrize("architecture", TWO_KINDS)
def test_a_residual_state_stands_for_all_below_it(architecture):
    model, pairs = wrapped(architecture), given_pairs()
    for text in ("resid_post 0 + resid_pre 1", "mlp 2 + resid_post 2", "head 2.0 + resid_post 2"):
        both = effects(model, pairs, [text, text.split(" + ")[1]], "all")
        for name in ("total", "direct", "direct_frozen", "indirect"):
            np.testing.assert_allclose(both[name][:, 0], both[name][:, 1], atol=1e-11)
