"""Held-out R²: the split, what is fitted where, and that no information scores zero."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

from mechnum.errors import MechnumError
from mechnum.helix import Circle, Helix, PCAReconstruction, PermutedLabels, Polynomial, heldout_r2
from mechnum.helix.heldout import splits_by_value
from tests.helix.synthetic import columns, helix

NUMBERS = np.arange(100)


def test_no_value_is_on_both_sides() -> None:
    numbers = np.random.default_rng(0).integers(0, 40, size=(300, 1)).astype(float)
    for train, test in splits_by_value(numbers, 0.25, 5, seed=0):
        assert not set(numbers[train, 0]) & set(numbers[test, 0])
        assert len(train) + len(test) == 300
        assert len(set(numbers[test, 0])) == 10


def test_with_several_variables_no_value_of_any_is_on_both_sides() -> None:
    a, b = np.divmod(np.arange(2500), 50)
    numbers = np.column_stack([a, b, a + b]).astype(float)
    for train, test in splits_by_value(numbers, 0.25, 3, seed=1):
        for variable in range(3):
            assert not set(numbers[train, variable]) & set(numbers[test, variable])


def test_heldout_r2_against_the_computation_written_out() -> None:
    states, _ = helix(NUMBERS, noise=0.3)
    result = heldout_r2(Helix(components=5), NUMBERS, states, splits=3, seed=4)
    pairs = splits_by_value(NUMBERS[:, None].astype(float), 0.25, 3, 4)
    for split, (train, test) in enumerate(pairs):
        mean = states[train].mean(axis=0)
        axes = np.linalg.svd(states[train] - mean, full_matrices=False)[2][:5]
        design = columns(NUMBERS)
        weights = np.linalg.lstsq(design[train], (states[train] - mean) @ axes.T)[0]
        errors = states[test] - (design[test] @ weights @ axes + mean)
        centred = states[test] - states[test].mean(axis=0)
        expected = 1 - np.sum(errors**2) / np.sum(centred**2)
        assert float(result["r2"][split]) == pytest.approx(expected)
        assert (int(result["train_rows"][split]), int(result["test_rows"][split])) == (75, 25)


def test_same_seed_same_numbers_and_no_global_generator() -> None:
    states, _ = helix(NUMBERS, noise=0.3)
    np.random.seed(1)
    one = heldout_r2(Helix(), NUMBERS, states, seed=3)
    np.random.seed(2)
    before = np.random.get_state()[1].copy()
    two = heldout_r2(Helix(), NUMBERS, states, seed=3)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
    xr.testing.assert_identical(one, two)
    assert not np.allclose(one["r2"], heldout_r2(Helix(), NUMBERS, states, seed=5)["r2"])


def test_a_helix_beats_its_rivals_on_unseen_numbers() -> None:
    states, _ = helix(NUMBERS, noise=0.1)
    scores = [
        float(heldout_r2(estimator, NUMBERS, states)["r2"].mean())
        for estimator in (Helix(), Circle(), Polynomial(9))
    ]
    assert scores[0] > 0.98
    assert scores[0] > scores[1] > scores[2] + 0.3


def test_pca_sees_its_state_and_has_no_adjusted_score() -> None:
    states, _ = helix(NUMBERS, noise=0.1)
    result = heldout_r2(PCAReconstruction(9), NUMBERS, states)
    assert float(result["r2"].min()) > 0.95
    assert bool(result["r2_adjusted"].isnull().all())


def cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """One state a number; several; and unequal counts of them."""
    rng = np.random.default_rng(0)
    states, _ = helix(NUMBERS, noise=0.3)
    drawn = rng.integers(0, 100, 400)
    return {
        "single": (NUMBERS, states),
        "repeated": (np.tile(NUMBERS, 3), np.tile(states, (3, 1)) + rng.normal(size=(300, 16))),
        "unequal": (drawn, states[drawn] + 0.1 * rng.normal(size=(400, 16))),
    }


@pytest.mark.parametrize(
    ("case", "components"), [("single", 100), ("single", 3), ("repeated", 3), ("unequal", 100)]
)
def test_permuted_labels_score_zero(case: str, components: int) -> None:
    numbers, states = cases()[case]

    def score(seed: int, variable: str) -> float:
        control = PermutedLabels(Helix(components=components), seed=seed)
        result = heldout_r2(control, numbers, states, splits=2, seed=seed)
        return float(result[variable].mean())

    scores = np.array([score(seed, "r2_adjusted") for seed in range(25)])
    for some in (scores[:5], scores):
        error = some.std(ddof=1) / np.sqrt(len(some))
        assert abs(some.mean()) < 2 * error
    # Without the adjustment, nine columns fitted to nothing cost about -9 / 75.
    assert np.mean([score(seed, "r2") for seed in range(5)]) < -0.03


def test_permuted_labels_keep_the_states_of_a_number_together() -> None:
    numbers = np.repeat(NUMBERS, 2)
    states = np.repeat(helix(NUMBERS)[0], 2, axis=0)
    control = PermutedLabels(Helix(), seed=0).fit(numbers, states)
    order = np.random.default_rng(0).permutation(100)
    expected = Helix().fit(np.repeat(order, 2), states)
    np.testing.assert_allclose(control.predict(NUMBERS), expected.predict(NUMBERS))
    again = PermutedLabels(Helix(), seed=0).fit(numbers, states)
    np.testing.assert_array_equal(control.predict(NUMBERS), again.predict(NUMBERS))
    assert control.score(numbers, states) < 0.2


def test_adjusted_score_estimates_the_true_share() -> None:
    rng = np.random.default_rng(0)
    clean, _ = helix(NUMBERS)
    truth = clean.var(axis=0).sum() / (clean.var(axis=0).sum() + 16 * 4)
    adjusted = [
        heldout_r2(Helix(), NUMBERS, clean + 2 * rng.normal(size=clean.shape), seed=seed)
        for seed in range(20)
    ]
    scores = np.array([float(result["r2_adjusted"].mean()) for result in adjusted])
    assert abs(scores.mean() - truth) < 0.02
    assert np.mean([float(result["r2"].mean()) for result in adjusted]) < truth - 0.02


def test_tensors_and_two_variables() -> None:
    a, b = np.divmod(np.arange(900), 30)
    table, other = helix(np.arange(30), seed=1)[0], helix(np.arange(30), seed=2)[0]
    states = torch.tensor(table[a] + other[b])
    numbers = torch.tensor(np.column_stack([a, b]))
    result = heldout_r2(Helix(), numbers, states, splits=2)
    assert float(result["r2"].min()) > 0.999


@pytest.mark.parametrize(
    ("numbers", "states", "options", "word"),
    [
        (NUMBERS, helix(NUMBERS)[0][:50], {}, "inconsistent"),
        (np.full(100, 3), helix(NUMBERS)[0], {}, "split by value"),
        (NUMBERS, helix(NUMBERS)[0], {"test_size": 0.0}, "test_size"),
        (NUMBERS, helix(NUMBERS)[0], {"splits": 0}, "splits is 0"),
        (NUMBERS[:10], helix(NUMBERS)[0][:10], {}, "distinct numbers"),
        (np.column_stack([NUMBERS, NUMBERS[::-1]]), helix(NUMBERS)[0], {"test_size": 0.01}, "rows"),
    ],
)
def test_bad_input_is_one_line(
    numbers: np.ndarray, states: np.ndarray, options: dict[str, float], word: str
) -> None:
    with pytest.raises(MechnumError, match=word) as caught:
        heldout_r2(Helix(), numbers, states, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_states_that_do_not_vary_have_no_r2() -> None:
    numbers = np.arange(100)
    assert np.isnan(heldout_r2(Helix(), numbers, np.ones((100, 5)))["r2"]).all()
    assert np.isnan(Helix().fit(numbers, np.ones((100, 5))).score(numbers, np.ones((100, 5))))
