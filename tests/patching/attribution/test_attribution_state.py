"""Gradients are taken whatever the caller has set, and leave no trace; other precisions follow."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.patching.attribution import gradients
from mechnum.patching.attribution.attribution import attribute
from mechnum.patching.attribution.gradients import metric_gradient
from mechnum.patching.metrics import Metric
from tests import fixtures
from tests.patching.test_effects import ANSWERS, given_pairs

METHODS = ["gradient", "eap", "eap-ig"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("enabled", [True, False])
def test_gradients_are_taken_although_the_caller_turned_them_off(method, enabled):
    model, pairs = mn.wrap(fixtures.gptj()), given_pairs()
    expected = attribute(model, pairs, method, confirm=2)
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(enabled)
    try:
        found = attribute(model, pairs, method, confirm=2)
        assert torch.is_grad_enabled() is enabled
    finally:
        torch.set_grad_enabled(before)
    np.testing.assert_array_equal(found["estimate"], expected["estimate"])
    assert np.abs(found["estimate"]).max() > 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_gradients_are_taken_within_inference_mode_and_autocast(method):
    model, pairs = mn.wrap(fixtures.llama()), given_pairs()
    expected = attribute(model, pairs, method)["estimate"]
    with torch.inference_mode():
        found = attribute(model, pairs, method)["estimate"]
        assert torch.is_inference_mode_enabled()
        within = attribute(model, given_pairs(), method)["estimate"]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = attribute(model, pairs, method)["estimate"]
        assert torch.is_autocast_enabled("cpu")
    for one in (found, within, cast):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("enabled", [True, False])
def test_an_interruption_leaves_everything_as_it_was(interruption, enabled, monkeypatch):
    net = fixtures.gptj()
    before = {name: parameter.clone() for name, parameter in net.named_parameters()}
    model, pairs = mn.wrap(net), given_pairs()

    def interrupt(*_args: Any, **_kwargs: Any) -> None:
        assert torch.is_grad_enabled()
        raise interruption

    monkeypatch.setattr(gradients.torch.autograd, "grad", interrupt)
    with torch.set_grad_enabled(enabled):
        with pytest.raises(interruption):
            attribute(model, pairs, "gradient")
        assert torch.is_grad_enabled() is enabled
    for name, parameter in net.named_parameters():
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None


@pytest.mark.parametrize("method", METHODS)
def test_parameters_get_no_gradients_and_keep_their_flags(method):
    net = fixtures.llama()
    for index, parameter in enumerate(net.parameters()):
        parameter.requires_grad_(index % 2 == 0)
    kept = torch.ones_like(net.model.embed_tokens.weight)
    net.model.embed_tokens.weight.grad = kept
    flags = [parameter.requires_grad for parameter in net.parameters()]
    model, pairs = mn.wrap(net), given_pairs()
    attribute(model, pairs, method, confirm=2)
    assert [parameter.requires_grad for parameter in net.parameters()] == flags
    assert net.model.embed_tokens.weight.grad is kept
    assert torch.equal(kept, torch.ones_like(kept))
    others = [one for one in net.parameters() if one is not net.model.embed_tokens.weight]
    assert all(parameter.grad is None for parameter in others)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_repeats_do_not_grow_memory(method):
    model, pairs = mn.wrap(fixtures.gpt2()), given_pairs()

    def n_tensors() -> int:
        gc.collect()
        return sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects())

    given = (
        {} if method == "gradient" else {"senders": "embed, mlp 0", "receivers": "q 2.*, logits"}
    )
    for _ in range(2):
        attribute(model, pairs, method, ig_steps=2, **given)
    before = n_tensors()
    for _ in range(50):
        attribute(model, pairs, method, ig_steps=2, **given)
    assert n_tensors() <= before


def test_models_made_in_inference_mode_are_refused():
    with torch.inference_mode():
        model = mn.wrap(fixtures.gptj())
    if not model.decoder.weights.W_E.is_inference():
        pytest.skip("this transformers makes ordinary tensors there")
    with pytest.raises(mn.MechnumError, match="load it outside of that"):
        attribute(model, given_pairs(), "gradient")


@pytest.mark.parametrize("metric", ["logit_diff", "logit", "logprob", "prob"])
def test_the_metric_gradient_is_that_of_autograd(metric):
    model, (group,) = mn.wrap(fixtures.gptj().double()), given_pairs().groups
    own = Metric(model.decoder, metric, group.clean.answers, group.corrupt.answers)
    generator = torch.Generator().manual_seed(0)
    normed = torch.randn(2, 3, 32, dtype=torch.float64, generator=generator).requires_grad_()
    (expected,) = torch.autograd.grad(own(normed).sum(), normed)
    torch.testing.assert_close(metric_gradient(own, normed.detach()), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("method", METHODS)
def test_half_precision_follows_float32(dtype, method):
    """Against the same rounded weights, so that only the arithmetic differs."""
    rounded = fixtures.llama().to(dtype)
    expected = attribute(mn.wrap(rounded.float()), given_pairs(), method)["estimate"].values
    found = attribute(mn.wrap(fixtures.llama().to(dtype)), given_pairs(), method)
    found, exists = found["estimate"].values, ~np.isnan(expected)
    assert np.corrcoef(found[exists], expected[exists])[0, 1] > 0.99


def test_small_gradients_survive_float16():
    """A probability of about 1e-8 has gradients that float16 would round to nothing."""
    net = fixtures.gptj()
    with torch.no_grad():
        net.lm_head.bias[:] = 0
        net.lm_head.bias[ANSWERS] = -18
    expected = attribute(mn.wrap(net), given_pairs(), "gradient", metric="prob")["estimate"].values
    found = attribute(mn.wrap(net.half()), given_pairs(), "gradient", metric="prob")["estimate"]
    assert 0 < np.abs(expected).max() < 1e-6
    assert (found != 0).all()
    assert np.corrcoef(found.values.ravel(), expected.ravel())[0, 1] > 0.99


def test_dropout_is_off():
    net = fixtures.gptj(resid_pdrop=0.5, embd_pdrop=0.5, attn_pdrop=0.5)
    expected = attribute(mn.wrap(net), given_pairs(), "eap")["estimate"]
    net.train()
    np.testing.assert_array_equal(
        attribute(mn.wrap(net), given_pairs(), "eap")["estimate"], expected
    )
    assert net.training


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "eap-gi"}, "unknown method 'eap-gi': use one of gradient, eap, eap-ig"),
        ({"method": "eap", "nodes": "heads"}, "'eap' estimates edges, not nodes"),
        ({"method": "gradient", "senders": "heads"}, "nodes have no senders and receivers"),
        ({"nodes": "heads", "receivers": "q"}, "nodes have no senders and receivers"),
        ({"nodes": "heds"}, "unknown nodes 'heds'"),
        ({"nodes": []}, "no nodes were named"),
        ({"nodes": "head 0.9"}, "a layer has heads 0 to 3"),
        ({"nodes": "head 0.1 + mlp 0"}, r"head 0.1 \+ mlp 0 is a set"),
        ({"senders": "head 0.1 + mlp 0"}, r"head 0.1 \+ mlp 0 is a set"),
        ({"receivers": "q 2.1 + q 2.2"}, r"q 2.1 \+ q 2.2 is a set"),
        ({"senders": "head 2.0", "receivers": "q 1.0"}, "q 1.0 reads before any of the senders"),
        ({"senders": "logits"}, "logits writes nothing"),
        ({"receivers": "head 1.0"}, "head 1.0 has no input of its own"),
        ({"values": "mean"}, "so not for values='mean'"),
        ({"method": "gradient", "values": "noise"}, "unknown values 'noise'"),
        ({"ig_steps": 0}, "ig_steps=0 is no number of runs"),
        ({"ig_steps": 2.5}, "ig_steps=2.5 is no number of runs"),
        ({"confirm": -1}, "cannot confirm -1 estimates"),
        ({"direction": "both"}, "unknown direction"),
        ({"metric": "loss"}, "unknown metric 'loss'"),
        ({"position": "c"}, "no position 'c'"),
        ({"position": 7}, "position 7 is outside prompts of 5 tokens"),
    ],
)
def test_bad_requests_are_one_line(changes, message, unchecked):
    with pytest.raises(mn.MechnumError, match=message) as refused:
        attribute(mn.wrap(fixtures.gptj()), given_pairs(), **changes)
    assert "\n" not in str(refused.value)
