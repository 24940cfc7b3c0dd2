"""The search finds the periods that are there, and tracks the best of each size."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.helix import Helix, causal_scores, search_periods, search_periods_causally
from mechnum.models.memory import memory_budget
from mechnum.tasks import modular_addition
from tests.helix.nets import P, tiny_model
from tests.helix.synthetic import PERIODS, helix

NUMBERS = np.arange(200)


@pytest.mark.parametrize("seed", range(3))
def test_finds_the_periods_of_a_helix(seed: int) -> None:
    states, _ = helix(NUMBERS, noise=0.3, seed=seed)
    found = search_periods(NUMBERS, states, (2, 3, 5, 10, 41, 100), most=4, seed=seed)
    best = found.isel(subset=np.flatnonzero(found["best"]))
    assert best["n_periods"].values.tolist() == [1, 2, 3, 4]
    assert best["periods"].values[3] == "2, 5, 10, 100"
    assert found.attrs["best"] == "2, 5, 10, 100"
    # Chosen on one half of the numbers, it is as good on the other; a wrong one is not.
    assert float(best["r2"][3]) > 0.95
    wrong = found.isel(subset=np.flatnonzero(found["periods"] == "3, 5, 10, 100"))
    assert float(wrong["r2"][0]) < float(best["r2"][3]) - 0.05


def test_each_best_one_is_the_argmax_of_its_size_and_nestedness_is_said() -> None:
    states, _ = helix(NUMBERS, noise=0.3)
    found = search_periods(NUMBERS, states)
    assert found["periods"].values.tolist() == [
        ", ".join(f"{period:g}" for period in subset)
        for size in range(1, 5)
        for subset in combinations(PERIODS, size)
    ]
    best = []
    for size in range(1, 5):
        rows = np.flatnonzero(found["n_periods"] == size)
        best.append(int(rows[np.argmax(found["chosen_by"].values[rows])]))
    assert np.flatnonzero(found["best"]).tolist() == best
    sets = [set(str(found["periods"].values[row]).split(", ")) for row in best]
    nested = all(small < large for small, large in pairwise(sets))
    assert found.attrs["nested"] == str(nested).lower()


def test_best_ones_that_are_not_nested_are_called_so() -> None:
    """Period 7 alone does most, yet 5 and 11 together do more than any pair with it."""
    n = np.arange(385)
    waves = {t: np.exp(2j * np.pi * n / t) for t in (5, 7, 11)}
    mixed = waves[5] * 1.0 + waves[11] * 1.0
    near = waves[7] * 1.05
    states = np.stack([mixed.real, mixed.imag, near.real, near.imag], axis=1)
    found = search_periods(n, states, (5, 7, 11), linear=False)
    assert found.attrs["nested"] == "true"
    # With the two on one state the pair (5, 11) wins over (5, 7) and (7, 11) where 7 is weak there.
    spread = 0.9 * waves[7]
    states = np.stack([waves[5].real, waves[5].imag, waves[11].real, waves[11].imag], axis=1)
    states = np.column_stack([states, spread.real, spread.imag])
    pair = search_periods(n, states, (5, 7, 11), most=2, linear=False)
    rows = np.flatnonzero(pair["best"])
    assert pair["periods"].values[rows[1]] == "5, 11"


def test_selection_and_scoring_use_different_numbers() -> None:
    """Other states of the scoring half change nothing of what is chosen."""
    states, _ = helix(NUMBERS, noise=0.3)
    found = search_periods(NUMBERS, states)
    from mechnum.helix.search import _second_half

    half = _second_half(NUMBERS.astype(float), 0)
    assert half.sum() == 100
    changed = np.where(half[:, None], 7 * states[::-1], states)
    again = search_periods(NUMBERS, changed)
    np.testing.assert_array_equal(found["chosen_by"], again["chosen_by"])
    assert not np.allclose(found["r2"], again["r2"])


@pytest.mark.slow
def test_causal_search_is_causal_scores_of_every_subset() -> None:
    model = tiny_model()
    task = modular_addition(P)
    prompts = task.prompts(model)
    pairs = task.pairs(model, 12, seed=0, correct_only=False)
    options = {"layers": (0, 1), "folds": 3, "seed": 0}
    found = search_periods_causally(
        model, pairs, prompts, "a", candidates=(23, 5, 11), most=2, **options
    )
    subsets = [(5,), (11,), (23,), (5, 11), (5, 23), (11, 23)]
    assert found["n_periods"].values.tolist() == [1, 1, 1, 2, 2, 2]
    scoring = found["scoring"].values
    group = pairs.groups[0]
    numbers = group.clean.variables["a"].numpy()[np.argsort(group.index.numpy())]
    assert not set(numbers[scoring]) & set(numbers[~scoring])
    for row, periods in enumerate(subsets):
        one = causal_scores(
            model, pairs, prompts, "a", methods=("helix",), periods=periods, **options
        )
        np.testing.assert_allclose(found["score"][row], one["score"][:, 0], atol=1e-4)
        np.testing.assert_allclose(found["r2"][row], one["r2"][:, 0], atol=1e-6)
        chosen = one["score"][:, 0].values[:, ~scoring].mean()
        assert float(found["chosen_by"][row]) == pytest.approx(chosen, abs=1e-4)
    assert found.attrs["cost"] == "6 subsets at 2 layers: 12 patched runs of 12 pairs"
    with memory_budget(4 * 12 * 32):  # one subset at a time
        again = search_periods_causally(
            model, pairs, prompts, "a", candidates=(5, 11), most=1, **{**options, "layers": (0,)}
        )
    np.testing.assert_allclose(again["score"][:, 0], found["score"][:2, 0], atol=1e-4)
    one = pairs.select([0])
    with pytest.raises(MechnumError, match="1 pairs have one number only"):
        search_periods_causally(model, one, prompts, "a", **options)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"candidates": ()}, "no candidate periods"),
        ({"candidates": (0,)}, "period 0"),
        ({"candidates": tuple(range(2, 40))}, "more than 1024"),
        ({"most": 0}, "most is 0"),
        ({"folds": 1}, "1 fold"),
        ({"folds": 0}, "folds is 0"),
        ({"candidates": tuple(range(2, 12))}, "distinct numbers"),
    ],
)
def test_refusals(options: dict, word: str) -> None:
    states, _ = helix(NUMBERS[:30])
    with pytest.raises(MechnumError, match=word):
        search_periods(NUMBERS[:30], states, **options)


def test_a_helix_that_is_not_there_scores_nothing() -> None:
    states = np.random.default_rng(0).normal(size=(200, 16))
    found = search_periods(NUMBERS, states)
    assert float(found["r2"].max()) < 0.02
    assert Helix().fit(NUMBERS, states).score(NUMBERS, states) > 0.02
