"""Under TransformerLens 3, the same weights as HookedTransformer give the same effects.

With `test_effects.py`, which holds for plain transformers models under every version, this shows
that a recipe gives the same numbers with TransformerLens 3 and 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.models.wrap import wrap
from tests import fixtures
from tests.patching.test_effects import given_pairs

tl = pytest.importorskip("transformer_lens")
if "HookedTransformer" not in vars(tl):
    pytest.skip("TransformerLens 4 has no HookedTransformer", allow_module_level=True)

pytestmark = pytest.mark.tl3
TOKENS = fixtures.random_tokens(2, 9)


def hooked(model: Any, **processing: bool) -> Any:
    """A HookedTransformer with the weights of a transformers model."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig
    from transformer_lens.pretrained.weight_conversions import (
        convert_gpt2_weights,
        convert_gptj_weights,
        convert_llama_weights,
        convert_neox_weights,
    )

    hf, spec = model.config, wrap(model).spec
    convert = {
        "gpt2": convert_gpt2_weights,
        "gptj": convert_gptj_weights,
        "gpt_neox": convert_neox_weights,
        "llama": convert_llama_weights,
    }[spec.family]
    config = HookedTransformerConfig(
        n_layers=spec.n_layers,
        d_model=spec.d_model,
        n_ctx=spec.n_ctx,
        d_head=spec.d_head,
        n_heads=spec.n_heads,
        d_mlp=spec.d_mlp,
        d_vocab=spec.d_vocab,
        act_fn=getattr(hf, "activation_function", None) or hf.hidden_act,
        eps=spec.norm_eps,
        normalization_type="LN" if spec.norm == "layer" else "RMS",
        final_rms=spec.norm == "rms",
        positional_embedding_type="rotary" if spec.rotary else "standard",
        rotary_dim=spec.rotary_dim or None,
        rotary_adjacent_pairs=spec.rotary == "adjacent",
        parallel_attn_mlp=spec.parallel,
        gated_mlp=spec.gated,
        n_key_value_heads=spec.n_kv_heads if spec.family == "llama" else None,
        original_architecture=type(model).__name__,
        device="cpu",
    )
    net = HookedTransformer(config)
    net.load_and_process_state_dict(
        convert(model, config),
        fold_ln=processing.get("fold", False),
        center_writing_weights=processing.get("fold", False) and spec.norm == "layer",
        center_unembed=processing.get("fold", False),
        fold_value_biases=processing.get("fold", False),
    )
    return net.eval()


ARCHITECTURES = [name for name in fixtures.ARCHITECTURES if "llama 3" not in name]
ARCHITECTURES.remove("llama biased, wide heads")  # TransformerLens 3 converts no such biases


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("fold", [False, True])
def test_logits_and_effects_agree(architecture, fold):
    model = fixtures.ARCHITECTURES[architecture]()
    net = hooked(model, fold=fold)
    plain, wrapped = wrap(model), wrap(net, name="hooked")
    assert wrapped.tl is net
    assert wrapped.verification.logit_difference < 1e-5
    with torch.no_grad():
        torch.testing.assert_close(
            wrapped.decoder(TOKENS).log_softmax(-1),
            model(TOKENS).logits.log_softmax(-1),
            atol=1e-4,
            rtol=0,
        )
    for nodes in ("heads", "mlps"):
        for position in ("end", "a"):
            one = mn.effects(plain, given_pairs(), nodes, position)
            other = mn.effects(wrapped, given_pairs(), nodes, position)
            np.testing.assert_allclose(one["total"], other["total"], atol=1e-4)
            np.testing.assert_allclose(one["direct"], other["direct"], atol=1e-4)


def test_hooks_of_the_user_stay():
    net = hooked(fixtures.llama())
    net.blocks[1].hook_resid_post.add_hook(lambda value, hook: value * 0.5)
    with torch.no_grad():
        before = net(TOKENS).clone()
        mn.effects(wrap(net), given_pairs(), "heads")
        assert torch.equal(net(TOKENS), before)


def test_the_bundled_adder_as_hooked_transformer():
    from transformers import AutoModelForCausalLM

    from mechnum.models.load import bundled

    folder = bundled()["adder-gptj"]
    loaded = mn.load("adder-gptj")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    pairs = mn.tasks.addition().pairs(loaded, 20, seed=1)
    for fold in (False, True):
        wrapped = wrap(hooked(model, fold=fold), loaded.tokenizer, "adder")
        for nodes in ("heads", "mlps"):
            one, other = (mn.effects(m, pairs, nodes) for m in (loaded, wrapped))
            # Effects of 10 to 50 logits: float32 has six digits of them.
            np.testing.assert_allclose(one["total"], other["total"], atol=1e-4, rtol=1e-5)


def test_native_nets():
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    config = HookedTransformerConfig(
        n_layers=1,
        d_model=16,
        n_ctx=3,
        d_head=4,
        n_heads=4,
        d_mlp=32,
        d_vocab=8,
        d_vocab_out=7,
        act_fn="relu",
        normalization_type=None,
        device="cpu",
        seed=0,
    )
    net = HookedTransformer(config)
    wrapped = wrap(net, name="native")
    tokens = torch.tensor([[0, 1, 7], [5, 3, 7]])
    torch.testing.assert_close(wrapped.decoder(tokens).detach(), net(tokens).detach())
