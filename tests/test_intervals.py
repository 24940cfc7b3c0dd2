"""Intervals are those of a plain bootstrap, cover what they promise, and take any table."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binomtest

from mechnum import intervals
from mechnum.errors import MechnumError
from mechnum.intervals import mean_interval, share_interval


def pairs(values) -> xr.DataArray:
    values = np.asarray(values, dtype=float)
    return xr.DataArray(values, dims=("pair", "layer")[: values.ndim])


def test_mean_and_count_are_exact():
    table = mean_interval(pairs([[1.0, 4.0], [2.0, 6.0], [6.0, 8.0]]))
    assert table["mean"].values.tolist() == [3.0, 6.0]
    assert table["n"].values.tolist() == [3, 3]
    assert table["mean"].dims == ("layer",)


def test_interval_agrees_with_a_plain_percentile_bootstrap():
    rng = np.random.default_rng(1)
    values = rng.gamma(2.0, 1.0, (80, 2))
    table = mean_interval(pairs(values), seed=3)
    resamples = np.array([values[rng.integers(0, 80, 80)].mean(axis=0) for _ in range(20_000)])
    low, high = np.quantile(resamples, [0.025, 0.975], axis=0)
    # Two bootstraps differ by the noise of their quantiles, a few percent of the width.
    room = 0.08 * (high - low)
    assert np.all(np.abs(table["low"] - low) < room)
    assert np.all(np.abs(table["high"] - high) < room)


def test_interval_covers_the_true_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    values = rng.normal(0.0, 1.0, (60, 1000))
    table = mean_interval(pairs(values))
    covered = float(((table["low"] < 0) & (table["high"] > 0)).mean())
    assert covered == pytest.approx(0.95, abs=0.025)


def test_missing_values_are_left_out():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = mean_interval(pairs([[1.0, np.nan, 5.0], [3.0, np.nan, np.nan]]))
    assert table["mean"].values.tolist()[::2] == [2.0, 5.0]
    assert np.isnan(table["mean"].values[1])
    assert table["n"].values.tolist() == [2, 0, 1]
    assert np.isnan(table["low"].values[1:]).all()
    assert np.isfinite(table["low"].values[0])


def test_one_pair_has_no_interval():
    table = mean_interval(pairs([[1.0, 2.0]]))
    assert table["mean"].values.tolist() == [1.0, 2.0]
    assert np.isnan(table["low"]).all()


def test_same_seed_same_interval_and_global_generator_untouched(monkeypatch):
    values = pairs(np.random.default_rng(0).normal(size=(50, 3)))
    before = np.random.get_state()[1].copy()
    first = mean_interval(values, seed=5)
    assert (np.random.get_state()[1] == before).all()
    assert mean_interval(values, seed=5).identical(first)
    assert not mean_interval(values, seed=6).identical(first)


def test_interval_is_that_of_gathered_resamples():
    """The slow way: each resample's pairs one by one, missing ones left out."""
    values = np.random.default_rng(0).normal(size=(9, 4))
    values[:7, 1] = np.nan
    values[3, 2] = np.nan
    table = mean_interval(pairs(values), resamples=500)
    (stream,) = np.random.SeedSequence(0).spawn(1)
    drawn = np.random.default_rng(stream).multinomial(9, np.full(9, 1 / 9), size=500)
    for cell in range(4):
        gathered = [np.repeat(values[:, cell], count) for count in drawn]
        means = [np.nanmean(one) for one in gathered if np.isfinite(one).any()]
        low, high = np.quantile(means, [0.025, 0.975])
        assert float(table["low"][cell]) == pytest.approx(low, abs=1e-12)
        assert float(table["high"][cell]) == pytest.approx(high, abs=1e-12)


def test_chunks_do_not_change_the_interval(monkeypatch):
    values = pairs(np.random.default_rng(0).normal(size=(50, 3)))
    whole = mean_interval(values)
    monkeypatch.setattr(intervals, "CHUNK_VALUES", 1)
    xr.testing.assert_allclose(mean_interval(values), whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": "prompt"}, "no dimension 'prompt'"),
        ({"confidence": 95.0}, "confidence of 95"),
        ({"resamples": 0}, "0 resamples"),
    ],
)
def test_what_makes_no_interval_is_refused(changes, message):
    with pytest.raises(MechnumError, match=message):
        mean_interval(pairs([[1.0], [2.0]]), **changes)
    with pytest.raises(MechnumError, match="dimension 'pair' has no entry"):
        mean_interval(pairs(np.zeros((0, 2))))


def test_shares_have_wilson_intervals():
    correct = np.array([[True] * 7 + [False] * 3, [True] * 10])
    share, low, high = share_interval(correct)
    for row, count in enumerate((7, 10)):
        expected = binomtest(count, 10).proportion_ci(method="wilson")
        assert share[row] == count / 10
        assert (low[row], high[row]) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert low[1] < 0.95
    assert all(np.isnan(one).all() for one in share_interval(np.ones((3, 0), dtype=bool)))
