"""Effects by suffix runs are the effects of plain module hooks, for every node and position."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.memory import memory_budget
from mechnum.models.verify import probe_tokens
from mechnum.patching.effects import effects
from mechnum.tasks import pairs_from_tokens
from mechnum.tasks.positions import resolve_position
from tests import fixtures
from tests.patching import slow

pytestmark = pytest.mark.tl3

CLEAN = torch.tensor([[0, 10, 2, 20, 3], [0, 11, 2, 22, 3], [0, 9, 2, 14, 3]])
CORRUPT = torch.tensor([[0, 12, 2, 31, 3], [0, 17, 2, 23, 3], [0, 9, 2, 15, 3]])
ANSWERS, CORRUPT_ANSWERS = torch.tensor([30, 33, 23]), torch.tensor([43, 40, 24])
N_HEADS = {"heads": 4, "attn": 1, "mlps": 1}
POSITIONS = {"end": 4, "a": 1}


def given_pairs() -> Any:
    return pairs_from_tokens(CLEAN, CORRUPT, ANSWERS, CORRUPT_ANSWERS, positions={"a": 1})


def logit_diff(logits: torch.Tensor) -> np.ndarray:
    rows = torch.arange(len(logits))
    return (logits[rows, ANSWERS] - logits[rows, CORRUPT_ANSWERS]).numpy()


def by_node(dataset: Any, name: str, layer: int, head: int) -> np.ndarray:
    values = dataset[name].values[:, layer]
    return values[:, head] if values.ndim == 2 else values


@pytest.mark.parametrize("architecture", fixtures.ARCHITECTURES)
@pytest.mark.parametrize("kind", ["heads", "attn", "mlps"])
@pytest.mark.parametrize("position", POSITIONS)
def test_total_effects_are_those_of_module_hooks(architecture, kind, position):
    model = fixtures.ARCHITECTURES[architecture]()
    found = effects(mn.wrap(model), given_pairs(), kind, position)
    with torch.no_grad():
        before = logit_diff(model(CORRUPT).logits[:, -1])
    largest = 0.0
    for layer in range(3):
        for head in range(N_HEADS[kind]):
            after = slow.patched_logits(
                model, kind, layer, head, POSITIONS[position], CLEAN, CORRUPT
            )
            expected = logit_diff(after) - before
            largest = max(largest, np.abs(expected).max())
            np.testing.assert_allclose(
                by_node(found, "total", layer, head), expected, atol=1e-5, rtol=0
            )
    assert largest > 1e-3


@pytest.mark.parametrize("architecture", ["gpt2", "gptj", "gpt_neox sequential", "llama grouped"])
@pytest.mark.parametrize("kind", ["heads", "attn", "mlps"])
def test_direct_effects_are_those_of_a_hook_before_the_final_norm(architecture, kind):
    model = fixtures.ARCHITECTURES[architecture]()
    found = effects(mn.wrap(model), given_pairs(), kind)
    with torch.no_grad():
        before = logit_diff(model(CORRUPT).logits[:, -1])
    for layer in range(3):
        for head in range(N_HEADS[kind]):
            clean = slow.component_write(model, kind, layer, head, CLEAN)
            corrupt = slow.component_write(model, kind, layer, head, CORRUPT)
            after = slow.direct_logits(model, lambda state: clean - corrupt, CORRUPT)  # noqa: B023
            np.testing.assert_allclose(
                by_node(found, "direct", layer, head),
                logit_diff(after) - before,
                atol=1e-5,
                rtol=0,
            )


@pytest.mark.parametrize("architecture", ["gpt2", "gptj", "llama grouped"])
def test_frozen_direct_effects_of_all_writes_add_up(architecture):
    """With the scale frozen the logits are linear: every difference at the end is accounted for."""
    wrapped = mn.wrap(fixtures.ARCHITECTURES[architecture]())
    pairs = given_pairs()
    attn = effects(wrapped, pairs, "attn")
    heads = effects(wrapped, pairs, "heads")
    mlps = effects(wrapped, pairs, "mlps")
    heads, attn, mlps = (found["direct_frozen"] for found in (heads, attn, mlps))
    np.testing.assert_allclose(heads.sum("head"), attn, atol=1e-5)
    decoder = wrapped.decoder
    with torch.no_grad():
        clean, corrupt = (wrapped.run(tokens).last[:, -1] for tokens in (CLEAN, CORRUPT))
        scale = decoder.final_scale(corrupt)
        after = decoder.unembed(decoder.final_norm(clean, scale))
        before = decoder.unembed(decoder.final_norm(corrupt))
    expected = logit_diff(after) - logit_diff(before)
    summed = attn.sum("layer") + mlps.sum("layer")
    np.testing.assert_allclose(summed, expected, atol=1e-5)


def test_the_last_mlp_acts_directly_only():
    found = effects(mn.wrap(fixtures.llama()), given_pairs(), "mlps")
    np.testing.assert_allclose(found["total"][:, -1], found["direct"][:, -1], atol=1e-5)
    np.testing.assert_allclose(found["indirect"], found["total"] - found["direct"])


def test_noise_is_the_reverse_of_denoise():
    wrapped = mn.wrap(fixtures.gptj())
    reverse = pairs_from_tokens(CORRUPT, CLEAN, ANSWERS, CORRUPT_ANSWERS)
    noise = effects(wrapped, given_pairs(), "heads", direction="noise")
    denoise = effects(wrapped, reverse, "heads", direction="denoise")
    np.testing.assert_allclose(noise["total"], denoise["total"], atol=1e-6)
    np.testing.assert_allclose(noise["clean_metric"], denoise["corrupt_metric"], atol=1e-6)
    assert noise.attrs["direction"] == "noise"


@pytest.mark.parametrize("metric", ["logprob", "prob", "logit"])
def test_other_metrics(metric):
    model = fixtures.llama()
    found = effects(mn.wrap(model), given_pairs(), "attn", metric=metric)
    rows = torch.arange(3)

    def score(logits: torch.Tensor) -> np.ndarray:
        values = {
            "logprob": logits.log_softmax(-1),
            "prob": logits.softmax(-1),
            "logit": logits,
        }[metric]
        return values[rows, ANSWERS].numpy()

    with torch.no_grad():
        before = score(model(CORRUPT).logits[:, -1])
    np.testing.assert_allclose(found["corrupt_metric"], before, atol=1e-5)
    for layer in range(3):
        after = score(slow.patched_logits(model, "attn", layer, 0, 4, CLEAN, CORRUPT))
        np.testing.assert_allclose(found["total"][:, layer], after - before, atol=1e-5)
    assert ("warning" in found.attrs) == (metric == "logit")


@pytest.mark.parametrize("architecture", ["gptj", "llama grouped"])
def test_default_metrics_do_not_depend_on_processing_and_a_raw_logit_does(architecture):
    model = fixtures.ARCHITECTURES[architecture]()
    raw = mn.wrap(model)
    folded = mn.wrap(fixtures.bridge(model, fold_ln=True))
    pairs = given_pairs()
    assert raw.decoder.weights.processing() != folded.decoder.weights.processing()
    for metric in ("logit_diff", "logprob"):
        one, other = (effects(m, pairs, "mlps", metric=metric) for m in (raw, folded))
        np.testing.assert_allclose(one["total"], other["total"], atol=1e-5)
    one, other = (effects(m, pairs, "mlps", metric="logit") for m in (raw, folded))
    assert np.abs(one["total"] - other["total"]).max() > 1e-3
    assert one.attrs["processing"] != other.attrs["processing"]


def test_pairs_one_at_a_time_and_together_agree():
    wrapped = mn.wrap(fixtures.llama())
    together = effects(wrapped, given_pairs(), "heads", "a")
    singles = [
        effects(
            wrapped,
            pairs_from_tokens(
                CLEAN[[row]], CORRUPT[[row]], ANSWERS[[row]], CORRUPT_ANSWERS[[row]], {"a": 1}
            ),
            "heads",
            "a",
        )["total"].values
        for row in range(3)
    ]
    np.testing.assert_allclose(together["total"], np.concatenate(singles), atol=1e-6)
    for n_bytes in (1, 20_000, 2_000_000):
        with memory_budget(n_bytes):
            found = effects(wrapped, given_pairs(), "heads", "a")
        np.testing.assert_allclose(found["total"], together["total"], atol=1e-6)


def test_prompts_of_several_lengths_keep_their_order():
    wrapped = mn.wrap(fixtures.gpt_neox())
    clean = [[0, 10, 2, 20, 3], [0, 10, 11, 2, 20, 3], [0, 9, 2, 14, 3]]
    corrupt = [[0, 12, 2, 31, 3], [0, 12, 11, 2, 31, 3], [0, 9, 2, 15, 3]]
    mixed = pairs_from_tokens(clean, corrupt, ANSWERS, CORRUPT_ANSWERS)
    found = effects(wrapped, mixed, "heads")["total"].values
    for row in range(3):
        alone = pairs_from_tokens(
            [clean[row]], [corrupt[row]], ANSWERS[[row]], CORRUPT_ANSWERS[[row]]
        )
        np.testing.assert_allclose(
            found[[row]], effects(wrapped, alone, "heads")["total"], atol=1e-6
        )


def test_endpoints_are_the_metrics_of_the_runs():
    model = fixtures.gpt2()
    found = effects(mn.wrap(model), given_pairs(), "heads")
    with torch.no_grad():
        np.testing.assert_allclose(
            found["clean_metric"], logit_diff(model(CLEAN).logits[:, -1]), atol=1e-5
        )
        np.testing.assert_allclose(
            found["corrupt_metric"], logit_diff(model(CORRUPT).logits[:, -1]), atol=1e-5
        )


def test_dropout_is_off_and_the_callers_training_mode_comes_back():
    model = fixtures.gptj(resid_pdrop=0.5, embd_pdrop=0.5, attn_pdrop=0.5)
    expected = effects(mn.wrap(model), given_pairs(), "heads")
    model.train()
    model.transformer.h[1].mlp.eval()
    modes = [module.training for module in model.modules()]
    wrapped = mn.wrap(model)
    found = effects(wrapped, given_pairs(), "heads")
    np.testing.assert_array_equal(found["total"], expected["total"])
    assert [module.training for module in model.modules()] == modes
    tokens = probe_tokens(wrapped.decoder)
    assert torch.equal(wrapped.logits(tokens), wrapped.logits(tokens))


def test_gradients_stay_as_the_caller_had_them():
    wrapped = mn.wrap(fixtures.llama())
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            effects(wrapped, given_pairs(), "attn")
            assert torch.is_grad_enabled() is enabled


@pytest.mark.parametrize("nodes", ["heads", "neurons", "kv", "residual"])
@pytest.mark.parametrize("name", ["total", "direct", "direct_frozen"])
def test_half_precision_bodies_follow_float32(nodes, name):
    """Against the same rounded weights, so that only the arithmetic of the body differs."""
    rounded = fixtures.llama().bfloat16()
    expected = effects(mn.wrap(rounded.float()), given_pairs(), nodes)[name].values
    found = effects(mn.wrap(fixtures.llama().bfloat16()), given_pairs(), nodes)[name].values
    scale = np.abs(expected).max()
    # A patched run is bfloat16 from the patch on; direct effects differ in the activations alone.
    assert np.abs(found - expected).max() < (0.15 if name == "total" else 0.05) * scale
    # No effect is rounded to the steps of bfloat16 logits.
    assert len(np.unique(found)) > 0.9 * len(np.unique(expected))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": "heds"}, "unknown nodes 'heds'"),
        ({"metric": "loss"}, "unknown metric 'loss'"),
        ({"norm": "thawed"}, "unknown norm handling"),
        ({"estimands": ("indirect",)}, "unknown estimands"),
        ({"values": "noise"}, "unknown values 'noise'"),
        ({"values": "mean", "mean_over": "batch"}, "unknown mean_over 'batch'"),
        ({"direction": "both"}, "unknown direction"),
        ({"position": "c"}, "no position 'c'"),
        ({"position": 7}, "position 7 is outside prompts of 5 tokens"),
        ({"position": 1.5}, "1.5 is no position: use a name or an index"),
        ({"nodes": None}, "None names no nodes: give a text"),
        ({"nodes": 5}, "5 names no nodes"),
        ({"nodes": [("head", 0, 1)]}, "is no node: write it as 'head 13.4'"),
        ({"nodes": [["head 0.1", "head 0.2"]]}, "and a set of nodes as {'mlp 1'"),
        ({"nodes": [frozenset({3})]}, "holds something that is no node"),
        ({"nodes": "head 2-1.*, mlp 0"}, "range 2-1 is empty: write the smaller number first"),
        ({"nodes": "head 0-999999999999.0"}, "the model has layers 0 to 2"),
        ({"nodes": "head 0.* + mlp 1"}, r"has '\*' in a set: name each node of a set"),
        ({"estimands": None}, "unknown estimands None"),
        ({"seed": -1}, "seed=-1 is negative"),
        ({"seed": 1.5}, "1.5 is not an integer"),
    ],
)
def test_bad_requests_are_one_line(changes, message, unchecked):
    with pytest.raises(MechnumError, match=message) as refused:
        effects(mn.wrap(fixtures.gptj()), given_pairs(), **changes)
    assert "\n" not in str(refused.value)


def test_what_is_not_wrapped_and_what_are_no_pairs(unchecked):
    net = fixtures.gptj()
    with pytest.raises(MechnumError, match=r"a GPTJForCausalLM is not wrapped: use mechnum.wrap"):
        effects(net, given_pairs())
    with pytest.raises(MechnumError, match=r"a Tensor is no pairs: make them with task.pairs"):
        effects(mn.wrap(net), CLEAN)


def test_sets_of_names_and_numpy_positions(unchecked):
    model, pairs = mn.wrap(fixtures.llama()), given_pairs()
    named = effects(model, pairs, [{"head 0.1", "mlp 2"}], np.int64(1))
    np.testing.assert_array_equal(
        named["total"], effects(model, pairs, ["head 0.1 + mlp 2"], 1)["total"]
    )


def test_tokens_outside_the_vocabulary_are_refused():
    pairs = pairs_from_tokens([[0, 99]], [[0, 98]], [1], [2])
    with pytest.raises(MechnumError, match="vocabulary"):
        effects(mn.wrap(fixtures.gptj()), pairs)


def test_negative_positions_count_from_the_end():
    named = {"end": torch.tensor([4, 4])}
    assert resolve_position(-1, named, 5).tolist() == [4, 4]
    assert resolve_position(-5, named, 5).tolist() == [0, 0]


@pytest.mark.parametrize("architecture", ["gpt2", "gptj", "gpt_neox sequential", "llama grouped"])
def test_the_first_position_has_no_past(architecture):
    model = fixtures.ARCHITECTURES[architecture]()
    clean, corrupt = CLEAN[:, 1:], CORRUPT[:, 1:]
    pairs = pairs_from_tokens(clean, corrupt, ANSWERS, CORRUPT_ANSWERS)
    found = effects(mn.wrap(model), pairs, "mlps", position=0)
    with torch.no_grad():
        before = logit_diff(model(corrupt).logits[:, -1])
    for layer in range(3):
        after = slow.patched_logits(model, "mlps", layer, 0, 0, clean, corrupt)
        np.testing.assert_allclose(
            found["total"][:, layer], logit_diff(after) - before, atol=1e-5, rtol=0
        )
    assert np.abs(found["total"]).max() > 1e-4
