"""No fit has seen the numbers that it is asked about."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from mechnum.errors import MechnumError
from mechnum.helix import Circle, Helix, PCAReconstruction, PermutedLabels, Polynomial
from mechnum.helix.crossfit import CrossFits, Part, parts_by_value
from tests.helix.synthetic import helix

NUMBERS = np.arange(100.0)[:, None]
STATES = helix(np.arange(100), noise=0.2)[0]


def predictions(
    estimator: Helix | PCAReconstruction,
    fitted_on: tuple[np.ndarray, np.ndarray],
    asked: tuple[np.ndarray, np.ndarray],
    parts: list[Part],
) -> np.ndarray:
    fits = CrossFits.of({"it": estimator}, fitted_on[0], asked[0], parts)
    return fits.predictions(fitted_on[1], asked[1])["it"]


@pytest.mark.parametrize("d", [16, 300])
@pytest.mark.parametrize("n_variables", [1, 2])
def test_shared_components_give_what_each_estimator_gives(d: int, n_variables: int) -> None:
    """The fast way against a clone of each estimator, fitted to each part by itself."""
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 60, size=(150, n_variables)).astype(float)
    asked = rng.integers(0, 60, size=(30, n_variables)).astype(float)
    states, true = rng.normal(size=(150, d)), rng.normal(size=(30, d))
    estimators = {
        "helix": Helix((5, 10), components=7),
        "circle": Circle((2, 10)),
        "polynomial": Polynomial(5, components=12),
        "pca": PCAReconstruction(9),
        "permuted": PermutedLabels(Helix((5, 10)), seed=3),
    }
    parts = parts_by_value(numbers, asked, 3, seed=0)
    found = CrossFits.of(estimators, numbers, asked, parts).predictions(states, true)
    for name, estimator in estimators.items():
        pca = name == "pca"
        for part in parts:
            fitted = clone(estimator).fit(
                (states if pca else numbers)[part.train], states[part.train]
            )
            expected = fitted.predict((true if pca else asked)[part.asked])
            np.testing.assert_allclose(found[name][part.asked], expected, atol=1e-8)


def test_every_row_is_asked_once_and_never_fitted_for_itself() -> None:
    asked = np.random.default_rng(0).integers(0, 120, size=(50, 1)).astype(float)
    parts = parts_by_value(NUMBERS, asked, 5, seed=0)
    rows = np.concatenate([part.asked for part in parts])
    assert sorted(rows) == list(range(50))
    for part in parts:
        assert not set(NUMBERS[part.train, 0]) & set(asked[part.asked, 0])
        assert len(part.train) >= 75


def test_with_several_variables_no_value_is_shared() -> None:
    a, b = np.divmod(np.arange(900), 30)
    numbers = np.column_stack([a, b, a + b]).astype(float)
    asked = numbers[::37]
    for part in parts_by_value(numbers, asked, 4, seed=0):
        for variable in range(3):
            assert not set(numbers[part.train, variable]) & set(asked[part.asked, variable])


def test_other_states_of_the_asked_numbers_change_nothing() -> None:
    asked = (NUMBERS[40:50], STATES[40:50])
    for estimator in (Helix(), PCAReconstruction(3)):
        plain, leaked = [], []
        for row in range(10):
            one = (asked[0][row : row + 1], asked[1][row : row + 1])
            parts = parts_by_value(NUMBERS, one[0], 5, seed=1)
            changed = STATES.copy()
            changed[40 + row] += 100
            plain.append(predictions(estimator, (NUMBERS, STATES), one, parts))
            leaked.append(predictions(estimator, (NUMBERS, changed), one, parts))
        np.testing.assert_array_equal(np.concatenate(plain), np.concatenate(leaked))


def test_without_folds_it_is_the_fit_in_sample() -> None:
    parts = parts_by_value(NUMBERS, NUMBERS[:7], None, seed=0)
    got = predictions(Helix(), (NUMBERS, STATES), (NUMBERS[:7], STATES[:7]), parts)
    np.testing.assert_allclose(got, Helix().fit(NUMBERS, STATES).predict(NUMBERS[:7]))


def test_same_seed_same_parts() -> None:
    one = parts_by_value(NUMBERS, NUMBERS, 5, seed=3)
    two = parts_by_value(NUMBERS, NUMBERS, 5, seed=3)
    other = parts_by_value(NUMBERS, NUMBERS, 5, seed=4)
    assert all(np.array_equal(a.asked, b.asked) for a, b in zip(one, two, strict=True))
    assert not all(np.array_equal(a.asked, b.asked) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("folds", "word"), [(1, "give 2 or more"), (0, "whole number"), (2, "more prompts")]
)
def test_impossible_folds(folds: int, word: str) -> None:
    numbers = NUMBERS if word != "more prompts" else np.array([[3.0]])
    with pytest.raises(MechnumError, match=word):
        parts_by_value(numbers, numbers, folds, seed=0)
