"""Runs keep what was asked for, as tensors of their own."""

from __future__ import annotations

import pytest
import torch

from mechnum.errors import MechnumError
from mechnum.models.run import Run, run
from mechnum.models.wrap import wrap
from tests import fixtures

TOKENS = fixtures.random_tokens(2, 5)


def test_states_share_no_storage():
    run = wrap(fixtures.llama()).run(TOKENS, keep=("resid_pre", "resid_post", "k", "v", "z"))
    tensors = [tensor for states in run.states.values() for tensor in states] + [run.last]
    pointers = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    assert len(set(pointers)) == len(pointers)


def test_a_run_from_a_position_on_is_the_end_of_a_whole_run():
    model = wrap(fixtures.gpt_neox())
    names = ("resid_pre", "resid_post", "z", "pattern", "k", "v")
    whole, part = model.run(TOKENS, names), model.run(TOKENS, names, start=3)
    for layer in range(3):
        torch.testing.assert_close(part["z", layer], whole["z", layer][:, 3:])
        torch.testing.assert_close(part["pattern", layer], whole["pattern", layer][:, :, 3:])
        torch.testing.assert_close(part["k", layer], whole["k", layer])
    torch.testing.assert_close(part.last, whole.last[:, 3:])
    assert part.past(0).k.shape[1] == 3
    assert whole.past(0) is None


ALL_STATES = (
    "resid_pre",
    "q",
    "k",
    "v",
    "pattern",
    "z",
    "attn_out",
    "mlp_pre",
    "mlp_hidden",
    "resid_post",
)


def assert_same_run(run, expected):
    for name in ALL_STATES:
        for layer in range(3):
            torch.testing.assert_close(run[name, layer], expected[name, layer], atol=1e-5, rtol=0)
    torch.testing.assert_close(run.last, expected.last, atol=1e-5, rtol=0)


@pytest.mark.parametrize("architecture", ["gpt2", "gptj", "gpt_neox parallel", "llama grouped"])
@pytest.mark.parametrize("start", [0, 2, 5])
def test_tokens_that_all_prompts_share_are_run_once_and_change_nothing(architecture, start):
    model = wrap(fixtures.ARCHITECTURES[architecture]())
    tokens = fixtures.random_tokens(3, 6)
    tokens[:, :4] = tokens[0, :4]
    together = model.run(tokens, ALL_STATES, start)
    for row in range(3):
        alone = model.run(tokens[row : row + 1], ALL_STATES, start)
        picked = {name: [s[row : row + 1] for s in together.states[name]] for name in ALL_STATES}
        assert_same_run(Run(alone.tokens, start, picked, together.last[row : row + 1]), alone)


@pytest.mark.parametrize("architecture", ["gpt2", "gptj", "gpt_neox parallel", "llama grouped"])
@pytest.mark.parametrize("start", [0, 3, 5])
def test_a_run_like_another_computes_only_what_differs(architecture, start):
    """Prompts that differ from position 3 on, from 5 on, and not at all."""
    model = wrap(fixtures.ARCHITECTURES[architecture]())
    tokens = fixtures.random_tokens(3, 6)
    base = model.run(tokens, ("k", "v"))
    others = tokens.clone()
    others[0, 3], others[1, 5] = 40, 41
    like = run(model.decoder, others, ALL_STATES, start, like=base)
    assert_same_run(like, model.run(others, ALL_STATES, start))


@pytest.mark.parametrize("start", [0, 3])
def test_edits_are_hooks_on_the_modules_and_are_kept(start):
    """Also where prompts share a prefix, which is then run once with the edit."""
    net = fixtures.gptj()
    tokens = TOKENS.clone()
    tokens[:, :3] = tokens[0, :3]

    def edit(name, layer, value, first):
        if (name, layer) != ("mlp_out", 1):
            return value
        places = torch.arange(first, first + value.shape[2])
        return value * (1 + places)[:, None]

    found = wrap(net).run(tokens, ("mlp_out", "resid_post"), start, edit)
    written = []

    def hook(module, inputs, output):
        written.append(output * torch.arange(1, 6)[:, None])
        return written[-1]

    handle = fixtures.submodules(net, 1)[1].register_forward_hook(hook)
    with torch.no_grad():
        states = net(tokens, output_hidden_states=True).hidden_states
    handle.remove()
    torch.testing.assert_close(found["mlp_out", 1], written[0][:, start:], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found["resid_post", 1], states[2][:, start:], atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(
    ("architecture", "module"),
    [("gptj", "fc_in"), ("gpt_neox parallel", "dense_h_to_4h"), ("llama grouped", "gate_proj")],
)
def test_pre_activations_are_what_the_activation_function_reads(architecture, module):
    """Against hooks on transformers' modules; an edit of them reaches what is written."""
    net = fixtures.ARCHITECTURES[architecture]()
    double = {("mlp_pre", 1)}
    found = wrap(net).run(
        TOKENS,
        ("mlp_pre", "mlp_out"),
        edit=lambda name, layer, value, _: 2 * value if (name, layer) in double else value,
    )
    mlp = fixtures.submodules(net, 1)[1]
    seen = {}

    def doubled(module, inputs, output):
        return seen.setdefault("pre", 2 * output)

    def written(module, inputs, output):
        seen["out"] = output

    handles = [
        mlp.get_submodule(module).register_forward_hook(doubled),
        mlp.register_forward_hook(written),
    ]
    with torch.no_grad():
        net(TOKENS)
    for handle in handles:
        handle.remove()
    torch.testing.assert_close(found["mlp_pre", 1], seen["pre"], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found["mlp_out", 1], seen["out"], atol=1e-5, rtol=1e-5)


def test_selected_logits_are_columns_of_all():
    model = wrap(fixtures.gptj())
    chosen = torch.tensor([6, 40, 7])
    every = model.logits(TOKENS)
    torch.testing.assert_close(model.logits(TOKENS, chosen), every[:, chosen])
    torch.testing.assert_close(every, model.decoder(TOKENS)[:, -1])


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([[64]], "token 64 is not in the vocabulary of 64"),
        ([[-1]], "token -1 is not in the vocabulary"),
        ([[7] * 65], "a prompt of 65 tokens does not fit the context of 64"),
        ([[]], "there are no tokens"),
    ],
)
def test_unreadable_tokens_are_refused(tokens, message):
    with pytest.raises(MechnumError, match=message):
        wrap(fixtures.gpt2()).logits(torch.tensor(tokens, dtype=torch.long))


def test_states_that_do_not_exist_are_refused_by_name(unchecked):
    model = wrap(fixtures.gptj())
    with pytest.raises(MechnumError, match="resid_mid does not exist in a parallel block"):
        model.run(TOKENS, keep=("resid_mid",))
    with pytest.raises(MechnumError, match="unknown state 'resid'"):
        model.run(TOKENS, keep=("resid",))
    with pytest.raises(MechnumError, match="state 'z' was not kept"):
        model.run(TOKENS, keep=("k",))["z", 0]


@pytest.mark.slow
def test_repeats_do_not_grow_memory():
    import gc

    model = wrap(fixtures.llama())

    def n_tensors() -> int:
        gc.collect()
        return sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects())

    model.run(TOKENS, keep=("z",))
    before = n_tensors()
    for _ in range(20):
        model.run(TOKENS, keep=("z",))
        model.logits(TOKENS)
    assert n_tensors() <= before
