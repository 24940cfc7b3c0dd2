"""Held-out numbers: on a real circle in order, on none in no order."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.helix import circle_continuity

NUMBERS = np.arange(100)


def circle(noise: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * NUMBERS / 100
    states = np.stack([np.cos(angle), np.sin(angle)], 1) @ rng.normal(size=(2, 12)) + 3
    return states + noise * rng.normal(size=states.shape)


def test_a_circle_is_continuous() -> None:
    found = circle_continuity(NUMBERS, circle(0.02))
    assert found["number"].values[found["held_out"]].tolist() == list(range(3, 100, 10))
    assert found.attrs["n_held_out"] == 10
    assert found.attrs["rank_agreement"] == pytest.approx(1)
    assert found.attrs["p"] == pytest.approx(1e-4)
    assert found.attrs["angle_error"] < 2
    np.testing.assert_allclose(found["expected"], 3.6 * NUMBERS)


def test_the_coordinates_are_those_of_a_fit_without_the_digit() -> None:
    states = circle(0.3)
    found = circle_continuity(NUMBERS, states, digit=7)
    fitted = NUMBERS % 10 != 7
    angle = 2 * np.pi * NUMBERS / 100
    design = np.stack([np.ones(100), np.cos(angle), np.sin(angle)], 1)
    weights = np.linalg.lstsq(design[fitted], states[fitted], rcond=None)[0]
    expected = (states - weights[0]) @ np.linalg.pinv(weights[1:])
    np.testing.assert_allclose(found["coordinates"], expected, atol=1e-8)
    # Rank agreement by hand: ranks of the held-out angles against 0 … 9.
    held = np.arctan2(expected[7::10, 1], expected[7::10, 0]) % (2 * np.pi)
    ranks = np.argsort(np.argsort(held))
    turns = np.exp(2j * np.pi * (ranks - np.arange(10)) / 10)
    assert found.attrs["rank_agreement"] == pytest.approx(abs(turns.mean()))


def test_states_without_order_are_at_chance() -> None:
    agreements, p_values, errors = [], [], []
    for seed in range(30):
        states = np.random.default_rng(seed).normal(size=(100, 12))
        found = circle_continuity(NUMBERS, states, permutations=199)
        agreements.append(found.attrs["rank_agreement"])
        p_values.append(found.attrs["p"])
        errors.append(found.attrs["angle_error"])
    assert 0.15 < np.mean(agreements) < 0.45  # about 10^(-1/2)
    assert 0.3 < np.mean(p_values) < 0.7
    assert 75 < np.mean(errors) < 105


def test_a_reversed_order_is_no_agreement() -> None:
    """The held-out numbers run around the circle the other way."""
    states = circle(0.0)
    states[3::10] = states[3::10][::-1]
    assert circle_continuity(NUMBERS, states).attrs["rank_agreement"] < 0.4


def test_several_rows_of_a_number_and_same_seed() -> None:
    rows = np.tile(NUMBERS, 2)
    states = np.concatenate([circle(0.5, 0), circle(0.5, 0)])
    one, two = (circle_continuity(rows, states, seed=4) for _ in range(2))
    assert one.identical(two)
    np.testing.assert_allclose(
        one["coordinates"], circle_continuity(NUMBERS, circle(0.5, 0))["coordinates"], atol=1e-8
    )


@pytest.mark.parametrize(("period", "numbers"), [(50, np.arange(200)), (100, np.arange(300))])
def test_numbers_a_period_apart_are_one_point(period: int, numbers: np.ndarray) -> None:
    """A perfect circle has the same cyclic order however often it is run around."""
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * numbers[:, None] / period
    states = np.hstack([np.cos(angle), np.sin(angle)]) @ rng.normal(size=(2, 12))
    states += 1e-3 * rng.normal(size=states.shape)
    found = circle_continuity(numbers, states, period)
    assert found.attrs["rank_agreement"] == pytest.approx(1)
    assert found.attrs["p"] < 0.05


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"period": 10}, "lie at 1 places of a circle of period 10, too few for an order"),
        ({"period": 20}, "lie at 2 places of a circle of period 20"),
        ({"numbers": NUMBERS + 0.5}, "whole numbers"),
        ({"numbers": np.arange(0, 1000, 10)}, "0 of 100 numbers end in 3"),
        ({"digit": 10}, "10 is no digit"),
        ({"period": 2}, "period 2 has no circle"),
        ({"period": 0}, "period 0"),
        ({"permutations": 0}, "permutations is 0"),
    ],
)
def test_refusals(arguments: dict, word: str) -> None:
    with pytest.raises(MechnumError, match=word):
        circle_continuity(**{"numbers": NUMBERS, "states": circle(0.1), **arguments})
