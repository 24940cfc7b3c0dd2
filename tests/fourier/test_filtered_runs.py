"""Filtered forwards against plain module hooks on transformers models."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.fourier.filtered_runs import Filtering, answers
from mechnum.fourier.filters import random_removal
from mechnum.models.memory import memory_budget
from tests import fixtures

from .sums import sums

PROMPTS = sums(7, long=3)
NETS = {
    "gptj": fixtures.gptj,
    "gpt_neox": fixtures.gpt_neox,
    "gpt_neox sequential": lambda: fixtures.gpt_neox(use_parallel_residual=False),
    "llama": fixtures.llama,
    "gpt2": fixtures.gpt2,
}
REMOVAL = random_removal(32, 9, seed=3)


def hooked(net, modules, layers=(0, 1, 2), places=None):
    """Loss and answer of each prompt with hooks that take the directions out of the outputs."""
    Q = torch.from_numpy(REMOVAL.directions).float()
    at = {}

    def hook(module, inputs, output):
        out = output.clone()
        rows = torch.arange(len(out))
        places_ = slice(None) if at["places"] is None else None
        if places_ is not None:
            return out - out @ Q @ Q.T
        part = out[rows, at["places"]]
        out[rows, at["places"]] = part - part @ Q @ Q.T
        return out

    handles = []
    for layer in layers:
        attention, mlp = fixtures.submodules(net, layer)
        chosen = {"attn": [attention], "mlp": [mlp], "both": [attention, mlp]}[modules]
        handles += [module.register_forward_hook(hook) for module in chosen]
    loss, predicted = [], []
    with torch.no_grad():
        for group in PROMPTS:
            at["places"] = None if places is None else group.positions[places]
            logits = net(group.tokens).logits[:, -1].double()
            loss.append(-logits.log_softmax(-1)[torch.arange(len(group)), group.answers])
            predicted.append(logits.argmax(-1))
    for handle in handles:
        handle.remove()
    return torch.cat(loss), torch.cat(predicted)


def check(found, expected):
    np.testing.assert_allclose(found.loss, expected[0], atol=2e-5)
    assert torch.equal(found.predicted, expected[1])


@pytest.mark.parametrize("modules", ["both", "attn", "mlp"])
@pytest.mark.parametrize("name", NETS)
def test_filters_are_hooks_on_the_modules(name, modules):
    net = NETS[name]()
    model = mn.wrap(net)
    expected = hooked(net, modules)
    check(answers(model, PROMPTS, Filtering(REMOVAL, modules)), expected)
    plain = answers(model, PROMPTS)
    check(plain, hooked(net, modules, layers=()))
    assert (plain.loss - expected[0]).abs().max() > 1e-3


@pytest.mark.parametrize("position", ["a", "end"])
def test_filters_of_one_position_and_some_layers(position):
    net = fixtures.llama()
    found = answers(mn.wrap(net), PROMPTS, Filtering(REMOVAL, "both", (0, 2), position))
    check(found, hooked(net, "both", (0, 2), position))


def test_any_set_of_modules():
    net = fixtures.gpt_neox()
    model = mn.wrap(net)
    every = " + ".join(f"attn {layer} + mlp {layer}" for layer in range(3))
    check(answers(model, PROMPTS, Filtering(REMOVAL, every)), hooked(net, "both"))
    found = answers(model, PROMPTS, Filtering(REMOVAL, "attn 0 + attn 2", None, "end"))
    check(found, hooked(net, "attn", (0, 2), "end"))
    mixed = answers(model, PROMPTS, Filtering(REMOVAL, "attn 2 + mlp 0")).loss
    for other in ("attn 2", "mlp 0", every):
        assert (mixed - answers(model, PROMPTS, Filtering(REMOVAL, other)).loss).abs().max() > 1e-4


def test_an_index_is_the_position_of_that_index():
    model = mn.wrap(fixtures.gptj())
    by_name = answers(model, PROMPTS, Filtering(REMOVAL, "attn", None, "b"))
    by_index = answers(model, PROMPTS, Filtering(REMOVAL, "attn", None, -2))
    torch.testing.assert_close(by_name.loss, by_index.loss)


def test_batches_change_nothing():
    model = mn.wrap(fixtures.gpt_neox())
    whole = answers(model, PROMPTS, Filtering(REMOVAL))
    with memory_budget(1):
        check(answers(model, PROMPTS, Filtering(REMOVAL)), whole)


@pytest.mark.parametrize(
    ("filtering", "message"),
    [
        (Filtering(REMOVAL, "heads"), "heads? needs a layer|names no node"),
        (Filtering(REMOVAL, "head 0.1 + mlp 1"), "head 0.1 is no module to filter: use 'both'"),
        (Filtering(REMOVAL, "attn 3"), "the model has layers 0 to 2"),
        (Filtering(REMOVAL, "attn 1", (0,)), "names modules with their layers"),
        (Filtering(REMOVAL, "both", (3,)), "layer 3 does not exist: choose from 0 to 2"),
        (Filtering(REMOVAL, "both", ()), "no layer is filtered"),
        (Filtering(REMOVAL, "both", None, "c"), "no position 'c'"),
        (Filtering(random_removal(16, 2)), "width 16 does not fit"),
    ],
)
def test_bad_filters_are_refused(unchecked, filtering, message):
    with pytest.raises(MechnumError, match=message):
        answers(mn.wrap(fixtures.gptj()), PROMPTS, filtering)


def test_no_prompts_are_refused():
    with pytest.raises(MechnumError, match="no prompts"):
        answers(mn.wrap(fixtures.gptj()), ())
