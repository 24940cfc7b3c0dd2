from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPTJForCausalLM

from mechnum.models.adders import GPTJAdder, build_adder, load_adder, save_adder

TINY = GPTJAdder(n_numbers=19, n_layers=2, n_heads=2, d_model=16, rotary_dim=4, n_ctx=8)
PROMPTS = torch.tensor([[3, 19, 4, 20], [9, 19, 9, 20]])


def test_default_is_the_shape_of_the_bundled_adder():
    net = build_adder(GPTJAdder(), seed=0)
    assert isinstance(net, GPTJForCausalLM)
    assert 0.8e6 < sum(p.numel() for p in net.parameters()) < 0.9e6
    assert (net.config.n_layer, net.config.n_head, net.config.rotary_dim) == (4, 4, 16)
    assert net.lm_head.weight is not net.transformer.wte.weight


def test_token_ids():
    assert (TINY.plus, TINY.equals) == (19, 20)
    assert (GPTJAdder().plus, GPTJAdder().equals) == (199, 200)


def test_seed_decides_the_weights_and_global_generators_do_not():
    before = torch.get_rng_state()
    first = build_adder(TINY, seed=0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    same, other = build_adder(TINY, seed=0), build_adder(TINY, seed=1)
    for ours, again in zip(first.parameters(), same.parameters(), strict=True):
        assert torch.equal(ours, again)
    assert not torch.equal(
        first.transformer.h[0].mlp.fc_in.weight, other.transformer.h[0].mlp.fc_in.weight
    )


def test_number_vectors_are_put_into_the_numbers_rows_only():
    embed, unembed = torch.randn(2, 19, 16, generator=torch.Generator().manual_seed(0))
    net, random = build_adder(TINY, 0, embed, unembed), build_adder(TINY, 0)
    assert torch.equal(net.transformer.wte.weight[:19], embed)
    assert torch.equal(net.lm_head.weight[:19], unembed)
    assert torch.equal(net.transformer.wte.weight[19:], random.transformer.wte.weight[19:])
    assert torch.equal(net.lm_head.weight[19:], random.lm_head.weight[19:])
    assert torch.equal(net.transformer.h[1].ln_1.bias, random.transformer.h[1].ln_1.bias)


def test_there_is_no_dropout():
    net = build_adder(TINY, 0).train()
    with torch.no_grad():
        assert torch.equal(net(PROMPTS).logits, net(PROMPTS).logits)


@pytest.fixture
def saved(tmp_path):
    net = build_adder(TINY, 0)
    save_adder(net, TINY, tmp_path)
    return net, tmp_path


def test_saved_folder_is_half_precision_on_disk_and_single_in_memory(saved):
    net, folder = saved
    for loaded in (
        load_adder(folder),
        AutoModelForCausalLM.from_pretrained(folder, local_files_only=True),
    ):
        assert type(loaded) is GPTJForCausalLM
        for name, tensor in loaded.state_dict().items():
            assert tensor.dtype == torch.float32
            assert torch.equal(tensor, net.state_dict()[name].half().float()), name
        with torch.no_grad():
            assert torch.allclose(loaded(PROMPTS).logits, net(PROMPTS).logits, atol=1e-3)
        assert not loaded.training
    assert all(w.dtype == torch.float32 for w in net.state_dict().values())


def test_loading_leaves_the_global_generator_alone(saved):
    before = torch.get_rng_state()
    load_adder(saved[1])
    assert torch.equal(torch.get_rng_state(), before)


def test_saved_tokenizer_fits_the_model(saved):
    _, folder = saved
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    assert tokenizer(["3+4=", "9+9="], return_tensors="pt").input_ids.tolist() == PROMPTS.tolist()
    config = load_adder(folder).config
    assert config.vocab_size == len(tokenizer)
    assert config.eos_token_id == config.bos_token_id == tokenizer.eos_token_id


def test_config_is_compared_by_its_fields():
    assert replace(TINY, n_layers=3) != TINY
    assert replace(TINY) == TINY
