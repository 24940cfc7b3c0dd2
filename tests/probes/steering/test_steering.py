"""Steering a planted net whose right vectors are known, and runs against plain module hooks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.memory import memory_budget
from mechnum.probes import (
    FourierRegressionProbe,
    best_steering,
    fit_vectors,
    steer,
    training_split,
)
from mechnum.probes.steering.questions import (
    pooled,
    question_halves,
    questions_of,
    share_by_question,
    some_prompts,
)
from mechnum.probes.steering.runs import Mixture, mixed_answers
from tests import fixtures
from tests.fourier.sums import sums

from . import planted

PROBE = FourierRegressionProbe((6, 3, 2))


@pytest.fixture(scope="module")
def measured():
    """Vectors from right prompts, and steered prompts of which half are wrong."""
    model = planted.net()
    test = pooled([planted.prompts(wrong=False), planted.prompts(wrong=True)])
    vectors = fit_vectors(model, planted.prompts(wrong=False), PROBE)
    found = steer(model, test, vectors, (0.0, 0.3, 1.0), draws=15, seed=0)
    return model, test, vectors, found


def test_vectors_of_a_planted_net_are_its_codes(measured):
    _, _, vectors, _ = measured
    state = planted.CODES + 2 * planted.COMMON
    np.testing.assert_allclose(vectors.centre[0], state.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(vectors.towards["class means"][1], state, atol=1e-6)
    # Codes of equal length at equal angles: each vector is nearest to its own number's.
    along = (vectors.towards["probe"][1] - vectors.centre[1]) @ planted.CODES.T
    np.testing.assert_array_equal(along.argmax(axis=1), np.arange(planted.N))
    np.testing.assert_allclose(vectors.lengths("probe"), vectors.radius[:, None].repeat(6, 1))


def test_nothing_changes_at_0_and_all_is_repaired_at_1(measured):
    _, _, _, found = measured
    none = found.sel(alpha=0)
    assert (none["right"] == none["right_before"]).all()
    assert float(none["repaired"].max()) == float(none["broken"].max()) == 0
    for name in ("class means", "probe"):
        full = found.sel(alpha=1, vector=name)
        assert float(full["repaired"].min()) == 1, name
        assert float(full["broken"].max()) == 0, name
        assert bool(full["followed"].all()), name
    # 0.3 of the right code against 0.7 of the wrong one.
    assert float(found["repaired"].sel(vector="class means", alpha=0.3).max()) == 0


def test_controls_do_not_write_the_right_answer(measured):
    _, _, _, found = measured
    full = found.sel(alpha=1)
    other = full.sel(vector="other value")
    assert not other["right"].any()
    assert bool(other["followed"].all())
    # The probe reads the wrong number in the states of wrong answers, and right ones elsewhere.
    decoded = full.sel(vector="decoded")
    assert float(decoded["repaired"].max()) == float(decoded["broken"].max()) == 0
    # One of six numbers is the one that a random state reads.
    assert float(full["random_repaired"].mean()) == pytest.approx(1 / 6, abs=0.1)
    drawn = full["random_right"].mean(("draw", "layer"))
    assert float(drawn.max()) < 0.6
    # One state for all reads one number for all, or none.
    assert float(full.sel(vector="mean state")["right"].mean("prompt").max()) <= 1 / 6


def test_the_best_cell_is_scored_on_other_questions(measured):
    model, test, vectors, found = measured
    best = best_steering(model, test, vectors, found, draws=19, seed=0)
    assert best["vector"].values.tolist() == [*vectors.towards, "decoded"]
    means = best.sel(vector="class means")
    assert (int(means["layer"]), float(means["alpha"])) == (0, 1.0)
    assert float(means["repaired"]) == float(means["accuracy"]) == 1
    assert float(means["p"]) == 1 / 20
    assert float(best["p"].sel(vector="decoded")) == 1
    assert int(best["n_wrong"]) + int(best["n_right"]) + best.attrs["chosen_on"] == 36
    assert float(means["repaired_low"]) < 1
    again = best_steering(model, test, vectors, found, draws=19, seed=0)
    assert best.identical(again)
    right = pooled([planted.prompts(wrong=False)])
    sweep = steer(model, right, vectors, (0.5,), 1)
    assert np.isnan(sweep["repaired"]).all()
    with pytest.raises(MechnumError, match="nothing to repair"):
        best_steering(model, right, vectors, sweep, 1)


@pytest.mark.parametrize("name", fixtures.rest_slow(["llama grouped", "gptj"], "llama grouped"))
def test_mixed_runs_are_those_of_plain_hooks(name):
    """Prompts of two lengths, in one batch and in many."""
    net = fixtures.ARCHITECTURES[name]()
    model, prompts = mn.wrap(net), sums(9, long=4)
    generator = np.random.default_rng(0)
    vectors, which = 2 * generator.normal(size=(4, 32)), generator.integers(0, 4, size=9)
    mixtures = [Mixture(layer, vectors, which, (0.0, 0.25, 1.0)) for layer in (2, 0)]
    plain, found = mixed_answers(model, prompts, mixtures)
    blocks = net.model.layers if hasattr(net, "model") else net.transformer.h
    targets, row = torch.from_numpy(vectors[which]).float(), 0
    for group in prompts:
        rows = slice(row, row + len(group))
        row += len(group)
        with torch.no_grad():
            base = net(group.tokens).logits[:, -1].argmax(-1)
        np.testing.assert_array_equal(plain[rows], base)
        for mixture, own in zip(mixtures, found, strict=True):
            for alpha, answers in zip(mixture.alphas, own, strict=True):

                def hook(module, given, output, alpha=alpha, rows=rows):
                    state = (output[0] if isinstance(output, tuple) else output).clone()
                    state[:, -1] = (1 - alpha) * state[:, -1] + alpha * targets[rows]
                    return (state, *output[1:]) if isinstance(output, tuple) else state

                handle = blocks[mixture.layer].register_forward_hook(hook)
                with torch.no_grad():
                    expected = net(group.tokens).logits[:, -1].argmax(-1)
                handle.remove()
                np.testing.assert_array_equal(answers[rows], expected)
    assert (found[0][2] != plain).any()
    with memory_budget(1):
        again = mixed_answers(model, prompts, mixtures)[1]
    assert all((one == other).all() for one, other in zip(again, found, strict=True))


def test_no_question_is_in_two_parts_and_no_answer_is_unseen():
    prompts = pooled([sums(60), sums(60)])
    train, test = training_split(prompts, 0.5, seed=1)
    assert sum(map(len, (*train, *test))) == 120
    asked = [
        {pair for group in part for pair in zip(*(group.variables[n].tolist() for n in "ab"))}
        for part in (train, test)
    ]
    assert not asked[0] & asked[1]
    answers = [{v for g in part for v in g.variables["answer"].tolist()} for part in (train, test)]
    assert answers[1] <= answers[0]
    half = question_halves(questions_of(test), 0)
    assert 0 < half.sum() < len(half)
    parts = [some_prompts(test, rows) for rows in (half, ~half)]
    texts = [{text for group in part for text in group.texts} for part in parts]
    assert not texts[0] & texts[1]


def test_intervals_count_questions_and_not_prompts():
    hit = np.tile([True, False, True, True], 50)
    question = np.tile(np.arange(4), 50)
    share, low, high = share_by_question(hit, np.ones(200, dtype=bool), question)
    assert float(share) == 0.75
    # Wilson 1927 for 3 of 4, worked out by hand.
    assert (float(low), float(high)) == (
        pytest.approx(0.3006, abs=1e-4),
        pytest.approx(0.9544, abs=1e-4),
    )
    nothing = share_by_question(hit, np.zeros(200, dtype=bool), question)
    assert all(np.isnan(own) for own in nothing)


def test_what_cannot_be_steered_is_refused(measured):
    model, test, vectors, _ = measured
    with pytest.raises(MechnumError, match="are no strengths: give one or more from 0 to 1"):
        steer(model, test, vectors, (0.5, 1.5))
    few = fit_vectors(
        model, [g.select(torch.arange(6)) for g in planted.prompts(wrong=False)], PROBE
    )
    with pytest.raises(MechnumError, match="no training prompt has the answer 2"):
        steer(model, test, few)
    with pytest.raises(MechnumError, match="has no layer 7 to steer after: use 0 to 1"):
        fit_vectors(model, test, PROBE, [7])
    with pytest.raises(MechnumError, match="no prompts to run"):
        mixed_answers(model, (), [])
    single = [group.select(torch.tensor([0, 3, 6, 9, 12, 15])) for group in test]
    with pytest.raises(MechnumError, match="every question is needed for training"):
        training_split(single)
    with pytest.raises(MechnumError, match="give a share above 0 and below 1"):
        training_split(test, 1.0)
