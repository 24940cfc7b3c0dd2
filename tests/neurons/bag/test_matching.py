"""Planted heuristics are labelled exactly, and noise is not."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import false_discovery_control, hypergeom

import mechnum.neurons.bag.matching as matching
from mechnum.errors import InvalidInput, MechnumError
from mechnum.neurons import all_heuristics, heuristics, parse_heuristic
from mechnum.neurons.bag.kinds import KINDS
from tests.neurons.grids import grid, maps_of, planted

GRID = grid(100)
SMALL = grid(40)
# Each planted heuristic, and what of other kinds follows from it because it holds for nearly the
# same prompts: numbers from 30 to 39 are those with a 3 in the second place.
PLANTED = {
    "result in [30, 60)": "",
    "a in [30, 60)": "",
    "b in [20, 30)": "b like .2.",
    "a ≡ 3 (mod 7)": "",
    "result ≡ 1 (mod 2)": "",
    "b ≡ 10 (mod 15)": "",
    "result like ..3": "",
    "a like .3.": "a in [30, 40)",
    "result like .4.": "",
    "b like .37": "",
    "a ≡ b ≡ 2 (mod 5)": "",
    "a and b in [20, 50)": "",
    "a = b": "",
    "result in {2, 3, 7}": "",
    "result in {50, 70, 150}": "",
    "result in {90, 91}": "",
}


@pytest.fixture(scope="module")
def maps() -> xr.Dataset:
    return maps_of(GRID, planted(GRID, list(PLANTED)))


@pytest.fixture(scope="module")
def found(maps) -> xr.Dataset:
    return heuristics(maps)


def labels(found: xr.Dataset) -> list[set[str]]:
    return [set(text.split("; ")) if text else set() for text in found["label"].values]


EXPECTED = [{one, *([more] if more else [])} for one, more in PLANTED.items()]


def test_planted_heuristics_are_found(found):
    assert labels(found) == EXPECTED
    for node, words in enumerate(PLANTED):
        own = found.isel(node=node).sel(kind=parse_heuristic(words).kind)
        assert own["match"]
        assert own["best"] == words
        assert own["best_score"] > 0.97
        assert own["best_q"] < 1e-6
        assert own["best_sign"] == "positive"


def test_neurons_that_are_mostly_zero(maps):
    """A ReLU leaves zeros outside the heuristic, thousands of them tied."""
    quiet = maps.map(lambda values: np.maximum(values - 0.5, 0))
    assert (quiet["activation"] == 0).mean() > 0.8
    assert labels(heuristics(quiet)) == EXPECTED


def test_a_neuron_that_fires_for_half_of_a_heuristic_still_matches_it_alone():
    held = parse_heuristic("a in [30, 60)").holds(GRID)
    fires = held & (np.random.default_rng(0).random(len(held)) < 0.7)
    found = heuristics(maps_of(GRID, fires[None].astype(np.float32)))
    assert found["label"].item() == "a in [30, 60)"
    # 2100 of 3000 fire; the rest of the top are 900 of 7900 zeros, 900 of which are in the range.
    n = fires.sum()
    expected = (n + (3000 - n) * (3000 - n) / (10000 - n)) / 3000
    score = found["score"].sel(heuristic="a in [30, 60)").item()
    assert score == pytest.approx(expected, abs=1e-5)


def test_scores_and_p_are_those_of_a_slow_loop():
    numbers = grid(12)
    values = np.random.default_rng(3).normal(size=(2, 2, 144))
    found = heuristics(maps_of(numbers, values[0], values[1]), negative=True)
    every = all_heuristics(numbers)
    assert list(found["heuristic"].values) == [one.words for one in every]
    for one in every:
        held = set(np.flatnonzero(one.holds(numbers)))
        k = len(held)
        own = found.sel(heuristic=one.words)
        assert own["n_prompts"] == k
        assert own["heuristic_kind"] == one.kind
        for node in range(2):
            row = values[1 if "result" in one.words else 0, node]
            for sign, order in (("positive", np.argsort(-row)), ("negative", np.argsort(row))):
                overlap = len(held & set(order[:k]))
                cell = own.isel(node=node).sel(sign=sign)
                p = hypergeom.sf(overlap - 1, 144, k, k)
                if "result" in one.words:
                    read = values[0, node]
                    ends = [len(held & set(o[:k])) for o in (np.argsort(read), np.argsort(-read))]
                    p = max(p, min(1, 2 * hypergeom.sf(max(ends) - 1, 144, k, k)))
                assert cell["score"] == pytest.approx(overlap / k, abs=1e-6)
                assert cell["p"] == pytest.approx(p, rel=1e-6)
    assert not found["matched"].any()


def test_q_values_are_over_all_that_was_tested(found):
    """Benjamini and Hochberg over the table; sets of results that stand out are further tests."""
    p = found["p"].values.ravel()
    sets = found["best_p"].sel(kind="multi-result").dropna("node").values
    assert 3 <= len(sets) < found.sizes["node"]
    assert found.attrs["n_tested"] == len(p) + len(sets)
    expected = false_discovery_control(np.concatenate([p, sets]))[: len(p)]
    np.testing.assert_allclose(found["q"].values.ravel(), expected)
    matched = (found["score"] >= 0.6) & (found["q"] <= 0.05)
    xr.testing.assert_equal(found["matched"], matched)


def test_operands_are_looked_for_in_activations_and_results_in_what_is_written():
    words = ["a ≡ 3 (mod 7)", "result like ..3"]
    activation, logit = planted(SMALL, words)
    # It fires somewhat more for those results, and writes to them alone.
    activation += 0.9 * logit
    found = heuristics(maps_of(SMALL, activation[None], logit[None]))
    assert labels(found) == [set(words)]
    swapped = heuristics(maps_of(SMALL, logit[None], activation[None]))
    assert labels(swapped) == [set()]


def test_output_weights_alone_are_no_heuristic():
    """Neurons that write to some results whatever the prompt is, constant or noise."""
    words = ["result like ..3", "result in [30, 60)", "result in {30, 31}"]
    weights = planted(SMALL, words, noise=0)
    noise = np.random.default_rng(0).normal(size=weights.shape)
    for activation in (np.ones_like(weights), 3 + 0.1 * noise):
        found = heuristics(maps_of(SMALL, activation, activation * weights), negative=True)
        assert found["score"].sel(heuristic=words[0], sign="positive")[0] > 0.99
        assert labels(found) == [set()] * 3


def test_the_smallest_values_are_looked_at_where_asked():
    maps = maps_of(SMALL, -planted(SMALL, ["a = b", "result in {30, 31}", "result like ..3"]))
    assert labels(heuristics(maps)) == [set()] * 3
    found = heuristics(maps, negative=True)
    assert found["label"].values.tolist() == [
        "a = b (negative)",
        "result in {30, 31} (negative)",
        "result like ..3 (negative)",
    ]
    assert set(found["best_sign"].where(found["match"]).values.ravel()) >= {"negative"}


def test_other_prompts_than_the_whole_grid_in_any_order():
    keep = np.random.default_rng(0).permutation(np.flatnonzero(GRID["result"] <= 120))[:5000]
    numbers = {name: values[keep] for name, values in GRID.items()}
    words = ["a ≡ 3 (mod 7)", "result like ..3", "a and b in [20, 50)", "a = b"]
    found = heuristics(maps_of(numbers, planted(numbers, words)))
    assert labels(found) == [{one} for one in words]


def test_one_operand():
    a = np.arange(23, 223)
    numbers = {"a": a, "result": a - 23}
    words = ["a ≡ 3 (mod 7)", "result like ..3"]
    found = heuristics(maps_of(numbers, planted(numbers, words)))
    matched = found["matched"].isel(sign=0)
    for node, one in enumerate(words):
        assert matched.isel(node=node).sel(heuristic=one)
    # 23 less is as good a name for each.
    assert found["label"].values.tolist()[0] in ("a ≡ 3 (mod 7)", "result ≡ 1 (mod 7)")
    empty = found.sel(kind=["both", "identical"])
    assert (empty["best"] == "").all()
    assert empty["best_score"].isnull().all()
    assert not empty["match"].any()


def test_constant_maps_have_no_label():
    for value in (0.0, -2.5):
        found = heuristics(maps_of(SMALL, np.full((2, 1600), value)), negative=True)
        assert labels(found) == [set(), set()]
        np.testing.assert_allclose(
            found["score"], (found["n_prompts"] / 1600).broadcast_like(found["score"]), rtol=1e-4
        )


@pytest.mark.slow
def test_noise_has_no_label():
    """20 seeds of 16 neurons, half of them ReLUs: none at the threshold, and few by q alone."""
    numbers = grid(10)
    labelled = any_match = 0
    for seed in range(20):
        values = np.random.default_rng(seed).normal(size=(16, 100))
        values[8:] = np.maximum(values[8:] - 0.8, 0)
        found = heuristics(maps_of(numbers, values), threshold=1e-6)
        labelled += int((found["matched"] & (found["score"] >= 0.6)).sum())
        labelled += int(found["match"].sel(kind="multi-result").sum())
        any_match += int(found["matched"].any())
    assert labelled == 0
    assert any_match <= 3


def test_a_shuffled_map_has_no_label(maps):
    order = np.random.default_rng(0).permutation(10000)
    shuffled = maps.map(lambda values: values.copy(data=values.values[:, order]))
    assert labels(heuristics(shuffled)) == [set()] * len(PLANTED)


@pytest.mark.slow
def test_chunks_change_nothing(maps, found, monkeypatch):
    monkeypatch.setattr(matching, "_CHUNK_VALUES", 30_000)
    xr.testing.assert_identical(heuristics(maps), found)


def test_tables_say_what_they_hold_and_can_be_stored(found, tmp_path):
    assert list(found["kind"].values) == list(KINDS)
    assert {"layer", "neuron"} <= set(found.coords)
    assert found.attrs["model"] == "planted"
    assert "hypergeometric" in found.attrs["null"]
    found.to_netcdf(tmp_path / "found.nc")
    xr.testing.assert_equal(xr.load_dataset(tmp_path / "found.nc"), found)


def test_bad_maps_are_refused(unchecked):
    good = maps_of(grid(12), np.random.default_rng(0).normal(size=(2, 144)))
    for bad, message in [
        (good.drop_vars("logit"), "the maps have no 'logit': give what"),
        (good.drop_vars("a"), "the maps do not say 'a' of their prompts"),
        (good.isel(node=[]), "of 0 neurons and 144 prompts"),
        (good.isel(prompt=[0, 1]), "2 neurons and 2 prompts"),
        (good.where(good["a"] > 3), "activation of neuron 0.0 is not finite"),
        (good.expand_dims("layer_"), "activation of the maps has dimensions"),
        (good.assign_coords(a=good["a"] + 0.5), "a of the maps is no whole number"),
        ("maps", "the maps have no 'activation'"),
    ]:
        with pytest.raises(MechnumError, match=message):
            heuristics(bad)
    for options, message in [
        ({"threshold": 0}, "threshold is 0: give a share"),
        ({"alpha": np.nan}, "alpha is nan: give a share"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            heuristics(good, **options)
    same = good.isel(prompt=[5] * 8)
    with pytest.raises(MechnumError, match="no heuristic tells these 8 prompts apart"):
        heuristics(same)


def test_the_crest_of_a_wave_is_no_set_of_results():
    """Its top prompts lie in few results, but the next ones are nearly as high."""
    waves = np.stack([np.cos(2 * np.pi * (GRID["result"] - shift) / 100) for shift in (3, 51)])
    found = heuristics(maps_of(GRID, np.maximum(waves, 0)))
    assert not found["match"].sel(kind="multi-result").any()
    assert (found["best"].sel(kind="multi-result") == "").all()


def test_labels_begin_with_what_explains_most():
    """The tip of a range lies in a pattern, but the range is what the neuron is about."""
    rng = np.random.default_rng(2)
    values = ((GRID["result"] >= 60) & (GRID["result"] < 110)) * (1 + GRID["result"] / 1e3)
    found = heuristics(maps_of(GRID, values[None] + 0.01 * rng.normal(size=(1, len(values)))))
    first = found["label"].item().split("; ")[0]
    assert first.startswith("result in [")
    kinds = found["best_explained"].isel(node=0).where(found["match"].isel(node=0))
    assert kinds.idxmax("kind") == "range"
    held = parse_heuristic(first).holds(GRID)
    expected = np.corrcoef(held, values)[0, 1] ** 2
    assert float(kinds.sel(kind="range")) == pytest.approx(expected, abs=0.01)
