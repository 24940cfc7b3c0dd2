"""Mean states seen along the helix's axes."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.helix import Circle, Helix, helix_planes
from tests.helix.synthetic import PERIODS, helix

NUMBERS = np.arange(100)


def test_a_true_helix_runs_on_unit_circles() -> None:
    numbers = np.tile(NUMBERS, 2)
    noise = np.random.default_rng(0).normal(size=(100, 16))
    states = np.tile(helix(NUMBERS)[0], (2, 1)) + np.concatenate([noise, -noise])
    result = helix_planes(Helix().fit(numbers, states), numbers, states)
    assert dict(result["coordinates"].sizes) == {"number": 100, "period": 4, "axis": 2}
    for period in PERIODS[1:]:
        plane = result["coordinates"].sel(period=period)
        angle = 2 * np.pi * NUMBERS / period
        np.testing.assert_allclose(plane.sel(axis="cos"), np.cos(angle), atol=1e-9)
        np.testing.assert_allclose(plane.sel(axis="sin"), np.sin(angle), atol=1e-9)
    np.testing.assert_allclose(result["linear"], NUMBERS, atol=1e-9)
    np.testing.assert_allclose(result["fitted_linear"], NUMBERS, atol=1e-9)
    np.testing.assert_allclose(result["fitted"], result["coordinates"], atol=1e-9)
    assert result.attrs["r2"] == pytest.approx(1)


def test_a_dropped_column_is_no_axis() -> None:
    states, _ = helix(NUMBERS)
    result = helix_planes(Helix().fit(NUMBERS, states), NUMBERS, states)
    assert bool(result["coordinates"].sel(period=2, axis="sin").isnull().all())
    assert not bool(result["coordinates"].sel(period=2, axis="cos").isnull().any())
    assert result.attrs["dropped"] == "sin(T=2)"
    circle = helix_planes(Circle().fit(NUMBERS, states), NUMBERS, states)
    assert bool(circle["linear"].isnull().all())


def test_refusals() -> None:
    states, _ = helix(NUMBERS)
    two = Helix((10,)).fit(np.column_stack([NUMBERS, NUMBERS**2]), states)
    with pytest.raises(MechnumError, match="2 variables: fit one"):
        helix_planes(two, NUMBERS, states)
    with pytest.raises(MechnumError, match="inconsistent"):
        helix_planes(Helix().fit(NUMBERS, states), NUMBERS[:50], states)
