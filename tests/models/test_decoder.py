"""The canonical decoder gives the wrapped model's logits, for every architecture and processing."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from mechnum.errors import MechnumError
from mechnum.models.decoder import Decoder
from mechnum.models.rotary import rotate
from mechnum.models.spec import spec_from_hf
from mechnum.models.verify import additivity, verify
from mechnum.models.wrap import wrap
from tests import fixtures

pytestmark = pytest.mark.tl3


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
def test_logits_are_those_of_transformers(architecture):
    model = fixtures.ARCHITECTURES[architecture]()
    tokens = fixtures.random_tokens(3, 40)
    with torch.no_grad():
        expected = model(tokens).logits
        difference = (wrap(model).decoder(tokens) - expected).abs().max()
    assert expected.std() > 0.1
    assert difference < 1e-5


@pytest.mark.parametrize("architecture", ["gpt2", "gptj", "gpt_neox parallel", "llama grouped"])
@pytest.mark.parametrize("processing", [{}, {"no_processing": True}, {"fold_ln": True}])
def test_logits_are_those_of_a_bridge(architecture, processing):
    bridged = fixtures.bridge(fixtures.ARCHITECTURES[architecture](), **processing)
    tokens = fixtures.random_tokens(2, 9)
    with torch.no_grad():
        difference = (wrap(bridged).decoder(tokens) - bridged(tokens)).abs().max()
    assert difference < 1e-5


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
def test_float64_differs_by_rounding_only(architecture):
    model = fixtures.ARCHITECTURES[architecture]().double()
    wrapped = wrap(model)
    # transformers itself rounds norms of Llama and all softmaxes to float32.
    assert wrapped.verification.logit_difference < 1e-5
    assert wrapped.verification.additivity < 1e-6


def test_bfloat16_body_keeps_float32_tail():
    model = fixtures.llama().bfloat16()
    wrapped = wrap(model)
    logits = wrapped.logits(fixtures.CLEAN)
    assert logits.dtype == torch.float32
    assert wrapped.decoder.dtype == torch.bfloat16
    exact = wrap(fixtures.llama()).logits(fixtures.CLEAN)
    assert (logits - exact).abs().max() < 0.1 * exact.std()


def test_weights_are_views_of_the_callers_tensors():
    model = fixtures.llama()
    wrapped = wrap(model)
    before = wrapped.logits(fixtures.CLEAN)
    with torch.no_grad():
        model.model.layers[1].self_attn.v_proj.weight.mul_(2)
    after = wrapped.logits(fixtures.CLEAN)
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, model(fixtures.CLEAN).logits[:, -1].detach())


def test_gptj_rotates_adjacent_pairs_by_hand():
    """Rotation, scores and softmax of layer 0 worked out without the decoder."""
    model = fixtures.gptj()
    wrapped = wrap(model)
    tokens = torch.tensor([[0, 10, 10, 10]])
    block = model.transformer.h[0]
    with torch.no_grad():
        x = block.ln_1(model.transformer.wte(tokens))[0]
        q = block.attn.q_proj(x).view(4, 4, 8)
        k = block.attn.k_proj(x).view(4, 4, 8)
    for tensor in (q, k):
        for position in range(4):
            for i in range(2):
                angle = position * 10000 ** (-2 * i / 4)
                first, second = tensor[position, :, 2 * i].clone(), tensor[position, :, 2 * i + 1]
                second = second.clone()
                cos, sin = math.cos(angle), math.sin(angle)
                tensor[position, :, 2 * i] = first * cos - second * sin
                tensor[position, :, 2 * i + 1] = second * cos + first * sin
    scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(8)
    scores = scores.masked_fill(torch.ones(4, 4, dtype=torch.bool).triu(1), -torch.inf)
    pattern = wrapped.run(tokens, keep=("pattern",))["pattern", 0][0]
    torch.testing.assert_close(pattern, scores.softmax(-1), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "make", [fixtures.gptj, lambda: fixtures.gpt_neox(rotary_pct=1.0), fixtures.llama]
)
def test_the_other_rotary_pairing_is_refused(make):
    model = make()
    right = wrap(model).decoder
    other = "half" if right.spec.rotary == "adjacent" else "adjacent"
    spec = replace(right.spec, rotary=other)
    wrong = Decoder(spec, right.weights, right.rotary)
    with pytest.raises(MechnumError, match="logits differ"):
        verify(wrong, model, lambda tokens: model(tokens).logits, "the model")


def test_rotation_leaves_the_rest_of_the_head():
    x = torch.randn(1, 3, 2, 8, generator=torch.Generator().manual_seed(0))
    cos, sin = torch.zeros(3, 2), torch.ones(3, 2)
    turned = rotate(x, cos, sin, "adjacent")
    torch.testing.assert_close(turned[..., 4:], x[..., 4:])
    torch.testing.assert_close(turned[..., :4:2], -x[..., 1:4:2])


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
def test_writes_add_up_to_the_last_residual(architecture):
    decoder = wrap(fixtures.ARCHITECTURES[architecture]()).decoder
    assert additivity(decoder, fixtures.random_tokens(2, 6)) < 1e-5


def test_parallel_flag_comes_from_the_configuration():
    assert spec_from_hf(fixtures.gpt_neox().config).parallel
    assert not spec_from_hf(fixtures.gpt_neox(use_parallel_residual=False).config).parallel


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
def test_every_row_of_a_batch_equals_its_solo_run(architecture):
    wrapped = wrap(fixtures.ARCHITECTURES[architecture]())
    tokens = fixtures.random_tokens(4, 7)
    together = wrapped.logits(tokens)
    alone = torch.cat([wrapped.logits(row[None]) for row in tokens])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("pad", "tokens"),
    [(1, [1, 1, 0, 10, 2, 20, 3]), (0, [0, 0, 0, 10, 2, 20, 3]), (1, [0, 10, 2, 20, 3, 1, 1])],
)
def test_padded_prompts_are_refused(pad, tokens):
    wrapped = wrap(fixtures.llama(pad_token_id=pad))
    with pytest.raises(MechnumError, match="padded with token"):
        wrapped.logits(torch.tensor([tokens]))
    wrapped.logits(torch.tensor([[0, 10, 2, 20, 3]]))


def test_tied_embeddings_stay_apart_after_folding():
    model = fixtures.llama(tie_word_embeddings=True)
    tokens = fixtures.random_tokens(2, 6)
    with torch.no_grad():
        expected = model(tokens).logits.log_softmax(-1)
    for processing in ({}, {"no_processing": True}, {"fold_ln": True}):
        wrapped = wrap(fixtures.bridge(model, **processing))
        with torch.no_grad():
            got = wrapped.decoder(tokens).log_softmax(-1)
        torch.testing.assert_close(got, expected, atol=2e-5, rtol=0)
        torch.testing.assert_close(
            wrapped.decoder.weights.W_E, model.model.embed_tokens.weight.detach()
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}},
        {"hidden_act": "tanh"},
    ],
)
def test_what_the_decoder_does_not_know_is_refused(changes):
    with pytest.raises(MechnumError, match="is not supported"):
        wrap(fixtures.llama(**changes))


def test_gemma_is_refused_by_name():
    with pytest.raises(MechnumError, match="gemma2"):
        wrap(fixtures.gemma2())
