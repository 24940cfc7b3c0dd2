"""The helix and its rivals: exact recovery, agreement with least squares, invariances."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone

from mechnum.errors import MechnumError
from mechnum.helix import Circle, Helix, PCAReconstruction, Polynomial
from tests.helix.synthetic import PERIODS, columns, helix

NUMBERS = np.arange(100)


def r2(states: np.ndarray, predicted: np.ndarray) -> float:
    return 1 - np.sum((states - predicted) ** 2) / np.sum((states - states.mean(axis=0)) ** 2)


def test_a_helix_gives_back_its_directions() -> None:
    states, directions = helix(NUMBERS)
    fitted = Helix().fit(NUMBERS, states)
    assert fitted.rank_ == 9
    assert fitted.dropped_ == ("sin(T=2)",)
    assert fitted.coef_.shape == (9, 16)
    np.testing.assert_allclose(fitted.coef_, directions, atol=1e-10)
    assert fitted.score(NUMBERS, states) == pytest.approx(1)


def test_noise_moves_the_directions_by_its_own_size() -> None:
    states, directions = helix(NUMBERS, noise=0.1)
    fitted = Helix().fit(NUMBERS, states)
    errors = (fitted.coef_ - directions) / 0.1
    design = columns(NUMBERS)
    expected = np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    # Each coefficient is off by its standard error; 16 dimensions pin the ratio to about 20 %.
    ratio = np.sqrt(np.mean(errors**2, axis=1)) / expected
    assert np.all((ratio > 0.5) & (ratio < 1.6))


def test_true_periods_score_higher_than_others() -> None:
    states, _ = helix(NUMBERS, noise=0.1)
    whole = Helix(PERIODS).fit(NUMBERS, states).score(NUMBERS, states)
    for left_out in PERIODS:
        rest = tuple(period for period in PERIODS if period != left_out)
        wrong = (*rest, 7.3)
        assert Helix(rest).fit(NUMBERS, states).score(NUMBERS, states) < whole - 0.05
        assert Helix(wrong).fit(NUMBERS, states).score(NUMBERS, states) < whole - 0.05


def test_circle_and_polynomial_score_lower_on_a_helix() -> None:
    states, _ = helix(NUMBERS, noise=0.1)
    scores = [
        estimator.fit(NUMBERS, states).score(NUMBERS, states)
        for estimator in (Helix(), Circle(), Polynomial(9))
    ]
    assert scores[0] > 0.99
    assert scores[0] > scores[1] + 0.01
    assert scores[1] > scores[2] + 0.3


@pytest.mark.parametrize("components", [3, 100])
def test_helix_is_least_squares_on_the_principal_components(components: int) -> None:
    states, _ = helix(NUMBERS, d=20, noise=0.5)
    mean = states.mean(axis=0)
    axes = np.linalg.svd(states - mean, full_matrices=False)[2][:components]
    design = columns(NUMBERS)
    weights = np.linalg.lstsq(design, (states - mean) @ axes.T)[0]
    expected = design @ weights @ axes + mean
    fitted = Helix(components=components).fit(NUMBERS, states)
    np.testing.assert_allclose(fitted.predict(NUMBERS), expected, atol=1e-9)
    assert fitted.components_.shape == (min(components, 20), 20)
    assert fitted.score(NUMBERS, states) == pytest.approx(r2(states, expected))


def test_polynomial_is_least_squares_on_powers_of_the_scaled_number() -> None:
    states, _ = helix(NUMBERS, noise=0.5)
    powers = np.vander(NUMBERS / 50 - 1, 8)
    expected = powers @ np.linalg.lstsq(powers, states)[0]
    fitted = Polynomial(7).fit(NUMBERS, states)
    np.testing.assert_allclose(fitted.predict(NUMBERS), expected, atol=1e-8)


def test_polynomial_does_not_depend_on_the_scale_of_the_number() -> None:
    wave = np.sin(2 * np.pi * NUMBERS / 50)
    raw = np.vander(NUMBERS.astype(float), 10)
    handicapped = r2(wave, raw @ np.linalg.lstsq(raw, wave, rcond=1e-15 * 100)[0])
    fitted = Polynomial(9).fit(NUMBERS, wave)
    assert fitted.score(NUMBERS, wave) == pytest.approx(0.99997, abs=5e-6)
    assert handicapped < 0.999  # what the scaling is for
    for scale, shift in ((3.0, 1000.0), (-0.01, 5.0), (1e-6, -2.0)):
        moved = scale * NUMBERS + shift
        again = Polynomial(9).fit(moved, wave)
        np.testing.assert_allclose(again.predict(moved), fitted.predict(NUMBERS), atol=1e-7)


def test_circle_is_the_helix_without_its_linear_column() -> None:
    states, _ = helix(NUMBERS, noise=0.1)
    circle = Circle((5, 10)).fit(NUMBERS, states)
    same = Helix((5, 10), linear=False).fit(NUMBERS, states)
    assert "linear" not in circle.columns_ + circle.dropped_
    np.testing.assert_array_equal(circle.predict(NUMBERS), same.predict(NUMBERS))
    assert clone(circle).get_params() == {"periods": (5, 10), "components": 100}


def test_projection_is_the_pseudo_inverse() -> None:
    states, _ = helix(NUMBERS, noise=0.3)
    fitted = Helix().fit(NUMBERS, states)
    np.testing.assert_allclose(fitted.project(fitted.predict(NUMBERS)), columns(NUMBERS), atol=1e-9)
    coordinates = fitted.project(states)
    np.testing.assert_array_equal(coordinates[:, 0], 1)
    expected = np.linalg.lstsq(fitted.coef_[1:].T, (states - fitted.coef_[0]).T)[0].T
    np.testing.assert_allclose(coordinates[:, 1:], expected, atol=1e-9)
    # Writing the coordinates of what was written changes nothing.
    once = fitted.inverse_project(coordinates)
    np.testing.assert_allclose(fitted.inverse_project(fitted.project(once)), once, atol=1e-9)


def test_unseen_digits_land_in_order_on_the_loop() -> None:
    states, _ = helix(NUMBERS, noise=0.05)
    seen = NUMBERS % 10 != 3
    fitted = Helix((100,), linear=False).fit(NUMBERS[seen], states[seen])
    names = list(fitted.columns_)
    points = fitted.project(Helix().fit(NUMBERS, states).predict(NUMBERS))
    angles = np.unwrap(
        np.arctan2(
            points[~seen, names.index("sin(T=100)")], points[~seen, names.index("cos(T=100)")]
        )
    )
    assert np.all(np.diff(angles) > 0)


def test_two_variables_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 100, size=(2, 500))
    table, _ = helix(NUMBERS, seed=1)
    other, _ = helix(NUMBERS, seed=2)
    states = table[a] + other[b]
    both = np.column_stack([a, b])
    fitted = Helix().fit(both, states)
    assert fitted.rank_ == 17
    assert fitted.score(both, states) == pytest.approx(1)
    assert Helix().fit(a, states).score(a, states) < 0.7
    summed = np.column_stack([a, b, a + b])
    assert Helix().fit(summed, states + helix(np.arange(199))[0][a + b]).rank_ == 24


def test_pca_reconstruction_is_the_truncated_svd() -> None:
    states, _ = helix(NUMBERS, noise=0.5)
    mean = states.mean(axis=0)
    axes = np.linalg.svd(states - mean, full_matrices=False)[2][:4]
    fitted = PCAReconstruction(4).fit(states)
    expected = (states - mean) @ axes.T @ axes + mean
    np.testing.assert_allclose(fitted.predict(states), expected, atol=1e-9)
    np.testing.assert_allclose(fitted.predict(expected), expected, atol=1e-9)
    assert fitted.score(states) == pytest.approx(r2(states, expected))
    assert fitted.project(states).shape == (100, 4)


def test_components_are_capped_by_rows_and_dimensions() -> None:
    states, _ = helix(NUMBERS, d=40, noise=0.1)
    assert Helix().fit(NUMBERS[:30], states[:30]).components_.shape == (29, 40)
    assert Helix().fit(NUMBERS, states).components_.shape == (40, 40)
    assert PCAReconstruction(500).fit(states[:30]).n_components_ == 29


def test_both_solvers_of_the_components_agree() -> None:
    numbers = np.tile(NUMBERS, 2)
    states, _ = helix(numbers, d=90, noise=0.3)
    rows = 2 * 90
    wide = Helix(components=8).fit(numbers[: rows - 1], states[: rows - 1])
    tall = Helix(components=8).fit(numbers[:rows], states[:rows])
    mean = states[:rows].mean(axis=0)
    axes = np.linalg.svd(states[:rows] - mean, full_matrices=False)[2][:8]
    np.testing.assert_allclose(tall.components_.T @ tall.components_, axes.T @ axes, atol=1e-9)
    assert np.abs(wide.predict(NUMBERS) - tall.predict(NUMBERS)).max() < 0.5


def test_score_weights_dimensions_by_variance() -> None:
    states, _ = helix(NUMBERS, d=4)
    noise = 1e-3 * np.random.default_rng(5).normal(size=(100, 30))
    padded = np.hstack([states, noise])
    assert Helix().fit(NUMBERS, padded).score(NUMBERS, padded) > 0.999


@pytest.mark.parametrize("kind", ["list", "float", "int32", "tensor", "bfloat16", "needs_grad"])
def test_numbers_and_states_of_any_kind(kind: str) -> None:
    states, _ = helix(NUMBERS)
    numbers = {
        "list": NUMBERS.tolist(),
        "float": NUMBERS.astype(float),
        "int32": NUMBERS.astype(np.int32),
        "tensor": torch.arange(100),
        "bfloat16": torch.arange(100),
        "needs_grad": torch.arange(100.0, requires_grad=True),
    }[kind]
    given = {
        "bfloat16": torch.tensor(states).bfloat16(),
        "needs_grad": torch.tensor(states, requires_grad=True),
        "tensor": torch.tensor(states),
        "list": states.tolist(),
    }.get(kind, states)
    fitted = Helix().fit(numbers, given)
    predicted = fitted.predict(numbers)
    assert predicted.dtype == np.float64
    tolerance = 0.05 if kind == "bfloat16" else 1e-9
    np.testing.assert_allclose(predicted, states, atol=tolerance)
    assert fitted.score(numbers, given) == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(fitted.project(given), fitted.project(states), atol=tolerance)


def test_one_dimensional_states_stay_one_dimensional() -> None:
    wave = np.cos(2 * np.pi * NUMBERS / 10)
    fitted = Helix((10,)).fit(NUMBERS, wave)
    assert fitted.predict(NUMBERS).shape == (100,)
    assert fitted.coef_.shape == (4, 1)
    assert fitted.project(wave).shape == (100, 4)


def test_a_single_period() -> None:
    states = np.outer(np.cos(2 * np.pi * NUMBERS / 7), [1.0, 2.0, 3.0])
    fitted = Helix((7,)).fit(NUMBERS, states)
    assert fitted.columns_ == ("constant", "linear", "cos(T=7)", "sin(T=7)")
    np.testing.assert_allclose(fitted.coef_[2], [1, 2, 3], atol=1e-10)


STATES = helix(NUMBERS)[0]
WITH_NAN = np.where(np.eye(100, 16) == 1, np.nan, STATES)


@pytest.mark.parametrize(
    ("numbers", "states", "word"),
    [
        (np.where(NUMBERS == 3, np.nan, NUMBERS), STATES, "NaN"),
        (np.where(NUMBERS == 3, np.inf, NUMBERS), STATES, "infinity"),
        (NUMBERS, WITH_NAN, "NaN"),
        (NUMBERS[:0], STATES[:0], "0 sample"),
        (NUMBERS[:8], STATES[:8], "8 distinct numbers"),
        (NUMBERS[:99], STATES, "inconsistent numbers of samples"),
        (["one"] * 100, STATES, "one"),
        (NUMBERS, STATES[:, :, None], "dim 3"),
        (NUMBERS, None, "None"),
    ],
)
@pytest.mark.parametrize("estimator", [Helix(), Circle((2, 5, 10, 20, 100)), Polynomial(8)])
def test_bad_input_is_one_line(
    estimator: Helix | Polynomial, numbers: object, states: object, word: str
) -> None:
    with pytest.raises(MechnumError, match=word) as caught:
        estimator.fit(numbers, states)
    message = str(caught.value)
    assert "\n" not in message
    assert ": give " in message
    assert isinstance(caught.value, ValueError)


def test_bad_input_after_the_fit_is_one_line() -> None:
    fitted = Helix().fit(NUMBERS, STATES)
    with pytest.raises(MechnumError, match=r"3 dimensions .* have 16: give"):
        fitted.project(STATES[:, :3])
    with pytest.raises(MechnumError, match="NaN"):
        fitted.project(WITH_NAN)
    with pytest.raises(MechnumError, match="2 features"):
        fitted.predict(np.column_stack([NUMBERS, NUMBERS]))
    with pytest.raises(MechnumError, match="components is 0"):
        Helix(components=0).fit(NUMBERS, STATES)
    with pytest.raises(MechnumError, match="two or more"):
        PCAReconstruction().fit(STATES[:1])


def test_the_data_and_the_global_generator_are_left_alone() -> None:
    states = STATES.copy()
    before = np.random.get_state()[1].copy()
    Helix().fit(NUMBERS, states)
    PCAReconstruction().fit(states)
    np.testing.assert_array_equal(states, STATES)
    np.testing.assert_array_equal(np.random.get_state()[1], before)
