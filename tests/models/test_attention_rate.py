"""Nets with an attention rate, against their formula written out with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.attention_rate import mixed_with_ones
from mechnum.models.native import NativeConfig, build_native, native_tensors
from mechnum.models.net_file import load_net
from mechnum.models.write_net import save_net

pytestmark = pytest.mark.tl3
RATES = [0.0, 0.3, 1.0]
TOKENS = torch.tensor([[1, 2, 5], [4, 4, 5], [1, 0, 3]])


def config(rate: float) -> NativeConfig:
    return NativeConfig(
        n_layers=2,
        n_heads=2,
        d_model=8,
        d_head=4,
        d_mlp=16,
        n_ctx=3,
        d_vocab=6,
        d_vocab_out=5,
        attention_rate=rate,
    )


def net_of(rate: float) -> torch.nn.Module:
    """Weights and biases that matter, in float64 and exact in float32, as files keep them."""
    net = build_native(config(rate), seed=0).double()
    generator = np.random.default_rng(1)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.from_numpy(generator.normal(size=parameter.shape)).float() / 2)
    return net.eval()


def by_hand(
    net: torch.nn.Module,
    rate: float,
    tokens: torch.Tensor = TOKENS,
    patched: dict[tuple[int, int], np.ndarray] | None = None,
) -> tuple[np.ndarray, dict[tuple[int, int], np.ndarray]]:
    """Logits [prompt, pos, class], and z of each (layer, head), some of them given."""
    t = {name: tensor.numpy() for name, tensor in native_tensors(net, config(rate)).items()}
    x = t["embed.W_E"][tokens.numpy()] + t["pos_embed.W_pos"]
    zs = {}
    for layer in range(2):
        block = {name.split(".", 2)[2]: w for name, w in t.items() if f"blocks.{layer}." in name}
        mid = x + block["attn.b_O"]
        for head in range(2):
            q, k, v = (x @ block[f"attn.W_{n}"][head] + block[f"attn.b_{n}"][head] for n in "QKV")
            seen = np.tril(np.ones((3, 3)))
            weights = np.exp(q @ k.transpose(0, 2, 1) / 2) * seen
            softmax = weights / weights.sum(-1, keepdims=True)
            zs[layer, head] = (rate * softmax + (1 - rate) * seen) @ v
            zs.update(patched or {})
            mid = mid + zs[layer, head] @ block["attn.W_O"][head]
        hidden = np.maximum(mid @ block["mlp.W_in"] + block["mlp.b_in"], 0)
        x = mid + hidden @ block["mlp.W_out"] + block["mlp.b_out"]
    return x @ t["unembed.W_U"], zs


def loaded(net: torch.nn.Module, rate: float, folder) -> mn.Model:
    save_net(net, config(rate), "modular_addition:5", folder)
    return mn.load(folder, dtype="float64")


def test_pattern_by_hand():
    softmax = torch.tensor([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.2, 0.3, 0.5]])
    expected = torch.tensor([[1.0, 0.0, 0.0], [0.625, 0.875, 0.0], [0.6, 0.65, 0.75]])
    torch.testing.assert_close(mixed_with_ones(softmax, 0.5), expected)
    # The last query alone, as in a run that goes on from known keys.
    torch.testing.assert_close(mixed_with_ones(softmax[-1:], 0.5), expected[-1:])
    assert mixed_with_ones(softmax, 1.0) is softmax


@pytest.mark.parametrize("rate", RATES)
def test_net_and_decoder_are_the_formula(rate, tmp_path):
    net = net_of(rate)
    expected, _ = by_hand(net, rate)
    with torch.no_grad():
        np.testing.assert_allclose(net(TOKENS), expected, atol=1e-12)
    model = loaded(net, rate, tmp_path)
    assert model.spec.attention_rate == rate
    np.testing.assert_allclose(model.decoder(TOKENS), expected, atol=1e-12)
    np.testing.assert_allclose(model.tl(TOKENS).detach(), expected, atol=1e-12)
    other, _ = by_hand(net, 0.5)
    assert np.abs(other - expected).max() > 0.1


@pytest.mark.parametrize("rate", RATES)
def test_patterns_of_runs_are_what_transformer_lens_shows(rate, tmp_path):
    model = loaded(net_of(rate), rate, tmp_path)
    _, cache = model.tl.run_with_cache(TOKENS)
    whole = model.run(TOKENS, keep=["pattern"])
    for layer in range(2):
        pattern = whole["pattern", layer]
        shown = cache[f"blocks.{layer}.attn.hook_pattern"]
        torch.testing.assert_close(pattern, shown, atol=1e-10, rtol=0)
        total = torch.arange(1, 4) * (1 - rate) + rate
        torch.testing.assert_close(pattern.sum(-1), total.double().expand(3, 2, 3))


@pytest.mark.parametrize("rate", RATES)
def test_effects_of_heads_by_hand(rate, tmp_path):
    """The prompts of a pair share their first token, whose keys and values are cached."""
    net = net_of(rate)
    clean, corrupt = torch.tensor([[1, 2, 5]]), torch.tensor([[1, 3, 5]])
    pairs = mn.tasks.pairs_from_tokens(clean, corrupt, torch.tensor([1]), torch.tensor([2]))
    found = mn.effects(loaded(net, rate, tmp_path), pairs, "heads")["total"].isel(pair=0)

    def difference(logits: np.ndarray) -> float:
        return logits[0, -1, 1] - logits[0, -1, 2]

    _, clean_zs = by_hand(net, rate, clean)
    logits, zs = by_hand(net, rate, corrupt)
    for at in zs:
        # At the end, where effects are measured.
        z = np.concatenate([zs[at][:, :-1], clean_zs[at][:, -1:]], axis=1)
        change = difference(by_hand(net, rate, corrupt, {at: z})[0]) - difference(logits)
        assert float(found[at]) == pytest.approx(change, abs=1e-10)
    assert float(abs(found).max()) > 0.1


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_rates_outside_0_to_1_are_refused(rate, tmp_path):
    save_net(net_of(1.0), config(1.0), "modular_addition:5", tmp_path)
    path = tmp_path / "net.toml"
    path.write_text(path.read_text().replace("attention_rate = 1.0", f"attention_rate = {rate}"))
    with pytest.raises(MechnumError, match=r"net\.attention_rate: Input should be .* correct the"):
        load_net(path)


def test_seed_decides_the_weights_whatever_the_rate():
    before = torch.get_rng_state()
    plain, ones = build_native(config(1.0), seed=3), build_native(config(0.0), seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    for first, second in zip(plain.parameters(), ones.parameters(), strict=True):
        assert torch.equal(first, second)
