"""The lens against the caller's own modules and NumPy, and cases 14 and 17."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.fourier import fourier_attribution, fourier_lens, lens_coefficients, number_logits
from mechnum.fourier.readings import constant_logits
from mechnum.models.decoder import Decoder
from mechnum.models.memory import memory_budget
from tests import fixtures

from .sums import FIRST, NUMBERS, N, amplitudes, sums, waves

NETS = {
    "gptj": fixtures.gptj,
    "gpt_neox": fixtures.gpt_neox,
    "gpt_neox sequential": lambda: fixtures.gpt_neox(use_parallel_residual=False),
    "llama": fixtures.llama,
    "gpt2": fixtures.gpt2,
}
PROMPTS = sums(9, long=3)


def parts(net):
    """Blocks, final norm and unembedding of a transformers model."""
    return {
        "gptj": lambda: (net.transformer.h, net.transformer.ln_f, net.lm_head),
        "gpt2": lambda: (net.transformer.h, net.transformer.ln_f, net.lm_head),
        "gpt_neox": lambda: (net.gpt_neox.layers, net.gpt_neox.final_layer_norm, net.lm_head),
        "llama": lambda: (net.model.layers, net.model.norm, net.lm_head),
    }[net.config.model_type]()


def hooked_states(net, tokens, place=-1):
    """What blocks read and attention and MLPs write at one position, by plain module hooks."""
    blocks, norm, _ = parts(net)
    found, handles = {}, []

    def of(name):
        return lambda module, inputs, output: found.__setitem__(name, output[:, place].detach())

    for layer, block in enumerate(blocks):
        attention, mlp = fixtures.submodules(net, layer)
        handles += [
            attention.register_forward_hook(of(("attn", layer))),
            mlp.register_forward_hook(of(("mlp", layer))),
            block.register_forward_pre_hook(
                lambda module, inputs, kwargs, layer=layer: found.__setitem__(
                    ("resid", layer - 1),
                    (inputs[0] if inputs else kwargs["hidden_states"])[:, place].detach(),
                ),
                with_kwargs=True,
            ),
        ]
    last = norm.register_forward_pre_hook(
        lambda module, inputs: found.__setitem__(("resid", len(blocks) - 1), inputs[0][:, place])
    )
    with torch.no_grad():
        net(tokens)
    for handle in (*handles, last):
        handle.remove()
    return found


@pytest.mark.parametrize("name", NETS)
def test_lens_is_the_norm_and_unembedding_of_every_state(name):
    """Each state's own statistics, and the waves by a basis written out (case 14)."""
    net = NETS[name]()
    model = mn.wrap(net)
    found = fourier_lens(model, PROMPTS, NUMBERS, permutations=19)
    _, norm, unembed = parts(net)
    hooked = [hooked_states(net, group.tokens) for group in PROMPTS]
    for stage, layer in hooked[0]:
        states = torch.cat([one[stage, layer] for one in hooked])
        with torch.no_grad():
            u = unembed(norm(states))[:, FIRST : FIRST + N].double().numpy()
        own = found.sel(stage=stage, layer=layer)
        np.testing.assert_allclose(own["amplitude"], amplitudes(u).mean(axis=0), atol=2e-5)
        np.testing.assert_allclose(own["power"], (amplitudes(u) ** 2).mean(axis=0), atol=1e-4)
        spread = amplitudes(u).std(axis=0, ddof=1) / 3
        np.testing.assert_allclose(own["standard_error"], spread, atol=2e-5)
        assert float(own["dc"]) == pytest.approx(np.abs(u.sum(axis=1) / N**0.5).mean(), abs=1e-4)
    assert np.isnan(found["amplitude"].sel(stage="attn", layer=-1)).all()
    assert not found["outlier"].sel(stage="mlp", layer=-1).any()


def test_the_last_layer_gives_the_models_logits():
    net = fixtures.gptj()
    model = mn.wrap(net)
    with torch.no_grad():
        logits = torch.cat([net(group.tokens).logits[:, -1, NUMBERS] for group in PROMPTS]).numpy()
    np.testing.assert_allclose(number_logits(model, PROMPTS, NUMBERS), logits, atol=1e-5)
    rows, _ = waves(N)
    found = lens_coefficients(model, PROMPTS, NUMBERS, "resid", 2)
    np.testing.assert_allclose(found, logits @ rows.T, atol=2e-5)


@pytest.mark.parametrize("name", NETS)
def test_attributed_parts_add_up_to_the_logits(name):
    net = NETS[name]()
    model = mn.wrap(net)
    logits = number_logits(model, PROMPTS, NUMBERS)
    rows, _ = waves(N)
    states = [("resid", -1), *((stage, layer) for stage in ("attn", "mlp") for layer in range(3))]
    total = sum(lens_coefficients(model, PROMPTS, NUMBERS, *of, norm="frozen") for of in states)
    constant = constant_logits(model, NUMBERS, "frozen")
    np.testing.assert_allclose(total, (logits - constant) @ rows.T, atol=5e-5)
    _, norm, unembed = parts(net)
    shift = norm.bias if getattr(norm, "bias", None) is not None else torch.zeros(32)
    with torch.no_grad():
        np.testing.assert_allclose(constant, unembed(shift)[NUMBERS].numpy(), atol=1e-5)


def test_without_the_norm_parts_are_the_unembedding_of_the_writes():
    net = fixtures.gptj()
    model = mn.wrap(net)
    hooked = [hooked_states(net, group.tokens) for group in PROMPTS]
    rows, _ = waves(N)
    for stage, layer in (("resid", 1), ("attn", 0), ("mlp", 2)):
        states = torch.cat([one[stage, layer] for one in hooked])
        u = (states @ net.lm_head.weight[NUMBERS].T).detach().numpy()
        found = lens_coefficients(model, PROMPTS, NUMBERS, stage, layer, norm="none")
        np.testing.assert_allclose(found, u @ rows.T, atol=2e-5)
    table = fourier_attribution(model, PROMPTS, NUMBERS, "none", permutations=0)
    own = table["amplitude"].sel(stage="mlp", layer=2)
    np.testing.assert_allclose(own, amplitudes(u).mean(axis=0), atol=2e-5)
    bias = net.lm_head.bias[NUMBERS].detach().numpy()[None]
    np.testing.assert_allclose(table["constant"], amplitudes(bias)[0], atol=1e-6)


@pytest.mark.parametrize("name", ["gptj", "gpt_neox", "llama"])
def test_folding_and_centring_change_the_constant_alone(name):
    """Case 17: waves of the logits are the same whatever was done to the weights."""
    net = NETS[name]()
    raw = mn.wrap(net)
    folded = mn.wrap(fixtures.bridge(net, fold_ln=True, center_unembed=True))
    assert raw.decoder.weights.processing() != folded.decoder.weights.processing()
    for measure in (fourier_lens, fourier_attribution):
        one, other = (measure(m, PROMPTS, NUMBERS, permutations=19) for m in (raw, folded))
        for variable in ("amplitude", "share", "outlier"):
            np.testing.assert_allclose(one[variable], other[variable], atol=2e-5)
        assert float(np.abs(one["dc"] - other["dc"]).max()) > 1e-2
        assert one.attrs["processing"] != other.attrs["processing"]


def test_any_position_and_any_batches():
    net = fixtures.llama()
    model = mn.wrap(net)
    whole = fourier_lens(model, PROMPTS, NUMBERS, position="b", permutations=19)
    with memory_budget(1):
        single = fourier_lens(model, PROMPTS, NUMBERS, position="b", permutations=19)
    for variable in whole.data_vars:
        np.testing.assert_allclose(whole[variable], single[variable], atol=1e-5)
    by_index = fourier_lens(model, PROMPTS, NUMBERS, position=-2, permutations=0)
    np.testing.assert_allclose(by_index["amplitude"], whole["amplitude"], atol=1e-6)
    _, norm, unembed = parts(net)
    states = torch.cat([hooked_states(net, g.tokens, -2)["attn", 1] for g in PROMPTS])
    with torch.no_grad():
        u = unembed(norm(states))[:, NUMBERS].numpy()
    np.testing.assert_allclose(
        whole["amplitude"].sel(stage="attn", layer=1), amplitudes(u).mean(axis=0), atol=2e-5
    )


def test_clock_113_is_read_out_at_its_key_frequencies():
    from mechnum.fourier.spectra import key_frequencies

    model = mn.load("clock-113")
    task = mn.tasks.parse("modular_addition:113")
    prompts = mn.tasks.sample_prompts(task.prompts(model), 300)
    found = fourier_lens(model, prompts, torch.arange(113))
    last = found["outlier"].sel(stage="resid", layer=0)
    unembedding = model.decoder.weights.W_U.T[:113].numpy()
    assert set(last["frequency"].values[last.values]) == set(key_frequencies(unembedding))
    assert float(found["share"].sel(stage="resid", layer=0).where(last).sum()) > 0.95


def test_a_net_without_mlps_or_norms():
    """Attention and the embedding are then all of the logits, and no norm tells lenses apart."""
    whole = mn.load("clock-113")
    blocks = tuple(replace(block, mlp=None, ln2=None) for block in whole.decoder.weights.blocks)
    weights = replace(whole.decoder.weights, blocks=blocks)
    spec = replace(whole.spec, d_mlp=0)
    model = replace(whole, spec=spec, decoder=Decoder(spec, weights, None))
    prompts = mn.tasks.sample_prompts(mn.tasks.modular_addition(113).prompts(model), 40)
    numbers = torch.arange(113)
    found = fourier_lens(model, prompts, numbers, permutations=0)
    assert list(found["stage"].values) == ["resid", "attn"]
    parts = fourier_attribution(model, prompts, numbers, permutations=0)
    np.testing.assert_allclose(found["amplitude"], parts["amplitude"], atol=1e-5)
    states = [("resid", -1), ("attn", 0)]
    total = sum(lens_coefficients(model, prompts, numbers, *of, norm="frozen") for of in states)
    expected = number_logits(model, prompts, numbers) - constant_logits(model, numbers, "frozen")
    np.testing.assert_allclose(total, expected @ waves(113)[0].T, atol=1e-4)
    with pytest.raises(MechnumError, match="no MLPs"):
        lens_coefficients(model, prompts, numbers, "mlp", 0)


def test_gemma_is_refused_in_one_line():
    """Case 15: soft caps are not supported, and that is said when the model is loaded."""
    with pytest.raises(
        MechnumError, match="architecture 'gemma2' is not supported: use"
    ) as refusal:
        mn.wrap(fixtures.gemma2())
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prompts": ()}, "no prompts"),
        ({"numbers": torch.arange(2)}, "2 numbers have no waves"),
        ({"numbers": torch.tensor([6, 7, 7])}, "two numbers have the same token"),
        ({"numbers": torch.arange(60, 70)}, "none of the 64 that"),
        ({"position": "c"}, "no position 'c'"),
        ({"basis": "cosine"}, "unknown basis 'cosine'"),
        ({"permutations": 5}, "give 19 or more"),
    ],
)
def test_bad_input_is_refused(unchecked, arguments, message):
    model = mn.wrap(fixtures.gptj())
    with pytest.raises(MechnumError, match=message):
        fourier_lens(model, **{"prompts": PROMPTS, "numbers": NUMBERS, **arguments})


@pytest.mark.parametrize(
    ("stage", "layer", "norm", "message"),
    [
        ("attn", -1, "own", r"state \('attn', -1\) cannot be read"),
        ("resid", 3, "own", "'resid' of layers −1"),
        ("head", 0, "own", "cannot be read"),
        ("attn", 0, "exact", "unknown reading 'exact'"),
    ],
)
def test_states_that_do_not_exist_are_refused(unchecked, stage, layer, norm, message):
    with pytest.raises(MechnumError, match=message):
        lens_coefficients(mn.wrap(fixtures.gptj()), PROMPTS, NUMBERS, stage, layer, norm)


def test_another_norm_of_attribution_is_refused(unchecked):
    with pytest.raises(MechnumError, match="use 'frozen' or 'none', or fourier_lens"):
        fourier_attribution(mn.wrap(fixtures.gptj()), PROMPTS, NUMBERS, "own")
