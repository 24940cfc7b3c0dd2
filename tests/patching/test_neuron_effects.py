"""Direct effects of neurons in closed form are forwards with one neuron's write added at the end.

The reference reads activations by module hooks on the transformers model, and adds each neuron's
difference to the input of the final norm. In bfloat16 three things are told apart: the body's
states are rounded, and so are the weights; what follows the states is not.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import mechnum as mn
from mechnum.tasks import pairs_from_tokens
from tests import fixtures
from tests.patching import slow

NETS = {
    "gpt2": fixtures.gpt2,
    "gptj": fixtures.gptj,
    "gpt_neox parallel": fixtures.gpt_neox,
    "gpt_neox sequential": lambda: fixtures.gpt_neox(use_parallel_residual=False),
    "llama grouped": lambda: fixtures.llama(intermediate_size=128),
}
N_NEURONS = 200


def random_pairs(n: int, seed: int = 0):
    clean, corrupt = fixtures.random_tokens(2 * n, 5, seed).split(n)
    answers = torch.from_numpy(np.random.default_rng(seed).permutation(58)[: 2 * n] + 6)
    return clean, corrupt, *answers.split(n)


def activations(net, tokens) -> torch.Tensor:
    """Of every neuron at the last position, [layer, prompt, neuron]."""
    kept, handles = [], []
    for layer in range(net.config.num_hidden_layers):
        _, out, _ = fixtures.neuron_modules(net, layer)
        handles.append(
            out.register_forward_pre_hook(lambda module, given: kept.append(given[0][:, -1]))
        )
    with torch.no_grad():
        net(tokens)
    for handle in handles:
        handle.remove()
    return torch.stack(kept)


def patched(net, pairs, writes) -> np.ndarray:
    """Change of the logit difference of each pair by each write, [row, pair]."""
    _, corrupt, answers, others = pairs
    with torch.no_grad():
        before = net(corrupt).logits[:, -1]
    after = slow.direct_logits(
        net, lambda state: writes.flatten(0, 1).to(state), corrupt.repeat(len(writes), 1)
    ).unflatten(0, writes.shape[:2])
    rows = torch.arange(len(corrupt))
    change = after - before
    return (change[:, rows, answers] - change[:, rows, others]).double().numpy()


def direct(net, pairs) -> np.ndarray:
    model = mn.wrap(net)
    given = pairs_from_tokens(*pairs)
    return mn.effects(model, given, "neurons", estimands=("direct",))["direct"].values


def drawn(net, n: int = N_NEURONS) -> tuple[np.ndarray, np.ndarray]:
    """Layer and index of random neurons."""
    d_mlp = len(fixtures.neuron_modules(net, 0)[2])
    flat = np.random.default_rng(1).permutation(d_mlp * net.config.num_hidden_layers)[:n]
    return np.divmod(flat, d_mlp)


def writes_of(net, change: torch.Tensor, layers, neurons) -> torch.Tensor:
    """What each neuron's change writes, [row, pair, d_model]."""
    rows = [
        change[layer, :, neuron, None] * fixtures.neuron_modules(net, layer)[2][neuron].to(change)
        for layer, neuron in zip(layers, neurons, strict=True)
    ]
    return torch.stack(rows)


@pytest.mark.parametrize("architecture", NETS)
def test_direct_effects_of_random_neurons_are_patched_forwards(architecture):
    net, pairs = NETS[architecture](), random_pairs(4)
    layers, neurons = drawn(net)
    change = activations(net, pairs[0]) - activations(net, pairs[1])
    expected = patched(net, pairs, writes_of(net, change, layers, neurons))
    found = direct(net, pairs)[:, layers, neurons].T
    assert found.shape == (N_NEURONS, 4)
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
    assert np.abs(expected).max() > 1e-2


@pytest.mark.parametrize("architecture", NETS)
def test_nothing_after_a_bfloat16_body_is_rounded(architecture):
    """The body's own states, followed by a norm and logits in float64 on the same weights."""
    net, pairs = NETS[architecture]().bfloat16(), random_pairs(4)
    exact = copy.deepcopy(net).double()
    layers, neurons = drawn(net)
    model = mn.wrap(net)
    clean, corrupt = (model.run(tokens, ("mlp_hidden",), start=4) for tokens in pairs[:2])
    change = (clean.stacked("mlp_hidden").double() - corrupt.stacked("mlp_hidden"))[:, :, 0]
    last = corrupt.last[:, -1].double()
    writes = writes_of(net, change, layers, neurons)
    # The hook adds to the input of the final norm: with this it is the body's own last residual.
    seen = []
    slow.direct_logits(exact, lambda state: seen.append(state[:, -1]) or 0 * last, pairs[1])
    shift = (last - seen[0]).expand_as(writes)
    expected = patched(exact, pairs, shift + writes) - patched(exact, pairs, shift[:1])
    found = direct(net, pairs)[:, layers, neurons].T
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-4)
    assert np.abs(expected).max() > 1e-2


@pytest.mark.parametrize("architecture", fixtures.rest_slow(NETS, "gptj", "llama grouped"))
def test_bfloat16_bodies_rank_neurons_as_float64_does(architecture):
    net, pairs = NETS[architecture]().bfloat16(), random_pairs(20)
    exact = copy.deepcopy(net).double()
    change = activations(exact, pairs[0]) - activations(exact, pairs[1])
    layers, neurons = drawn(net, 10**6)
    expected = patched(exact, pairs, writes_of(exact, change, layers, neurons)).mean(1)
    found = direct(net, pairs)[:, layers, neurons].mean(0)
    assert spearmanr(found, expected).statistic >= 0.99
