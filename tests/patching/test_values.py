"""Values from zero, means and other prompts, against the same values put in by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.models.run import Run
from mechnum.patching.effects import effects
from mechnum.patching.nodes import Node, all_nodes
from mechnum.patching.values import MeanOfStates
from mechnum.tasks import pairs_from_tokens
from tests import fixtures
from tests.patching.rerun import Rerun
from tests.patching.test_effects import ANSWERS, CLEAN, CORRUPT, CORRUPT_ANSWERS, given_pairs
from tests.patching.test_every_node import TABLES, wrapped

ARCHITECTURES = ["gptj", "gpt_neox sequential", "llama grouped"]


def replaced_by(slow, node, value, position):
    """Total effect with one node's value at a position overwritten by hand."""

    def put(values):
        values = values.copy()
        values[:, position] = value(values)[:, position]
        return values

    edited = slow.net.run(slow.base_tokens, values={node: put})
    return slow.score(edited) - slow.score(slow.base)


@pytest.mark.parametrize("architecture", fixtures.rest_slow(ARCHITECTURES, "gptj", "llama grouped"))
@pytest.mark.parametrize("table", ["heads", "attn", "mlps", "k", "v"])
@pytest.mark.parametrize("position", [-1, 1, slice(None)])
def test_zero_and_mean_ablations(architecture, table, position):
    model, pairs = wrapped(architecture), given_pairs()
    slow = Rerun(model, pairs, "noise")
    where = "all" if isinstance(position, slice) else position
    zero = effects(model, pairs, table, where, direction="noise", values="zero")["total"].values
    mean = effects(model, pairs, table, where, direction="noise", values="mean")["total"].values
    for node in all_nodes(TABLES[table], model.spec)[::3]:
        index = (slice(None), node.layer, node.index)[: zero.ndim]
        np.testing.assert_allclose(
            zero[index], replaced_by(slow, node, np.zeros_like, position), atol=1e-11
        )
        expected = replaced_by(slow, node, lambda v: v.mean(0, keepdims=True) + 0 * v, position)
        np.testing.assert_allclose(mean[index], expected, atol=1e-11)
    assert np.abs(zero).max() > 1e-3
    assert np.abs(mean).max() > 1e-4


@pytest.mark.parametrize("kind", ["head", "k"])
@pytest.mark.parametrize("over", ["position", "token", "prompt"])
def test_means_over_positions_tokens_and_prompts_of_two_lengths(over, kind):
    """Over [0, 10, 2, 20, 3] and a longer prompt, aligned at the end.

    The reference's keys have no position put in yet, as those have that are averaged.
    """
    model = wrapped("gptj")
    clean = [[0, 10, 2, 20, 3], [0, 10, 11, 2, 20, 3], [0, 9, 2, 14, 3]]
    corrupt = [[0, 12, 2, 31, 3], [0, 12, 11, 2, 31, 3], [0, 9, 2, 15, 3]]
    pairs = pairs_from_tokens(clean, corrupt, ANSWERS, CORRUPT_ANSWERS)
    table = {"head": "heads", "k": "k"}[kind]
    found = effects(model, pairs, table, "end", direction="noise", values="mean", mean_over=over)
    node = Node(kind, 1, 2)
    lone = [
        pairs_from_tokens([clean[row]], [corrupt[row]], ANSWERS[[row]], CORRUPT_ANSWERS[[row]])
        for row in range(3)
    ]
    states = [Rerun(model, one, "noise").base.values[node][0] for one in lone]
    mean = {
        "position": np.mean([state[-1] for state in states], axis=0),
        "token": np.concatenate(states).mean(0),
        "prompt": np.mean([state.mean(0) for state in states], axis=0),
    }[over]
    for row, one in enumerate(lone):
        expected = replaced_by(Rerun(model, one, "noise"), node, lambda v: mean + 0 * v, -1)
        np.testing.assert_allclose(found["total"][row, 1, 2], expected[0], atol=1e-11)


def a_run(rows):
    states = torch.tensor(rows, dtype=torch.float64).unsqueeze(-1)
    return Run(torch.zeros(states.shape[:2], dtype=torch.long), 0, {"mlp_out": [states]}, states)


def test_a_mean_counts_each_token_or_each_prompt_and_never_padding():
    """1, 2, 3 and 10, 20: 7.2 over tokens, 8.5 over prompts, by position 1, 6, 11.5."""
    expected = {"token": [7.2], "prompt": [8.5], "position": [1.0, 6.0, 11.5]}
    for over, means in expected.items():
        running = MeanOfStates(over)
        running.add(a_run([[1.0, 2.0, 3.0]]), ["mlp_out"], 1)
        running.add(a_run([[10.0, 20.0]]), ["mlp_out"], 1)
        found = running.means().states["mlp_out", 0].flatten().tolist()
        assert found == pytest.approx(means)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_resampled_values_are_those_of_another_pairs_prompt(architecture):
    model, pairs = wrapped(architecture), given_pairs()
    found = effects(model, pairs, "heads", direction="noise", values="resample", seed=3)
    again = effects(model, pairs, "heads", direction="noise", values="resample", seed=3)
    np.testing.assert_array_equal(found["total"], again["total"])
    # Of three pairs in a cycle each takes the next one's values, or each the one before.
    candidates = []
    for shift in (1, 2):
        order = np.roll(np.arange(3), shift)
        moved = pairs_from_tokens(CLEAN, CLEAN[order], ANSWERS, CORRUPT_ANSWERS)
        candidates.append(effects(model, moved, "heads", direction="noise")["total"])
    assert any(np.allclose(found["total"], one, atol=1e-11) for one in candidates)
    assert found.attrs["values"] == "resample"
    assert found.attrs["resample_seed"] == 3


def test_the_endpoints_stay_those_of_the_two_prompts():
    model, pairs = wrapped("llama grouped"), given_pairs()
    plain = effects(model, pairs, "heads")
    for values in ("zero", "mean", "resample"):
        found = effects(model, pairs, "heads", values=values)
        for side in ("clean_metric", "corrupt_metric"):
            np.testing.assert_allclose(found[side], plain[side], atol=1e-12)


def test_means_do_not_depend_on_the_batches():
    model, pairs = wrapped("llama grouped"), given_pairs()
    for position in ("end", "all", "each"):
        expected = effects(model, pairs, "mlps", position, values="mean")["total"]
        with mn.models.memory.memory_budget(1):
            found = effects(model, pairs, "mlps", position, values="mean")["total"]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_what_cannot_be_averaged_or_drawn_is_refused():
    model = wrapped("llama grouped")
    alone = pairs_from_tokens(CLEAN[[0]], CORRUPT[[0]], ANSWERS[[0]], CORRUPT_ANSWERS[[0]])
    with pytest.raises(mn.MechnumError, match="there is no other prompt to resample from"):
        effects(model, alone, "heads", values="resample")
    mixed = pairs_from_tokens(
        [[0, 10, 3], [0, 10, 11, 3]], [[0, 12, 3], [0, 12, 11, 3]], ANSWERS[:2], CORRUPT_ANSWERS[:2]
    )
    with pytest.raises(mn.MechnumError, match="attention patterns have a mean only"):
        effects(model, mixed, "pattern", values="mean")
