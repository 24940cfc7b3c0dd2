"""Tests of spectra: draws against shuffles written out, rates under the null, planted spikes."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import InvalidInput
from mechnum.fourier import nulls
from mechnum.fourier.nulls import spectrum_test
from mechnum.fourier.spectra import power_by_frequency, spectrum

from .rows import circles

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [9, 10])
def test_shuffled_spectra_are_those_of_shuffled_rows(n):
    rows = RNG.normal(1, 1, size=(2, n, 4))
    drawn = nulls._shuffled(nulls._inner_products(rows), 40, np.random.default_rng(7))
    orders = np.random.default_rng(7).permuted(np.tile(np.arange(n), (40, 1)), axis=1)
    for table, own in zip(rows, drawn, strict=True):
        expected = [power_by_frequency(table[order]) for order in orders]
        np.testing.assert_allclose(own, expected, atol=1e-6)


@pytest.mark.parametrize("n", [30, 31])
def test_gaussian_spectra_are_those_of_gaussian_rows(n):
    rows = RNG.normal(size=(1, n, 5)) * [3, 1, 1, 0.3, 0.1]
    drawn = nulls._gaussian(nulls._inner_products(rows), 3000, np.random.default_rng(1))[0]
    covariance = np.cov(rows[0].T)
    mixed = np.linalg.cholesky(covariance)
    expected = np.array(
        [power_by_frequency(RNG.normal(size=(n, 5)) @ mixed.T) for _ in range(3000)]
    )
    # Means within five standard errors, spreads within 10 %.
    error = expected.std(axis=0) / np.sqrt(3000)
    assert (np.abs(drawn.mean(axis=0) - expected.mean(axis=0)) < 7 * error).all()
    np.testing.assert_allclose(drawn.std(axis=0), expected.std(axis=0), rtol=0.1)


def test_p_values_are_counts_of_the_draws():
    rows = circles(np.arange(24), (6,), 5, 1.0)
    found = spectrum_test(rows, draws=99, seed=3)
    share = spectrum(rows)["share"].values
    generator = np.random.default_rng(np.random.SeedSequence(3))
    drawn = nulls._shuffled(nulls._inner_products(rows[None]), 99, generator)[0]
    np.testing.assert_allclose(found["p"], (1 + (drawn >= share).sum(axis=0)) / 100)
    largest = drawn.max(axis=1)
    np.testing.assert_allclose(found["p_family"], [(1 + (largest >= s).sum()) / 100 for s in share])
    np.testing.assert_allclose(found["null_mean"], drawn.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(found["null_high"], np.quantile(drawn, 0.975, axis=0), rtol=1e-5)
    assert float(found["family_high"]) == pytest.approx(np.quantile(largest, 0.95), rel=1e-5)
    assert (found["p"] <= found["p_family"]).all()


def test_rows_without_order_are_called_a_spike_as_often_as_said():
    """Heavy tails and a covariance far from the identity, which would fool a fixed threshold."""
    heavy = RNG.standard_t(3, size=(200, 40, 10)) * np.linspace(0.1, 5, 10)
    found = spectrum_test(heavy, draws=199, seed=1)
    sure = (found["p_family"] <= 0.05).any("frequency").values
    assert 0.01 < sure.mean() < 0.10
    assert abs(float((found["p"] <= 0.05).mean()) - 0.05) < 0.01


def test_a_planted_spike_is_found_and_no_other():
    found = spectrum_test(circles(np.arange(100), (10,), 64, 1.0), draws=199)
    sure = found["period"].values[found["p_family"].values <= 0.05]
    assert sure.tolist() == [10]
    assert float(found["p_family"].sel(frequency=10)) == pytest.approx(1 / 200)


@pytest.mark.parametrize("null", ["shuffled", "gaussian"])
def test_the_seed_says_all_and_tables_do_not_depend_on_their_company(null, monkeypatch):
    rows = RNG.normal(size=(5, 30, 4))
    found = spectrum_test(rows, null=null, draws=60, seed=2)
    again = spectrum_test(rows, null=null, draws=60, seed=2)
    assert found.identical(again)
    assert not found["p"].equals(spectrum_test(rows, null=null, draws=60, seed=4)["p"])
    alone = spectrum_test(rows[3], null=null, draws=60, seed=2)
    np.testing.assert_allclose(alone["p"], found["p"][3])
    monkeypatch.setattr(nulls, "_HELD_VALUES", 1)
    monkeypatch.setattr(nulls, "_CACHED_VALUES", 4000)
    in_parts = spectrum_test(rows, null=null, draws=60, seed=2)
    if null == "shuffled":  # Gaussian draws come in another order there.
        np.testing.assert_allclose(in_parts["p"], found["p"])
    np.testing.assert_allclose(in_parts["null_mean"], found["null_mean"], atol=0.02)


def test_global_generators_are_not_touched():
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    spectrum_test(RNG.normal(size=(20, 3)), draws=5)
    np.testing.assert_array_equal(before, np.random.get_state()[1])


def test_rows_that_are_all_the_same_have_no_p_value():
    rows = np.stack([np.ones((12, 3)), RNG.normal(size=(12, 3))])
    found = spectrum_test(rows, draws=19)
    assert found["p"][0].isnull().all()
    assert found["family_high"].isnull().values.tolist() == [True, False]


def test_a_single_value_for_each_number_has_a_spectrum_too():
    """Counts that prefer multiples of 10: spikes without any model."""
    counts = np.where(np.arange(100) % 10 == 0, 50.0, 1.0) + RNG.random(100)
    found = spectrum_test(counts, draws=199)
    sure = set(found["period"].values[found["p_family"].values <= 0.05].tolist())
    assert {10.0, 5.0, 2.5} <= sure


def test_bad_requests_are_refused(unchecked):
    with pytest.raises(InvalidInput, match="unknown null 'white': use 'shuffled' or 'gaussian'"):
        spectrum_test(np.ones((5, 2)), null="white")
    with pytest.raises(InvalidInput, match="the seed is -2: give"):
        spectrum_test(np.ones((5, 2)), seed=-2)
    with pytest.raises(InvalidInput, match="draws is 0"):
        spectrum_test(np.ones((5, 2)), draws=0)
