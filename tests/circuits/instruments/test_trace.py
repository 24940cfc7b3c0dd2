"""The trace of a model holds what the single instruments give, and can be written and drawn."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.circuits.instruments.trace import trace
from mechnum.errors import MechnumError
from mechnum.models.wrap import wrap
from mechnum.report import save, trace_page
from mechnum.tasks.pairs import TooFewPairs
from tests import fixtures, published

pytestmark = pytest.mark.tl3


@pytest.fixture(scope="module")
def adder():
    return mn.load("adder-gptj")


@pytest.fixture(scope="module")
def results(adder) -> xr.DataTree:
    return trace(adder, mn.tasks.addition(range(40)), n_pairs=12, seed=3)


def test_parts(results):
    assert set(results["effects"].children) == {"heads", "attn", "mlps"}
    assert set(results["helix"].children) == {"a", "b", "end", "planes"}
    assert results.attrs["accuracy"] == 1.0
    assert results.attrs["n_prompts"] == 1600
    assert results.attrs["template"] == "{a}+{b}="
    assert json.loads(results.attrs["versions"])["mechnum"]
    a, plus, b, equals = results["prompts"]["token"].values
    assert (plus, equals) == ("+", "=")
    assert a != b
    assert json.loads(results["prompts"].attrs["positions"]) == {"a": 0, "op": 1, "b": 2, "end": 3}


def test_effects_are_those_of_the_instrument(adder, results):
    task = mn.tasks.addition(range(40))
    pairs = task.pairs(adder, 12, vary="any", seed=3)
    np.testing.assert_array_equal(
        results["effects/heads"]["total"], mn.effects(adder, pairs, "heads")["total"]
    )
    assert results["effects/heads"].attrs["pairs_fingerprint"] == pairs.fingerprint


def test_the_adders_answer_is_a_helix_that_its_state_can_be_replaced_by(results):
    """Its number vectors started from helices; the rest of the net uses them."""
    for site, best in (("a", -1), ("b", -1), ("end", 2)):
        score = results[f"helix/{site}"]["score"].mean("pair").sel(layer=best)
        full, helix = (float(score.sel({"method": name})) for name in ("full", "helix"))
        assert helix > 0.8 * full > 1


def test_attention_patterns_are_probabilities(results):
    pattern = results["attention"]["pattern"].values
    np.testing.assert_allclose(pattern.sum(-1), 1, atol=1e-5)
    assert np.triu(pattern[0, 0], 1).max() == 0


@pytest.mark.slow
def test_same_seed_same_results_and_another_seed_others(adder, results):
    again = trace(adder, mn.tasks.addition(range(40)), n_pairs=12, seed=3)
    xr.testing.assert_identical(again, results)
    other = trace(adder, mn.tasks.addition(range(40)), n_pairs=12, seed=4)
    assert not np.array_equal(other["effects/heads"]["total"], results["effects/heads"]["total"])


@pytest.mark.slow
def test_it_is_written_and_read_back(results, tmp_path):
    page, data = save(results, tmp_path)
    assert page.stat().st_size > 10**6
    read = xr.open_datatree(data, engine="netcdf4")
    np.testing.assert_array_equal(read["effects/heads"]["total"], results["effects/heads"]["total"])
    read.close()
    assert "adder-gptj" in trace_page(results)


def test_an_untrained_net_has_nothing_to_trace():
    from tests.models.test_load import in_memory_tokenizer

    untrained = wrap(fixtures.llama(), in_memory_tokenizer(), name="untrained")
    with pytest.raises(TooFewPairs):
        trace(untrained, mn.tasks.addition(range(5), template="{a}+{b}="), n_pairs=5)


def test_a_model_of_its_own_without_a_task_for_it():
    with pytest.raises(MechnumError, match="tokenizer"):
        trace(wrap(fixtures.gpt2()))


def test_a_modulus_that_the_net_was_not_trained_on_is_refused():
    clock = mn.load("clock-113")
    with pytest.raises(MechnumError, match="was trained on modular_addition:113"):
        trace(clock, mn.tasks.modular_addition(7))


def test_the_clock_uses_few_frequencies_and_its_answer_is_in_them():
    """Bundled and grokked: three frequencies, and a state that can be rebuilt from them."""
    clock = mn.load("clock-113")
    results = trace(clock, n_pairs=10)
    assert results.attrs["accuracy"] == 1.0
    assert len(results["helix/a"].attrs["periods"]) == 3
    embedding = results["helix/a"]["score"].sel(layer=-1).mean("pair")
    full, helix = (float(embedding.sel({"method": name})) for name in ("full", "helix"))
    assert helix > 0.9 * full > 1


def test_a_net_without_periods_of_its_own_has_a_page_without_helices(tmp_path):
    """No frequency of a random embedding stands out."""
    net = wrap(fixtures.llama(pad_token_id=None), name="untrained")
    task = mn.tasks.modular_addition(59)
    results = trace(net, task, n_pairs=3)
    assert "helix" not in results
    left_out = json.loads(results.attrs["left_out"])
    assert set(left_out) == {"helix at a", "helix at b", "helix at end"}
    assert all("has no periods of its own" in reason for reason in left_out.values())
    assert all(path.exists() for path in save(results, tmp_path))
    assert "helix" in trace(net, task, n_pairs=3, periods=[59 / 5])


def test_the_published_grokking_net(tmp_path):
    model = mn.load(published.grokking_net(tmp_path))
    results = trace(model, n_pairs=10)
    assert results.attrs["task"] == "modular_addition:113"
    assert {round(113 / T) for T in results["helix/a"].attrs["periods"]} == {37, 6, 41, 23, 39}
    assert "linear" not in results["helix/planes"]
    embedding = results["helix/a"]["score"].sel(layer=-1).mean("pair")
    full, helix = (float(embedding.sel({"method": name})) for name in ("full", "helix"))
    assert helix > 0.9 * full
    # The operands' own positions are read by attention alone, before the only layer's output.
    assert float(np.abs(results["helix/a"]["score"].sel(layer=0)).max()) < 1e-3
