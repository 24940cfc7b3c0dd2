"""The published nets, read through a `net.toml`, compute what their authors report."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import mechnum as mn
from mechnum.fourier.spectra import strongest_frequencies
from tests import published


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return mn.load(published.grokking_net(tmp_path_factory.mktemp("net")))


def test_it_adds_modulo_113(model):
    accuracy = mn.tasks.modular_addition(113).accuracy(model)
    assert accuracy.share == 1.0
    (prompts,) = mn.tasks.modular_addition(113).prompts(model)
    logits = model.logits(prompts.tokens, torch.arange(113)).double()
    # Published with the checkpoint.
    assert float(cross_entropy(logits, prompts.answers)) == pytest.approx(3.5e-7, abs=0.05e-7)


def test_its_attention_and_mlp_written_out(model):
    """By hand from the file: attention, ReLU, no norms."""
    from safetensors.torch import load_file

    t = load_file(published.checkpoint("grokking_mod113_wd1"))
    tokens = torch.tensor([[3, 100, 113], [50, 60, 113]])
    x = t["embed.W_E"].T[tokens] + t["pos_embed.W_pos"]
    q, k, v = (
        torch.einsum("hdm,bpm->bhpd", t[f"blocks.0.attn.W_{name}"], x) for name in ("Q", "K", "V")
    )
    scores = q @ k.transpose(-1, -2) / 32**0.5
    scores = scores.masked_fill(torch.ones(3, 3, dtype=torch.bool).triu(1), -torch.inf)
    z = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    mid = x + z @ t["blocks.0.attn.W_O"].T
    hidden = (mid @ t["blocks.0.mlp.W_in"].T + t["blocks.0.mlp.b_in"]).relu()
    out = mid + hidden @ t["blocks.0.mlp.W_out"].T + t["blocks.0.mlp.b_out"]
    torch.testing.assert_close(model.decoder(tokens), out @ t["unembed.W_U"], atol=1e-3, rtol=1e-5)


def test_the_strongest_frequencies_are_the_published_keys(model):
    embedding = model.decoder.weights.W_E[:113].numpy()
    assert set(strongest_frequencies(embedding, 5)) == {37, 6, 41, 23, 39}


def test_attention_moves_the_operands_and_the_mlp_writes_the_answer(model):
    pairs = mn.tasks.modular_addition(113).pairs(model, 30, seed=0)
    attn, mlps = (mn.effects(model, pairs, nodes) for nodes in ("attn", "mlps"))
    gap = attn["clean_metric"] - attn["corrupt_metric"]
    # One layer: patching attention restores everything but the residual of a constant token.
    np.testing.assert_allclose(attn["total"][:, 0], gap, atol=1e-3)
    np.testing.assert_allclose(mlps["total"], mlps["direct"], atol=1e-3)


@pytest.fixture(scope="module", params=published.PIZZA_NETS)
def pizza(request, tmp_path_factory):
    return request.param, mn.load(
        published.pizza_net(tmp_path_factory.mktemp("net"), request.param)
    )


def test_nets_of_zhong_et_al_add_modulo_59(pizza):
    accuracy = mn.tasks.modular_addition(59).accuracy(pizza[1])
    assert (accuracy.share, len(accuracy)) == (1.0, 59**2)


def test_their_attention_rate_written_out_without_a_mask(pizza):
    """All pairs by hand from the file, as the authors compute: no mask hides b from a."""
    from safetensors.torch import load_file

    name, model = pizza
    t = load_file(published.checkpoint(name))
    tokens = torch.cartesian_prod(torch.arange(59), torch.arange(59))
    x = t["embed.W_E"].T[tokens] + t["pos_embed.W_pos"]
    q, k, v = (
        torch.einsum("hdm,bpm->bhpd", t[f"blocks.0.attn.W_{name}"], x) for name in ("Q", "K", "V")
    )
    rate = published.PIZZA_NETS[name]
    pattern = rate * (q @ k.transpose(-1, -2) / 32**0.5).softmax(-1) + (1 - rate)
    mid = x + (pattern @ v).transpose(1, 2).flatten(2) @ t["blocks.0.attn.W_O"].T
    hidden = (mid @ t["blocks.0.mlp.W_in"].T + t["blocks.0.mlp.b_in"]).relu()
    out = mid + hidden @ t["blocks.0.mlp.W_out"].T + t["blocks.0.mlp.b_out"]
    expected = out[:, -1] @ t["unembed.W_U"]
    torch.testing.assert_close(model.logits(tokens), expected, atol=1e-3, rtol=1e-5)


def test_heads_of_the_pizza_net_add_a_and_b_up(tmp_path):
    model = mn.load(published.pizza_net(tmp_path, "clock_pizza_p99zdpze5l"))
    pattern = model.run(torch.tensor([[3, 5], [40, 2]]), keep=["pattern"])["pattern", 0]
    assert torch.equal(pattern[:, :, -1], torch.ones(2, 4, 2))
