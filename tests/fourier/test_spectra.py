"""Spectra against sums written out, planted waves and nulls."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

from mechnum.errors import InvalidInput
from mechnum.fourier.bases import fourier_basis
from mechnum.fourier.spectra import (
    key_frequencies,
    power_by_frequency,
    spectrum,
    strongest_frequencies,
)
from tests import published


@pytest.mark.parametrize("n", [8, 9, 113])
def test_power_is_that_of_sums_written_out_and_adds_up(n):
    rows = np.random.default_rng(0).normal(size=(n, 5)) + 3
    centred = rows - rows.mean(axis=0)
    numbers = np.arange(n)
    power = []
    for k in range(1, n // 2 + 1):
        angle = 2 * np.pi * k * numbers / n
        waves = [np.cos(angle), np.sin(angle)]
        lengths = [np.linalg.norm(wave) for wave in waves]
        units = [
            wave / length for wave, length in zip(waves, lengths, strict=True) if length > 1e-6
        ]
        power.append(sum(float(np.sum((unit @ centred) ** 2)) for unit in units))
    np.testing.assert_allclose(power_by_frequency(rows), np.array(power) / np.sum(centred**2))
    assert power_by_frequency(rows).sum() == pytest.approx(1)


@pytest.mark.parametrize("n", [100, 101])
def test_planted_waves_are_found_in_the_order_of_their_power(n):
    numbers = np.arange(n)
    rng = np.random.default_rng(1)
    rows = rng.normal(0, 0.05, (n, 12))
    for k, size in ((7, 3.0), (31, 2.0), (n // 2, 1.0)):
        rows += size * np.outer(np.cos(2 * np.pi * k * numbers / n), rng.normal(size=12))
        rows += size * np.outer(np.sin(2 * np.pi * k * numbers / n), rng.normal(size=12))
    assert list(strongest_frequencies(rows, 3)) == [7, 31, n // 2]
    assert set(key_frequencies(rows)) == {7, 31, n // 2}


def test_noise_has_no_key_frequencies():
    rows = np.random.default_rng(2).normal(size=(113, 128))
    assert len(key_frequencies(rows)) == 0


@pytest.mark.parametrize("n", [10, 11])
def test_a_spectrum_is_labelled_and_keeps_the_length_of_the_rows(n):
    rows = np.random.default_rng(3).normal(2, 1, size=(4, n, 6))
    found = spectrum(rows, np.arange(5, 5 + n))
    assert found["share"].dims == ("layer", "frequency")
    np.testing.assert_allclose(found["period"], n / np.arange(1, n // 2 + 1))
    whole = found["dc"] + found["power"].sum("frequency")
    np.testing.assert_allclose(whole, np.sum(rows**2, axis=(1, 2)))
    basis = fourier_basis(n)
    for layer, table in enumerate(rows):
        power = basis.power(basis.coefficients(table)).sum(axis=1)
        np.testing.assert_allclose(found["power"][layer], power)
        np.testing.assert_allclose(found["share"][layer], power_by_frequency(table))


def test_the_constant_counts_in_no_share():
    rows = np.random.default_rng(4).normal(size=(50, 8))
    moved = spectrum(rows + 7)
    np.testing.assert_allclose(moved["share"], spectrum(rows)["share"])
    assert float(moved["dc"]) == pytest.approx(50 * np.sum((rows + 7).mean(axis=0) ** 2))


def test_the_nyquist_period_is_there():
    alternating = np.where(np.arange(20) % 2, -1.0, 1.0)
    found = spectrum(alternating)
    assert float(found["period"][-1]) == 2
    assert float(found["share"][-1]) == pytest.approx(1)


def test_rows_go_by_their_numbers_whatever_their_order_and_type():
    rows = np.random.default_rng(5).normal(size=(30, 4)).astype(np.float32)
    order = np.random.default_rng(6).permutation(30)
    expected = spectrum(rows, np.arange(7, 37))
    labelled = xr.DataArray(rows[order], dims=("number", "dimension"), coords={"number": order + 7})
    tensors = torch.from_numpy(rows[order]), torch.from_numpy(order + 7)
    for found in (spectrum(rows[order], order + 7), spectrum(labelled), spectrum(*tensors)):
        np.testing.assert_allclose(found["power"], expected["power"])
    assert expected.attrs["first"] == 7


def test_rows_that_do_not_differ_have_no_shares():
    rows = np.stack([np.full((12, 3), 0.1), np.random.default_rng(0).normal(size=(12, 3))])
    found = spectrum(rows)
    assert found["share"][0].isnull().all()
    assert (found["power"][0] == 0).all()
    assert float(found["share"][1].sum()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("rows", "numbers", "message"),
    [
        (np.zeros((3, 2)), [0, 1, 5], "2, 3, 4 are missing from 0 to 5: choose a range without"),
        (np.zeros((3, 2)), [0, 1, 1], "the numbers 1 are there more than once"),
        (np.zeros((2, 2)), [0, 1], "2 numbers have no spectrum"),
        (np.zeros((3, 2)), [0, 1, 2.5], "2.5 is no integer"),
        (np.zeros((3, 2)), [0, 1], "give one number for each row"),
        (np.full((3, 2), np.nan), [0, 1, 2], "rows of the numbers 0, 1, 2 are not finite"),
        (np.zeros((0, 2)), [], "give at least one value"),
        (np.zeros((1, 2, 3, 4)), None, "give .number., .number, d. or"),
        (np.zeros((3, 2)), ["a", "b", "c"], "the numbers are no integers"),
    ],
)
def test_what_has_no_spectrum_is_refused(rows, numbers, message):
    with pytest.raises(InvalidInput, match=message):
        spectrum(rows, numbers)


# Strongest frequencies of centred embeddings and unembeddings, in the order of the papers.
KEYS = {
    "grokking_mod113_wd1": ([37, 6, 41, 23, 39], [23, 6, 41, 39, 37]),
    "clock_pizza_p99zdpze5l": ([17, 3, 15, 25, 6, 29], [17, 3, 15]),
    "clock_pizza_l8k1hzciux": ([13, 16, 21, 17], [13, 16, 21]),
    "clock_pizza_p71frej8t7": ([29, 24, 14, 17], [29, 24, 14, 17]),
}


@pytest.mark.parametrize("name", KEYS)
def test_the_published_nets_have_their_published_frequencies(name):
    from safetensors.numpy import load_file

    tensors = load_file(published.checkpoint(name))
    p = 113 if "grokking" in name else 59
    if "embed.weight" in tensors:
        tables = tensors["embed.weight"], tensors["unembed.weight"]
    else:
        tables = tensors["embed.W_E"].T, tensors["unembed.W_U"].T
    for table, keys in zip(tables, KEYS[name], strict=True):
        found = spectrum(table[:p])
        order = found["frequency"].values[np.argsort(-found["share"].values)]
        assert set(order[: len(keys)]) == set(keys)
        assert set(strongest_frequencies(table[:p], len(keys))) == set(keys)
