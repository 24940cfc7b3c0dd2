"""The ablation table on the adder: the right conditions, values and controls."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.fourier import (
    filter_effects,
    filter_results,
    filter_table,
    fourier_basis,
    high_pass,
    low_pass,
)
from mechnum.fourier.filtered_runs import Filtering, answers
from mechnum.fourier.filters import band_removal
from mechnum.tasks import answer_tokens, numbers_of, sample_prompts


@pytest.fixture(scope="module")
def adder():
    return mn.load("adder-gptj")


@pytest.fixture(scope="module")
def task():
    return mn.tasks.addition()


@pytest.fixture(scope="module")
def drawn(adder, task):
    prompts = task.prompts(adder)
    return sample_prompts(prompts, 60), answer_tokens(adder, prompts)


@pytest.fixture(scope="module")
def effects(adder, task, drawn):
    return filter_effects(adder, task, *drawn, [high_pass(20), low_pass(160)], seed=1)


def test_each_condition_is_its_filtered_run(adder, drawn, effects):
    prompts, numbers = drawn
    removed = band_removal(adder, numbers, high_pass(20), fourier_basis(199))
    right = numbers_of(prompts, ["answer"])[:, 0]
    own = effects.isel(
        condition=(effects["projection"] == "filter") & (effects["band"] == high_pass(20).name)
    )
    assert list(own["modules"].values) == ["both", "attn", "mlp"]
    for row, modules in enumerate(("both", "attn", "mlp")):
        one, found = own.isel(condition=row), answers(adder, prompts, Filtering(removed, modules))
        np.testing.assert_array_equal(one["loss"], found.loss)
        said = np.array([int(adder.tokenizer.decode([t])) for t in found.predicted.tolist()])
        np.testing.assert_array_equal(one["error"], said - right)
        np.testing.assert_array_equal(one["correct"], said == right)
        assert int(one["rank"]) == removed.rank == 19


def test_the_first_condition_is_the_model_as_it_is(adder, drawn, effects):
    first = effects.isel(condition=0)
    assert {str(first[name].values) for name in ("modules", "band", "projection")} == {"nothing"}
    np.testing.assert_array_equal(first["loss"], answers(adder, drawn[0]).loss)
    assert first["correct"].all()


def test_controls_remove_as_much_and_matter_less(effects):
    """The adder loses its tens with 19 low waves, and nothing with 19 random directions."""
    table = filter_table(effects).sel(measure="accuracy")["mean"]
    for modules in ("both", "attn", "mlp"):
        pick = (table["modules"] == modules) & (table["band"] == high_pass(20).name)
        own = {str(one["projection"].values): float(one) for one in table[pick]}
        assert own["filter"] < 0.75 < 0.97 < own["random"]
    ranks = effects["rank"].values.reshape(-1)[1:].reshape(2, 3, 2)
    assert (ranks == np.array([19, 39])[:, None, None]).all()


def test_the_signature_is_that_of_lost_magnitude(effects):
    """Without low waves the units digit stays right, as in the paper (section 3)."""
    table = filter_table(effects)
    pick = (table["projection"] == "filter") & (table["band"] == high_pass(20).name)
    shares = table.isel(condition=pick.values)["mean"]
    assert (shares.sel(measure="multiple of 10") > 0.95).all()
    assert (shares.sel(measure="units digit right, all answers") > 0.95).all()


def test_the_table_is_means_over_the_right_answers(effects):
    table = filter_table(effects, seed=4)
    np.testing.assert_allclose(
        table["mean"].sel(measure="loss"), effects["loss"].mean("prompt").values
    )
    np.testing.assert_allclose(
        table["mean"].sel(measure="accuracy"), effects["correct"].mean("prompt").values
    )
    for row in range(effects.sizes["condition"]):
        error = effects["error"].values[row]
        wrong = (error != 0) & np.isfinite(error)
        cell = table.sel(measure="−10").isel(condition=row)
        assert int(cell["n"]) == wrong.sum()
        if wrong.any():
            assert float(cell["mean"]) == pytest.approx((error[wrong] == -10).mean())
        else:
            assert np.isnan(cell["mean"])
    assert (table["low"] <= table["mean"]).where(table["low"].notnull(), True).all()


def test_the_seed_draws_the_random_directions_alone(adder, task, drawn, effects):
    other = filter_effects(adder, task, *drawn, [high_pass(20)], ["attn"], seed=2)
    same = effects.isel(
        condition=((effects["modules"] == "attn") & (effects["band"] == high_pass(20).name)).values
    )
    np.testing.assert_allclose(other["loss"][1], same["loss"][0], atol=1e-6)
    assert not np.allclose(other["loss"][2], same["loss"][1])


def test_a_band_that_leaves_nothing_is_said(adder, task, drawn):
    with pytest.warns(UserWarning, match="all 128 directions of adder-gptj go"):
        effects = filter_effects(adder, task, *drawn, [low_pass(20)], ["both"])
    bare = [
        adder.logits(group.tokens) for group in drawn[0]
    ]  # the model with nothing written is the embedding alone
    assert len(bare) == 1
    last = adder.decoder.embed(drawn[0][0].tokens)[0, :, -1]
    expected = torch.nn.functional.cross_entropy(
        adder.decoder.logits(last), drawn[0][0].answers, reduction="none"
    )
    np.testing.assert_allclose(effects["loss"][1], expected.detach(), atol=1e-3)


@pytest.mark.slow
def test_results_hold_all_that_pages_need(adder, task):
    found = filter_results(adder, task, [high_pass(20)], ["attn"], n_prompts=20)
    assert set(found.children) == {"prompts", "filters", "table", "errors", "signature"}
    counts = found["errors"]["count"]
    effects = found["filters"].to_dataset()
    wrong = (~effects["correct"]).sum("prompt").values
    np.testing.assert_array_equal(counts.sum("error").values, wrong)
    assert found.attrs["accuracy"] == 1
    assert found.attrs["n_prompts"] == 20


def test_bad_requests_are_refused(unchecked, adder, task, drawn):
    with pytest.raises(MechnumError, match="give at least one band"):
        filter_effects(adder, task, *drawn, [])
    with pytest.raises(MechnumError, match="are no list: use"):
        filter_effects(adder, task, *drawn, [high_pass()], [])
