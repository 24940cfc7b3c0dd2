"""Knock-outs of other neurons for each prompt, against plain hooks on transformers models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.memory import memory_budget
from mechnum.neurons.bag.ablated_runs import answered_right, random_like
from mechnum.neurons.edited_runs import mean_activations
from tests import fixtures
from tests.fourier.sums import sums

N = 24
PROMPTS = sums(N, long=9)
NETS = {
    "gptj": (fixtures.gptj, "fc_out"),
    "gpt2": (fixtures.gpt2, "c_proj"),
    "gpt_neox": (fixtures.gpt_neox, "dense_4h_to_h"),
    "llama": (fixtures.llama, "down_proj"),
}
WIDTH = 64


def out_projections(net, name):
    return [getattr(fixtures.submodules(net, layer)[1], name) for layer in range(3)]


def drawn(n_rows, seed=0, most=150):
    generator = np.random.default_rng(seed)
    sets = []
    for _ in range(n_rows):
        flat = generator.permutation(3 * WIDTH)[: generator.integers(0, most)]
        sets.append(np.column_stack([flat // WIDTH, flat % WIDTH]))
    return sets


def hooked(net, name, tokens, sites, values):
    """The token that one prompt is followed by, with its neurons overwritten."""

    def hook(layer):
        def overwrite(module, inputs):
            (hidden,) = inputs
            hidden = hidden.clone()
            for _, neuron in sites[sites[:, 0] == layer]:
                hidden[0, -1, neuron] = values[layer][neuron]
            return (hidden,)

        return overwrite

    modules = out_projections(net, name)
    handles = [m.register_forward_pre_hook(hook(layer)) for layer, m in enumerate(modules)]
    with torch.no_grad():
        logits = net(tokens[None]).logits[0, -1]
    for handle in handles:
        handle.remove()
    return int(logits.argmax())


def hidden_means(net, name):
    kept = {layer: [] for layer in range(3)}
    handles = [
        module.register_forward_pre_hook(
            lambda module, inputs, layer=layer: kept[layer].append(inputs[0][:, -1].double())
        )
        for layer, module in enumerate(out_projections(net, name))
    ]
    with torch.no_grad():
        for group in PROMPTS:
            net(group.tokens)
    for handle in handles:
        handle.remove()
    return torch.stack([torch.cat(states).mean(0) for states in kept.values()])


def asking_for(answers):
    """The prompts with other answers, given group after group."""
    parts = torch.tensor(answers).split([len(group) for group in PROMPTS])
    return [replace(group, answers=part) for group, part in zip(PROMPTS, parts, strict=True)]


@pytest.mark.parametrize(
    ("name", "value"),
    fixtures.rest_slow(
        [*((name, "zero") for name in NETS), ("llama", "mean"), ("gptj", "mean")],
        ("gptj", "zero"),
        ("llama", "mean"),
    ),
)
def test_each_prompt_loses_its_own_neurons(name, value):
    """The model is asked for what the hooked one says, prompt by prompt."""
    make, projection = NETS[name]
    net = make()
    model = mn.wrap(net)
    means = hidden_means(net, projection)
    values = means if value == "mean" else torch.zeros_like(means)
    given = means if value == "mean" else None
    tokens = [row for group in PROMPTS for row in group.tokens]
    sets = drawn(N)
    every = np.arange(N)
    said = [hooked(net, projection, tokens[row], sets[row], values) for row in every]
    plain = [hooked(net, projection, tokens[row], sets[row][:0], values) for row in every]
    # The neurons matter, and each prompt's own do.
    changed = np.not_equal(said, plain)
    assert changed.sum() >= 3
    asked = asking_for(said)
    assert answered_right(model, asked, every, sets, given).all()
    none = [sites[:0] for sites in sets]
    np.testing.assert_array_equal(answered_right(model, asked, every, none), ~changed)
    # Rows in any order, some of them again; batches of one.
    rows = np.random.default_rng(1).integers(0, N, size=30)
    other = sets[::-1]
    expected = [
        hooked(net, projection, tokens[row], other[place % N], values) == said[row]
        for place, row in enumerate(rows)
    ]
    assert 0 < sum(expected) < 30
    mixed = [other[place % N] for place in range(30)]
    with memory_budget(1):
        found = answered_right(model, asked, rows, mixed, given)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["gptj", "llama"])
def test_means_are_those_of_hooks(name):
    make, projection = NETS[name]
    net = make()
    for own, expected in zip(
        mean_activations(mn.wrap(net), PROMPTS), hidden_means(net, projection)
    ):
        np.testing.assert_allclose(own, expected, atol=1e-6)


def test_controls_are_as_many_others_of_the_same_layers():
    sites = np.array([[0, 3], [2, 5], [0, 7], [2, 1], [2, 9]])
    generator = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        drawn = random_like(sites, 12, generator)
        assert sorted(drawn[:, 0].tolist()) == [0, 0, 2, 2, 2]
        found = {tuple(site) for site in drawn.tolist()}
        assert len(found) == 5
        assert not found & {tuple(site) for site in sites.tolist()}
        seen |= found
    assert len(seen) == 10 + 9
    assert random_like(sites[:0], 12, generator).shape == (0, 2)
    with pytest.raises(MechnumError, match="3 of the 5 neurons of layer 2 are knocked out"):
        random_like(np.array([[2, 0], [2, 1], [2, 2]]), 5, generator)


def test_logits_that_are_not_numbers_are_refused():
    net = fixtures.gptj()
    model = mn.wrap(net)
    with torch.no_grad():
        net.lm_head.bias[3] = float("nan")
    with pytest.raises(MechnumError, match="logits that are not numbers"):
        answered_right(model, PROMPTS, np.array([0]), drawn(1))
