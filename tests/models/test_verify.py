"""What is measured at load, and that nothing of the caller's is changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from mechnum.errors import MechnumError
from mechnum.models import verify as verify_module
from mechnum.models.decoder import Decoder
from mechnum.models.undisturbed import n_user_hooks, undisturbed
from mechnum.models.verify import probe_tokens, verify
from mechnum.models.weights import NormWeights
from mechnum.models.wrap import wrap
from tests import fixtures
from tests.models.unchanged import unchanged

pytestmark = pytest.mark.tl3

TOKENS = fixtures.random_tokens(2, 5)


def test_a_pattern_edit_is_right_on_gptj():
    """The decoder's own attention with a tripled pattern, against z swapped by a module hook."""
    model = fixtures.gptj()
    decoder = wrap(model).decoder
    block = model.transformer.h[1]
    with torch.no_grad():
        resid = decoder.block(0, decoder.embed(TOKENS))
        attn = decoder.attention(1, resid)
        out = decoder.attn_out(1, decoder.mix(3 * attn.pattern, attn.v))
        edited = decoder.block(2, resid + out + decoder.mlp_write(1, resid))
        logits = decoder.logits(edited[0])
        v = block.attn.v_proj(block.ln_1(resid[0])).view(2, 5, 4, 8)
        z = torch.einsum("bhqk,bkhd->bqhd", 3 * attn.pattern[0], v).reshape(2, 5, 32)
        handle = block.attn.out_proj.register_forward_pre_hook(lambda module, given: (z,))
        expected = model(TOKENS).logits
        handle.remove()
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=0)
    assert (logits - decoder(TOKENS)).abs().max() > 1e-2


def test_an_exception_in_a_hook_takes_the_hook_out():
    bridged = fixtures.bridge(fixtures.llama())

    def fail(value: Any, hook: Any) -> Any:
        raise RuntimeError("a hook that fails")

    with (
        unchanged(bridged, lambda: bridged(TOKENS).detach().clone()),
        pytest.raises(RuntimeError, match="a hook that fails"),
        undisturbed(bridged),
    ):
        bridged.run_with_hooks(TOKENS, fwd_hooks=[("blocks.2.hook_resid_pre", fail)])


def test_the_decoder_is_compared_without_the_users_hooks():
    bridged = fixtures.bridge(fixtures.llama())
    plain = wrap(bridged).verification
    bridged.blocks[1].hook_resid_post.add_hook(lambda value, hook: value * 0)
    assert wrap(bridged).verification == plain
    assert n_user_hooks(bridged) == 1


def hooked_transformers_model() -> Any:
    model = fixtures.llama()
    model.model.layers[1].mlp.register_forward_hook(lambda module, given, output: output * 0)
    return model


@pytest.mark.parametrize(
    "make", [hooked_transformers_model, lambda: hooked_bridge()], ids=["transformers", "bridge"]
)
def test_results_without_the_users_hooks_come_with_a_warning(make):
    hooked = make()
    with torch.no_grad():
        edited = (hooked(TOKENS) if hasattr(hooked, "hook_dict") else hooked(TOKENS).logits)[:, -1]
    wrapped, plain = wrap(hooked, name="m"), wrap(fixtures.llama())
    with pytest.warns(UserWarning, match="m has 1 hooks of yours"):
        logits = wrapped.logits(TOKENS)
    torch.testing.assert_close(logits, plain.logits(TOKENS))
    assert (logits - edited).abs().max() > 1e-2


def hooked_bridge() -> Any:
    bridged = fixtures.bridge(fixtures.llama())
    bridged.blocks[1].hook_resid_post.add_hook(lambda value, hook: value * 0)
    return bridged


def test_a_parameter_that_was_replaced_is_refused_and_one_written_to_is_not():
    model = fixtures.gptj()
    wrapped = wrap(model, name="m")
    before, fingerprint = wrapped.logits(TOKENS), wrapped.fingerprint
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
        torch.testing.assert_close(wrapped.logits(TOKENS), model(TOKENS).logits[:, -1])
    assert not torch.equal(wrapped.logits(TOKENS), before)
    assert wrapped.fingerprint != fingerprint
    layer = model.transformer.h[1].mlp.fc_out
    layer.weight = nn.Parameter(layer.weight * 5)
    with pytest.raises(MechnumError, match=r"fc_out\.weight of m was replaced after wrapping"):
        wrapped.logits(TOKENS)


def test_autocast_of_the_caller_changes_nothing():
    wrapped = wrap(fixtures.gpt_neox())
    plain, states = wrapped.logits(TOKENS), wrapped.run(TOKENS, keep=("z",))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(wrapped.logits(TOKENS), plain)
        assert torch.equal(wrapped.run(TOKENS, keep=("z",))["z", 1], states["z", 1])
        assert wrap(fixtures.gpt_neox()).verification == wrapped.verification


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
def test_wrapping_changes_nothing_of_a_transformers_model(architecture):
    model = fixtures.ARCHITECTURES[architecture]()
    modules = [(name, type(module)) for name, module in model.named_modules()]
    with torch.no_grad(), unchanged(model, lambda: model(TOKENS).logits.clone()):
        wrapped = wrap(model)
        wrapped.tl.enable_compatibility_mode(disable_warnings=True)
        wrapped.run(TOKENS, keep=("resid_post", "z"))
    assert [(name, type(module)) for name, module in model.named_modules()] == modules


def test_the_bridge_shares_the_weights():
    model = fixtures.gptj()
    wrapped = wrap(model)
    shared = {tensor.data_ptr() for tensor in model.parameters()}
    assert {tensor.data_ptr() for tensor in wrapped.tl.parameters()} <= shared
    assert wrapped.tl is wrapped.tl


@pytest.mark.parametrize("damage", ["norm", "bias", "head order"])
def test_a_decoder_that_is_not_the_model_is_refused(damage):
    model = fixtures.gptj()
    right = wrap(model).decoder
    block = right.weights.blocks[1]
    if damage == "norm":
        block = replace(block, ln1=NormWeights(None, None), ln2=NormWeights(None, None))
    elif damage == "bias":
        block = replace(block, mlp=replace(block.mlp, b_in=None))
    else:
        block = replace(block, attn=replace(block.attn, W_V=block.attn.W_V.flip(0)))
    blocks = (right.weights.blocks[0], block, right.weights.blocks[2])
    wrong = Decoder(right.spec, replace(right.weights, blocks=blocks), right.rotary)
    with pytest.raises(MechnumError, match="differ from the model's"):
        verify(wrong, model, lambda tokens: model(tokens).logits, "the model")


def test_weights_that_are_not_finite_are_refused():
    model = fixtures.llama()
    with torch.no_grad():
        model.lm_head.weight[3, 3] = float("nan")
    with pytest.raises(MechnumError, match="not finite"):
        wrap(model)


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
def test_hooks_of_the_bridge_are_the_states_of_the_run(architecture):
    """Block by block: what the names say, each write once, and their sum is the residual."""
    wrapped = wrap(fixtures.ARCHITECTURES[architecture]())
    names = ("resid_pre", "attn_out", "mlp_out", "resid_post", "z", "pattern")
    run = wrapped.run(TOKENS, keep=names)
    with torch.no_grad():
        _, cache = wrapped.tl.run_with_cache(TOKENS)
    for layer in range(3):
        for name in names:
            prefix = "attn." if name in ("z", "pattern") else ""
            hooked = cache[f"blocks.{layer}.{prefix}hook_{name}"]
            if name == "z":
                hooked = hooked.reshape(run["z", layer].shape)
            torch.testing.assert_close(run[name, layer], hooked, atol=1e-5, rtol=0)
        total = run["resid_pre", layer] + run["attn_out", layer] + run["mlp_out", layer]
        torch.testing.assert_close(total, run["resid_post", layer], atol=1e-5, rtol=0)


def test_head_ablation_is_zeroing_columns_before_the_output_projection():
    """Not coordinates of what attention writes, though with d_model = heads x d_head both fit."""
    model = fixtures.llama()
    decoder = wrap(model).decoder
    o_proj = model.model.layers[1].self_attn.o_proj
    with torch.no_grad():
        resid = decoder.block(0, decoder.embed(TOKENS))
        z = decoder.attention(1, resid).z[0]
        ablated = z.clone()
        ablated[:, :, 2] = 0
        columns = z.flatten(2).clone()
        columns[..., 16:24] = 0
        coordinates = o_proj(z.flatten(2))
        coordinates[..., 16:24] = 0
        torch.testing.assert_close(decoder.attn_out(1, ablated), o_proj(columns))
        assert (decoder.attn_out(1, ablated) - coordinates).abs().max() > 1e-2
        biased = fixtures.gpt2()
        nothing = torch.zeros(1, 5, 4, 8)
        bias = wrap(biased).decoder.attn_out(1, nothing)[0, 0]
    torch.testing.assert_close(bias, biased.transformer.h[1].attn.c_proj.bias.detach())


def test_probe_tokens_are_the_same_each_time():
    decoder = wrap(fixtures.gpt2()).decoder
    assert torch.equal(probe_tokens(decoder), probe_tokens(decoder))


@pytest.mark.parametrize("pad", [0, 1, 30, None])
def test_probe_tokens_hold_no_padding(pad):
    """Of 64 tokens seeded at random one is bound to be each pad token somewhere."""
    decoder = wrap(fixtures.gpt2(pad_token_id=pad)).decoder
    assert pad is None or not (probe_tokens(decoder) == pad).any()


def test_a_model_on_several_devices_is_refused():
    model = fixtures.llama()
    model.lm_head.to("meta")
    with pytest.raises(MechnumError, match=r"is not loaded|is spread over"):
        wrap(model)


def test_writes_that_do_not_add_up_are_refused(monkeypatch):
    monkeypatch.setattr(verify_module, "additivity", lambda decoder, tokens: 0.1)
    with pytest.raises(MechnumError, match="does not add up"):
        wrap(fixtures.gptj())
