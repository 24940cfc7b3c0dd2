"""Intervals and p-values are SciPy's, and hold what they promise on null and planted effects."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import bootstrap, false_discovery_control, kstest, permutation_test

from mechnum import intervals
from mechnum.errors import MechnumError
from mechnum.patching.statistics import summarise


def table(values):
    return xr.DataArray(values, dims=("pair", "node")[: np.ndim(values)])


def draws(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def test_intervals_are_those_of_scipy():
    values = draws(0, 40, 3) + np.arange(3)
    found = summarise(table(values), resamples=20_000)
    for node in range(3):
        interval = bootstrap(
            (values[:, node],), np.mean, n_resamples=20_000, method="percentile", rng=1
        ).confidence_interval
        assert float(found["low"][node]) == pytest.approx(interval.low, abs=0.02)
        assert float(found["high"][node]) == pytest.approx(interval.high, abs=0.02)
    np.testing.assert_allclose(found["mean"], values.mean(0))


@pytest.mark.parametrize("n", [6, 30])
def test_p_values_are_those_of_scipys_sign_flips(n):
    values = draws(1, n, 4) + np.array([0, 0.2, 0.5, 1])
    found = summarise(table(values), resamples=20_000)
    for node in range(4):
        test = permutation_test(
            (values[:, node],), np.mean, permutation_type="samples", n_resamples=20_000, rng=2
        )
        assert float(found["p"][node]) == pytest.approx(test.pvalue, abs=1e-12 if n == 6 else 0.02)
    np.testing.assert_allclose(found["q"], false_discovery_control(found["p"].values))


def test_p_is_uniform_without_an_effect_and_q_finds_planted_ones():
    values = draws(2, 20, 2000)
    null = summarise(table(values))["p"].values
    assert kstest(null, "uniform").pvalue > 0.01
    values[:, :100] += 2.0
    q = summarise(table(values), resamples=20_000)["q"].values
    found = q < 0.1
    assert found[:100].mean() > 0.95
    assert found[100:].sum() / found.sum() < 0.2


def test_missing_cells_stay_missing_and_missing_pairs_are_left_out():
    values = draws(3, 12, 3)
    values[:, 1] = np.nan
    values[3:6, 2] = np.nan
    found = summarise(table(values))
    assert all(np.isnan(found[name][1]) for name in ("mean", "low", "high", "p", "q"))
    assert found["n"].values.tolist() == [12, 0, 9]
    np.testing.assert_allclose(found["mean"][2], np.nanmean(values[:, 2]))
    alone = summarise(table(values[:, [0, 2]]))
    np.testing.assert_allclose(found["q"][[0, 2]], alone["q"])


def test_one_pair_has_no_interval_and_constants_a_narrow_one():
    one = summarise(table([[1.0, 2.0]]))
    assert np.isnan(one["low"]).all()
    assert (one["p"] == 1).all()
    constant = summarise(table(np.ones((10, 1))))
    assert float(constant["low"][0]) == float(constant["high"][0]) == 1
    assert float(constant["p"][0]) == pytest.approx(2 / 2**10)


def test_chunks_and_seeds(monkeypatch):
    values = table(draws(4, 20, 50))
    expected = summarise(values)
    monkeypatch.setattr(intervals, "CHUNK_VALUES", 1)
    for name, cells in summarise(values).items():
        np.testing.assert_allclose(cells, expected[name])
    assert (summarise(values, seed=1)["low"] != expected["low"]).any()


def test_ties_are_ties_whatever_their_rounding():
    """0.1 + 0.2 − 0.3 is no 0 in floats, and every flip reaches 0."""
    found = summarise(table([[0.1, 0.1], [0.2, 0.2], [-0.3, 0.3]]))
    assert found["p"].values.tolist() == [1, 2 / 8]


def test_cells_that_are_zero_by_construction_are_no_hypotheses():
    values = np.random.default_rng(0).normal(1.0, 1.0, size=(12, 4))
    alone = summarise(xr.DataArray(values, dims=["pair", "cell"]))
    padded = np.concatenate([values, np.zeros((12, 20))], axis=1)
    found = summarise(xr.DataArray(padded, dims=["pair", "cell"]))
    np.testing.assert_array_equal(found["q"][:4], alone["q"])
    assert (found["q"][4:] == 1).all()
    assert (found["p"][4:] == 1).all()


def test_what_has_no_dimensions(unchecked):
    with pytest.raises(MechnumError, match="a ndarray has no named dimensions: give one variable"):
        summarise(np.zeros(3))


def test_a_dimension_that_is_not_there():
    with pytest.raises(MechnumError, match="no dimension 'prompt'"):
        summarise(table(np.ones((3, 2))), dim="prompt")
