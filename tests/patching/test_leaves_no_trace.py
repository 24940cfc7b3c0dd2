"""Sweeps leave nothing behind: not in memory, and not in the model, however they end."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.models.memory import memory_budget
from mechnum.patching import cumulative, effects, path_effects
from mechnum.progress import reported_to
from tests import fixtures
from tests.patching.test_effects import CLEAN, given_pairs

SWEEPS: dict[str, Callable[[Any, Any], Any]] = {
    "heads": lambda model, pairs: effects(model, pairs, "heads", "each")["total"],
    "neurons": lambda model, pairs: effects(model, pairs, "neuron 1.*", values="mean")["total"],
    "sets": lambda model, pairs: effects(model, pairs, ["head 0.1 + mlp 2"])["total"],
    "paths": lambda model, pairs: path_effects(model, pairs, "heads", "q")["effect"],
    "cumulative": lambda model, pairs: cumulative(model, pairs, "heads", ks=[1, 2])["effect"],
}


@pytest.mark.slow
@pytest.mark.parametrize("sweep", SWEEPS)
def test_repeats_keep_no_tensors(sweep):
    model, pairs = mn.wrap(fixtures.llama()), given_pairs()

    def n_tensors() -> int:
        gc.collect()
        return sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects())

    first = SWEEPS[sweep](model, pairs)
    before = n_tensors()
    for _ in range(50):
        last = SWEEPS[sweep](model, pairs)
    assert n_tensors() <= before
    np.testing.assert_array_equal(first, last)


@pytest.mark.filterwarnings("ignore:.*hooks of yours")
@pytest.mark.parametrize("ending", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("sweep", SWEEPS)
def test_an_interrupted_sweep_leaves_the_model_as_it_was(sweep, ending):
    net = fixtures.llama()
    calls = []
    net.model.layers[1].register_forward_hook(lambda *_: calls.append(1))
    net.train()
    hooks = [len(module._forward_hooks) for module in net.modules()]
    weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    logits = logits_of(net)
    model = mn.wrap(net)
    expected = SWEEPS[sweep](model, given_pairs())

    def interrupt(what: str, done: int, total: int) -> None:
        if done:
            raise ending

    # One pair at a time: the interrupt comes in the middle.
    with memory_budget(1), reported_to(interrupt), pytest.raises(ending):
        SWEEPS[sweep](model, given_pairs())
    np.testing.assert_array_equal(SWEEPS[sweep](model, given_pairs()), expected)
    assert [len(module._forward_hooks) for module in net.modules()] == hooks
    assert all(torch.equal(tensor, weights[name]) for name, tensor in net.state_dict().items())
    assert net.training
    assert torch.is_grad_enabled()
    calls.clear()
    assert torch.equal(logits_of(net), logits)
    assert calls


def logits_of(net: Any) -> torch.Tensor:
    with torch.no_grad():
        return net(CLEAN, use_cache=False).logits
