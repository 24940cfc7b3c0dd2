from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPTJForCausalLM,
    GPTNeoXForCausalLM,
    LlamaForCausalLM,
)

import mechnum as mn
from mechnum.models.adders import (
    GPTJAdder,
    LlamaAdder,
    PythiaAdder,
    build_adder,
    load_adder,
    save_adder,
)

_SIZES = {"n_numbers": 19, "n_layers": 2, "n_heads": 4, "d_model": 32, "n_ctx": 8}
GPTJ = GPTJAdder(**_SIZES, rotary_dim=4)
CLASSES = {
    GPTJ: GPTJForCausalLM,
    PythiaAdder(**_SIZES, rotary_fraction=0.5): GPTNeoXForCausalLM,
    LlamaAdder(**_SIZES, n_kv_heads=2, d_mlp=40): LlamaForCausalLM,
}
PROMPTS = torch.tensor([[3, 19, 4, 20], [9, 19, 9, 20]])


@pytest.fixture(params=CLASSES, ids=lambda config: type(config).__name__)
def config(request):
    return request.param


def test_defaults_are_the_shapes_of_the_bundled_adders():
    gptj, pythia, llama = (build_adder(c(), seed=0) for c in (GPTJAdder, PythiaAdder, LlamaAdder))
    for net in (gptj, pythia, llama):
        assert 0.75e6 < sum(p.numel() for p in net.parameters()) < 0.9e6
        assert (net.config.num_hidden_layers, net.config.num_attention_heads) == (4, 4)
    assert gptj.config.rotary_dim == 16
    assert pythia.config.use_parallel_residual
    assert llama.config.num_key_value_heads == 2


def test_weights_are_those_of_the_class_itself(config):
    """What `transformers` draws when its class is called, right after the seed is set."""
    net = build_adder(config, seed=5)
    assert type(net) is CLASSES[config]
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        expected = CLASSES[config](config.for_transformers())
    for ours, theirs in zip(net.parameters(), expected.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_the_two_tables_are_separate(config):
    net = build_adder(config, seed=0)
    assert net.get_output_embeddings().weight is not net.get_input_embeddings().weight


def test_token_ids(config):
    assert (config.plus, config.equals) == (19, 20)
    assert (GPTJAdder().plus, GPTJAdder().equals) == (199, 200)


def test_seed_decides_the_weights_and_global_generators_do_not(config):
    before = torch.get_rng_state()
    first = build_adder(config, seed=0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    same, other = build_adder(config, seed=0), build_adder(config, seed=1)
    for ours, again in zip(first.parameters(), same.parameters(), strict=True):
        assert torch.equal(ours, again)
    tables = [net.get_input_embeddings().weight for net in (first, other)]
    assert not torch.equal(*tables)


def test_number_vectors_are_put_into_the_numbers_rows_only(config):
    embed, unembed = torch.randn(2, 19, 32, generator=torch.Generator().manual_seed(0))
    net, random = build_adder(config, 0, embed, unembed), build_adder(config, 0)
    given = {
        id(net.get_input_embeddings().weight): embed,
        id(net.get_output_embeddings().weight): unembed,
    }
    for ours, theirs in zip(net.parameters(), random.parameters(), strict=True):
        if id(ours) in given:
            assert torch.equal(ours[:19], given[id(ours)])
            assert torch.equal(ours[19:], theirs[19:])
        else:
            assert torch.equal(ours, theirs)


def test_there_is_no_dropout(config):
    net = build_adder(config, 0).train()
    with torch.no_grad():
        assert torch.equal(net(PROMPTS).logits, net(PROMPTS).logits)


@pytest.fixture
def saved(config, tmp_path):
    net = build_adder(config, 0)
    save_adder(net, config, tmp_path)
    return net, tmp_path


def test_saved_folder_is_half_precision_on_disk_and_single_in_memory(saved):
    net, folder = saved
    for loaded in (
        load_adder(folder),
        AutoModelForCausalLM.from_pretrained(folder, local_files_only=True),
    ):
        assert type(loaded) is type(net)
        for name, tensor in loaded.state_dict().items():
            assert tensor.dtype == torch.float32
            assert torch.equal(tensor, net.state_dict()[name].half().float()), name
        with torch.no_grad():
            assert torch.allclose(loaded(PROMPTS).logits, net(PROMPTS).logits, atol=1e-3)
        assert not loaded.training
    assert all(w.dtype == torch.float32 for w in net.state_dict().values())


def test_mechnum_loads_the_architecture_that_was_saved(saved, config):
    _, folder = saved
    model = mn.load(folder)
    spec = model.spec
    said = (spec.family, spec.parallel, spec.gated, spec.n_kv_heads, spec.norm, spec.rotary_dim)
    assert (
        said
        == {
            "GPTJAdder": ("gptj", True, False, 4, "layer", 4),
            "PythiaAdder": ("gpt_neox", True, False, 4, "layer", 4),
            "LlamaAdder": ("llama", False, True, 2, "rms", 8),
        }[type(config).__name__]
    )
    with torch.no_grad():
        expected = load_adder(folder)(PROMPTS).logits
    torch.testing.assert_close(model.decoder(PROMPTS), expected, atol=1e-5, rtol=1e-4)


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


def test_config_is_compared_by_its_fields(config):
    assert replace(config, n_layers=3) != config
    assert replace(config) == config
