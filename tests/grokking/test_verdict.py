"""The verdict on published and constructed nets, and that it stays open where figures disagree."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from tests.grokking.nets import circle, clock, pizza, published_net

KEYS = [2, 7, 11, 13]


@pytest.mark.parametrize(
    ("name", "verdict"), [("A", "pizza-like"), ("B", "clock-like"), ("β", "pizza-like")]
)
def test_published_nets_get_their_names(name, verdict):
    found = mn.grokking.clock_or_pizza(published_net(name))
    assert found.attrs["verdict"] == verdict
    assert float(found["accuracy"]) == 1
    assert found["symmetricity_low"] <= found["symmetricity"] <= found["symmetricity_high"]
    figures = f"symmetricity {float(found['symmetricity']):.3f} ("
    assert found.attrs["because"].startswith(figures)
    assert f"irrelevance {float(found['irrelevance'][0]):.3f} (" in found.attrs["because"]
    if name == "A":
        assert "(≥ 0.9)" in found.attrs["because"]
        assert "(≤ 0.45)" in found.attrs["because"]


def test_a_constructed_clock_and_a_constructed_pizza_get_their_names():
    """Several circles of different sizes, so that the pizza is right where one is blind."""
    found = mn.grokking.clock_or_pizza(clock(31, KEYS), n=500)
    assert found.attrs["verdict"] == "clock-like"
    # Mean over the circles' gradients of length 1: the mean cosine of the turns.
    turns = [np.cos(2 * np.pi * k * (found["a"] - found["b"]) / 31) for k in KEYS]
    np.testing.assert_allclose(found["cosine"], np.mean(turns, axis=0), atol=1e-12)
    assert float(found["irrelevance"].sel(form="correct")) == pytest.approx(1)
    found = mn.grokking.clock_or_pizza(pizza(31, KEYS, [1.0, 0.9, 0.8, 0.7]), n=500)
    assert found.attrs["verdict"] == "pizza-like"
    assert float(found["symmetricity"]) == pytest.approx(1)
    assert float(found["irrelevance"].sel(form="correct")) == pytest.approx(0, abs=1e-7)
    np.testing.assert_allclose(found["circularity"], 1)


def test_figures_that_disagree_leave_it_open():
    """A clock, and beside it a part that reads E_a + E_b alone."""
    net = clock(31, KEYS)

    def symmetric(a, b):
        return net.logits((a + b) / 2, (a + b) / 2) + 3 * net.logits(a, b)

    table = net.embeddings_a
    found = mn.grokking.clock_or_pizza(mn.grokking.net_from_function(symmetric, table), n=500)
    assert found.attrs["verdict"] == "unclear"
    assert "(pizza ≥ 0.9, clock ≤ 0.75)" in found.attrs["because"]


def test_a_net_that_cannot_add_is_neither():
    rng = np.random.default_rng(0)
    weights = torch.from_numpy(rng.normal(size=(8, 31)))
    net = mn.grokking.net_from_function(
        lambda a, b: (a + b).relu() @ weights, clock(31, KEYS).embeddings_a
    )
    found = mn.grokking.clock_or_pizza(net)
    assert found.attrs["verdict"] == "unclear"
    assert found.attrs["because"].startswith("right for ")


@pytest.mark.slow
def test_the_bundled_net_is_a_clock_with_its_provenance():
    model = mn.load("clock-113")
    found = mn.grokking.clock_or_pizza(model)
    assert found.attrs["verdict"] == "clock-like"
    assert found.attrs["model"] == "clock-113"
    assert found.attrs["triples"] == "published"
    # Its first layer is as a pizza's, which is why the caution is there.
    assert set(found["frequency"].values) == {53, 5, 21}
    assert (found["first_layer_cka"].sel(shape="disc") > 0.95).all()
    assert found["aligned"] > 2.5 * found["aligned_by_chance"]
    other = mn.grokking.gradient_symmetricity(mn.grokking.net_from_model(model), 2000, seed=0)
    low, high = (float(found[f"symmetricity_{end}"]) for end in ("low", "high"))
    assert low - 0.03 < float(other.mean()) < high + 0.03


def test_a_model_as_a_net_gives_the_models_logits_and_gradients():
    model = mn.load("clock-113")
    net = mn.grokking.net_from_model(model)
    (prompts,) = mn.tasks.modular_addition(113).prompts(model)
    rows = torch.arange(0, 113**2, 321)
    expected = model.logits(prompts.tokens[rows], torch.arange(113))
    a, b = (prompts.variables[name][rows] for name in ("a", "b"))
    with torch.no_grad():
        found = net.logits(net.embeddings_a[a], net.embeddings_b[b])
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)
    # One gradient with the wrapped net's own forward, its embedding replaced by a hook.
    embedded = model.wrapped.tok_embed(prompts.tokens[[700]]).detach().requires_grad_()
    with torch.enable_grad():
        handle = model.wrapped.tok_embed.register_forward_hook(lambda *_: embedded)
        model.wrapped(prompts.tokens[[700]])[0, -1, 5].backward()
        handle.remove()
        leaves = [net.embeddings_a[[6]].clone(), net.embeddings_b[[22]].clone()]
        for leaf in leaves:
            leaf.requires_grad_()
        net.logits(*leaves)[0, 5].backward()
    for place, leaf in enumerate(leaves):
        torch.testing.assert_close(leaf.grad, embedded.grad[:, place], atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_net_is_refused():
    with pytest.raises(MechnumError, match="a int is no net of embeddings"):
        mn.grokking.clock_or_pizza(3)


def test_a_net_that_reads_nothing_has_no_figures_and_says_why():
    net = mn.grokking.net_from_function(
        lambda a, b: (0 * (a + b)).sum(1, keepdim=True).expand(-1, 11), circle(11, [2])
    )
    found = mn.grokking.clock_or_pizza(net, n=20)
    assert found.attrs["verdict"] == "unclear"
    assert found.attrs["because"] == (
        "right for 9.1 % of the pairs, no symmetricity, since the gradients to the embeddings are "
        "zero, and no formula, since the logits do not depend on the strongest circle"
    )
    assert np.isnan(found["symmetricity"])
