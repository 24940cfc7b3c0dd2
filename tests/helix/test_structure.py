"""The line, the jump and the ripple of states that have them by construction."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.helix import number_structure


def test_a_line_has_a_linear_component_and_no_ripple() -> None:
    n = np.arange(100)
    directions = np.random.default_rng(0).normal(size=(1, 8))
    found = number_structure(n, n[:, None] * directions + 1)
    assert found.attrs["pc1_r2"] == pytest.approx(1)
    assert np.isnan(found.attrs["jump"])
    assert bool((np.diff(found["pc1"]) > 0).all())
    length = np.linalg.norm(directions)
    np.testing.assert_allclose(found["euclidean"], length * np.arange(1, 50))
    assert float(found["ripple"].sel(distance="euclidean").max()) < 1e-9


def test_the_jump_is_counted_in_steps() -> None:
    n = np.arange(150)
    line = n + 40.0 * (n >= 100)
    found = number_structure(n, np.column_stack([line, 2 * line]))
    assert found.attrs["jump"] == pytest.approx(41)


def test_a_circle_ripples_with_its_period() -> None:
    n = np.arange(100)
    angle = 2 * np.pi * n / 10
    states = np.column_stack([n / 20, np.cos(angle), np.sin(angle), np.full(100, 3.0)])
    found = number_structure(n, states)
    for name in ("euclidean", "cosine"):
        ripple = found["ripple"].sel(distance=name)
        assert int(ripple["period"][int(ripple.argmax("period"))]) == 10


def test_profiles_are_means_over_pairs_also_with_holes() -> None:
    rng = np.random.default_rng(0)
    n = np.array([0, 1, 2, 5, 6, 9, 14, 15, 22, 30, 31])
    states = rng.normal(size=(11, 5))
    found = number_structure(np.repeat(n, 2), np.repeat(states, 2, axis=0))
    for difference in (1, 3, 4, 12):
        pairs = [(i, j) for i in range(11) for j in range(11) if n[j] - n[i] == difference]
        at = found.sel(difference=difference)
        if not pairs:
            assert np.isnan(at["euclidean"])
            continue
        distance = np.mean([np.linalg.norm(states[i] - states[j]) for i, j in pairs])
        assert float(at["euclidean"]) == pytest.approx(distance)
        unit = states / np.linalg.norm(states, axis=1, keepdims=True)
        cosine = np.mean([1 - unit[i] @ unit[j] for i, j in pairs])
        assert float(at["cosine"]) == pytest.approx(cosine)


@pytest.mark.parametrize(
    ("numbers", "states", "word"),
    [
        (np.arange(5), np.ones((5, 2)), "5 numbers have no profile"),
        (np.arange(20), np.ones((20, 2)), "same state"),
        (np.arange(20) / 2, np.eye(20), "whole numbers"),
    ],
)
def test_refusals(numbers: np.ndarray, states: np.ndarray, word: str) -> None:
    with pytest.raises(MechnumError, match=word):
        number_structure(numbers, states)
