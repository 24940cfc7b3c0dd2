"""Stacked fits are those of the estimators one by one, on numbers that they never saw."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.helix import Helix
from mechnum.helix.clock.contents import VARIABLES, Fits, node_states, numbers_of_pairs
from mechnum.helix.clock.contents import stacked_predictions as stacked
from mechnum.helix.crossfit import parts_by_value
from mechnum.patching.nodes import Node, all_nodes
from mechnum.tasks import pairs_from_tokens, sample_prompts
from tests.helix.nets import P, tiny_model

HEADS = [Node("head", 2, 1), Node("head", 0, 3)]


@pytest.fixture(scope="module")
def model():
    return tiny_model()


@pytest.fixture(scope="module")
def task():
    return mn.tasks.parse(f"modular_addition:{P}")


@pytest.mark.parametrize("components", [5, 100])
def test_stacked_predictions_are_those_of_the_estimator(components):
    rng = np.random.default_rng(0)
    numbers, asked = rng.integers(0, 12, (80, 2)) * 1.0, rng.integers(0, 12, (9, 2)) * 1.0
    states = rng.normal(size=(3, 80, 8)) + np.cos(2 * np.pi * numbers[:, :1] / 12)
    helix = Helix((12, 4), components=components)
    parts = parts_by_value(numbers, asked, 3, seed=1)
    fits = [(numbers, asked), (numbers[:, :1], asked[:, :1]), (numbers[:, :0], asked[:, :0])]
    found = stacked(helix, states, fits, parts)
    for row, (own, to) in enumerate(fits[:2]):
        for node in range(3):
            for part in parts:
                fitted = clone(helix).fit(own[part.train], states[node][part.train])
                expected = fitted.predict(to[part.asked])
                np.testing.assert_allclose(found[row, node, part.asked], expected, atol=1e-9)
    for part in parts:
        mean = states[:, part.train].mean(1, keepdims=True)
        np.testing.assert_allclose(
            found[2][:, part.asked], np.repeat(mean, len(part.asked), 1), atol=1e-9
        )


def test_no_pair_is_predicted_from_its_own_numbers(model, task):
    """Prompts that share a, b or the answer with a pair may be anything: nothing changes."""
    pairs = task.pairs(model, 6, seed=1, correct_only=False)
    prompts = sample_prompts(task.prompts(model), n=200, seed=0)
    fits = Fits(prompts, Helix((P,), linear=False), folds=5)
    states = node_states(model, prompts, HEADS)
    numbers = np.column_stack([prompts[0].variables[name].numpy() for name in VARIABLES]) * 1.0
    asked = numbers_of_pairs(pairs, VARIABLES)
    parts = parts_by_value(numbers, asked, fits.folds, fits.seed)
    before = stacked(fits.helix, states, [(numbers, asked)], parts)[0]
    shares = (numbers[:, None] == asked[None]).any(2)
    for pair in range(6):
        changed = states.copy()
        changed[:, shares[:, pair]] = 1e6
        after = stacked(fits.helix, changed, [(numbers, asked)], parts)[0]
        np.testing.assert_allclose(after[:, pair], before[:, pair], atol=1e-9)
    found = fits.values(model, pairs, HEADS, ["a,b,a+b"])
    np.testing.assert_allclose(found["values"].sel(content="a,b,a+b"), before, atol=1e-9)


def test_values_are_in_the_order_of_the_pairs(model):
    clean = torch.tensor([[3, 5, P], [7, 1, P], [2, 2, P]])
    corrupt = torch.tensor([[4, 9, P], [6, 8, P], [1, 7, P]])
    answers = clean[:, :2].sum(1) % P
    pairs = pairs_from_tokens(
        clean, corrupt, answers, corrupt[:, :2].sum(1) % P, positions={"a": 0, "b": 1}
    ).select([2, 0])
    tokens = torch.cat([group.clean.tokens for group in pairs.groups])
    order = np.argsort(torch.cat([group.index for group in pairs.groups]).numpy())
    z = model.run(tokens, keep=("z",))
    mlp = model.run(tokens, keep=("mlp_out",))["mlp_out", 1][:, -1]
    true = node_states(model, [group.clean for group in pairs.groups], HEADS)[:, order]
    np.testing.assert_allclose(true[0], z["z", 2][order, -1, 1], atol=1e-6)
    np.testing.assert_allclose(true[1], z["z", 0][order, -1, 3], atol=1e-6)
    found = node_states(
        model, [group.clean for group in pairs.groups], all_nodes("mlp", model.spec)
    )
    np.testing.assert_allclose(found[1], mlp, atol=1e-6)


def test_shuffled_numbers_are_another_seeds_other_numbers(model, task):
    pairs = task.pairs(model, 4, seed=1, correct_only=False)
    prompts = sample_prompts(task.prompts(model), n=150, seed=0)
    found = [
        Fits(prompts, Helix((P,), linear=False), seed=seed)
        .values(model, pairs, HEADS, ["a+b"])["values"]
        .sel(content="permuted")
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 1e-3


def test_refusals(model, task):
    pairs = task.pairs(model, 4, seed=1, correct_only=False)
    prompts = sample_prompts(task.prompts(model), n=150, seed=0)
    fits = Fits(prompts, Helix((P,), linear=False))
    for nodes, contents, message in (
        (HEADS, ["a-b"], "unknown content 'a-b'"),
        ([], ["a+b"], "give nodes of one of the two"),
        ([*HEADS, Node("mlp", 0)], ["a+b"], "give nodes of one of the two"),
        ([Node("embed")], ["a+b"], "give nodes of one of the two"),
    ):
        with pytest.raises(MechnumError, match=message):
            fits.values(model, pairs, nodes, contents)
    few = Fits(sample_prompts(task.prompts(model), n=6), Helix((P, P / 2), linear=False))
    with pytest.raises(MechnumError) as refused:
        few.values(model, pairs, HEADS, ["a,b,a+b"])
    assert "\n" not in str(refused.value)
