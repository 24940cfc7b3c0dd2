"""Operand maps against plain module hooks and products written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.memory import memory_budget
from mechnum.neurons import operand_maps
from tests import fixtures
from tests.neurons.planted import P, Planted, planted, wave
from tests.tasks.small_tokenizers import digit_level, word_level

NEURONS = ["neuron 2.5", "neuron 0.63", "neuron 2.0"]


@pytest.fixture(scope="module")
def gated():
    hf = fixtures.llama()
    return hf, mn.wrap(hf, tokenizer=word_level(range(50)), name="tiny")


def test_maps_are_what_module_hooks_see(gated):
    hf, model = gated
    task = mn.tasks.addition(range(5, 11), template="{a}+{b}=")
    found = operand_maps(model, task, NEURONS)
    assert found["activation"].dims == ("node", "prompt")
    assert found["node"].values.tolist() == NEURONS
    assert found["layer"].values.tolist() == [2, 0, 2]
    assert found["neuron"].values.tolist() == [5, 63, 0]
    grid = [(a, b) for a in range(5, 11) for b in range(5, 11)]
    assert list(zip(found["a"].values, found["b"].values)) == grid
    np.testing.assert_array_equal(found["answer"], [a + b for a, b in grid])
    texts = [f"{a}+{b}=" for a, b in grid]
    tokens = model.tokenizer(texts, return_tensors="pt")["input_ids"]
    answers = model.tokenizer.convert_tokens_to_ids([str(a + b) for a, b in grid])
    gates, products, hooks = [], [], []
    for layer in hf.model.layers:
        gate, down = layer.mlp.gate_proj, layer.mlp.down_proj
        hooks.append(gate.register_forward_hook(lambda _m, _i, out: gates.append(out)))
        hooks.append(down.register_forward_pre_hook(lambda _m, i: products.append(i[0])))
    with torch.no_grad():
        hf(tokens)
    for hook in hooks:
        hook.remove()
    for row, (layer, neuron) in enumerate(((2, 5), (0, 63), (2, 0))):
        product = products[layer][:, -1, neuron]
        np.testing.assert_allclose(found["activation"][row], product, atol=1e-5)
        np.testing.assert_allclose(found["pre"][row], gates[layer][:, -1, neuron], atol=1e-5)
        writes = hf.model.layers[layer].mlp.down_proj.weight[:, neuron]
        logit = product * (hf.lm_head.weight[answers] @ writes)
        np.testing.assert_allclose(found["logit"][row], logit.detach(), atol=1e-5)


def test_one_prompt_at_a_time_is_the_same(gated):
    _, model = gated
    task = mn.tasks.addition(range(6), template="{a}+{b}=")
    whole = operand_maps(model, task, NEURONS)
    with memory_budget(1):
        single = operand_maps(model, task, NEURONS)
    np.testing.assert_allclose(single["activation"], whole["activation"], atol=1e-6)
    np.testing.assert_allclose(single["logit"], whole["logit"], atol=1e-6)


def test_prompts_of_several_lengths_come_in_the_tasks_order():
    hf = fixtures.gptj()
    hf.resize_token_embeddings(400)
    model = mn.wrap(fixtures.perturbed(hf), tokenizer=digit_level(), name="digits")
    task = mn.tasks.addition(range(8, 12), digits="last", template="{a}+{b}=")
    groups = task.prompts(model)
    assert len(groups) > 1
    found = operand_maps(model, task, "neuron 1.7")
    assert list(zip(found["a"].values, found["b"].values)) == [
        (a, b) for a in range(8, 12) for b in range(8, 12)
    ]
    for group in groups:
        run = model.run(group.tokens, keep=("mlp_hidden",))
        own = found["activation"][0, group.index.numpy()]
        np.testing.assert_allclose(own, run["mlp_hidden", 1][:, -1, 7], atol=1e-5)
    some = operand_maps(model, [groups[-1]], "neuron 1.7")
    np.testing.assert_allclose(
        some["activation"][0], found["activation"][0, groups[-1].index.numpy()], atol=1e-5
    )


def test_a_planted_neuron_is_its_wave_and_adds_it_to_the_answer():
    model = planted([Planted(wave(3, 2, 0.7), bias=3.0, writes=wave(4, 1.5, 1.0))])
    found = operand_maps(model, mn.tasks.modular_addition(P), "neuron 1.0")
    a, b = found["a"].values, found["b"].values
    activation = 3 + 2 * np.cos(2 * np.pi * 3 * (a + b) / P - 0.7)
    written = 1.5 * np.cos(2 * np.pi * 4 * (a + b) / P - 1.0)
    np.testing.assert_allclose(found["activation"][0], activation, atol=1e-5)
    np.testing.assert_allclose(found["logit"][0], activation * written, atol=1e-5)
    np.testing.assert_array_equal(found["answer"], (a + b) % P)


def test_what_has_no_map_is_refused(gated):
    _, model = gated
    task = mn.tasks.addition(range(3), template="{a}+{b}=")
    with pytest.raises(MechnumError, match="a layer has neurons 0 to 63"):
        operand_maps(model, task, "neuron 0.64")
    with pytest.raises(MechnumError, match="there are no prompts"):
        operand_maps(model, [], "neuron 0.6")
