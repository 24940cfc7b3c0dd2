"""The measurement of a model's numbers: its parts, its defaults, and where it comes from."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.fourier import amplitudes, number_spectra, residue_probe, spectrum_test, state_rows

QUICK = {"draws": 19, "permutations": 5}


@pytest.fixture(scope="module")
def model():
    return mn.load("adder-gptj")


def test_the_parts_are_those_of_the_library(model):
    found = number_spectra(model, range(40), moduli=(2, 5), seed=3, command="here", **QUICK)
    rows = state_rows(model, range(40))
    for name, expected in (
        ("spectrum", spectrum_test(rows, draws=19, seed=3)),
        ("residues", residue_probe(rows, (2, 5), permutations=5, seed=3)),
        ("amplitudes", amplitudes(rows, (2, 5, 10), linear=True)),
    ):
        xr.testing.assert_equal(found[name].to_dataset(), expected)
    assert found["prompts"].attrs["text"] == "39"
    attrs = found.attrs
    assert (attrs["seed"], attrs["command"], attrs["of"], attrs["first"]) == (3, "here", "resid", 0)
    assert {"model_fingerprint", "processing", "versions", "bos", "null", "folds"} <= set(attrs)
    assert not {"null_seed", "probe_seed"} & set(attrs)


def test_the_bundled_adder_has_the_periods_of_decimal_numbers(model):
    """Its embedding, and every layer's state of the number: nothing but T = 2, 5, 10 and 100."""
    found = number_spectra(model, draws=199, permutations=39, moduli=(2, 3, 5, 7, 10))
    spectrum = found["spectrum"].sel(layer=-1)
    sure = spectrum["period"].values[spectrum["p_family"].values < 0.05]
    assert set(sure) == {2, 5, 10, 100}
    kappas = found["residues"]["kappa"]
    np.testing.assert_allclose(kappas.sel(modulus=[2, 5, 10]), 1, atol=0.03)
    assert float(kappas.sel(modulus=[3, 7]).max()) < 0.1
    assert float(found["amplitudes"]["r2"].min()) > 0.95


def test_few_numbers_have_a_spectrum_and_say_what_they_have_not(model):
    found = number_spectra(model, range(5), moduli=(2,), **QUICK)
    assert "amplitudes" not in found.children
    assert "too few numbers" in str(found["residues"]["status"].values.ravel()[0])
    assert mn.report.page_of(found).html()


def test_counts_are_measured_beside_and_must_be_complete(model):
    counts = xr.DataArray(
        np.where(np.arange(60) % 10, 3.0, 300.0), dims="number", coords={"number": np.arange(60)}
    )
    found = number_spectra(model, range(50), moduli=(2,), counts=counts, **QUICK)
    expected = spectrum_test(np.log1p(counts[:50]), draws=19)
    xr.testing.assert_equal(found["counts"].to_dataset(), expected)
    with pytest.raises(MechnumError, match="the counts say nothing of 60, 61"):
        number_spectra(model, range(62), counts=counts)


@pytest.mark.slow
def test_smollm2_codes_the_last_digit():
    """Numbers of several tokens at their last one: a code of the digit has all harmonics of 10."""
    try:
        model = mn.load("smollm2")
    except MechnumError as absent:
        pytest.skip(str(absent))
    found = number_spectra(model, digits="last", template="The number {n}", draws=199,
                           permutations=39, moduli=(2, 3, 5, 7, 10))  # fmt: skip
    spectrum = found["spectrum"].sel(layer=-1)
    sure = set(spectrum["period"].values[spectrum["p_family"].values < 0.05].round(6))
    assert sure == {10, 5, 3.333333, 2.5, 2}
    kappas = found["residues"]["kappa"]
    assert float(kappas.sel(modulus=[2, 5, 10]).min()) > 0.7
    assert float(kappas.sel(modulus=[3, 7]).max()) < 0.2
