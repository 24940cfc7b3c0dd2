"""Periods that neurons read and write, planted and in trained nets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.fourier import neuron_rows
from mechnum.models import untrained
from mechnum.neurons import fit, periods
from tests.neurons.planted import OPERAND_K, P, Planted, planted, wave

PERIODS = (P / 3, P / 5, P / OPERAND_K)


@pytest.fixture(scope="module")
def planted_periods():
    """Neurons that write the period they read, or another, or none; and those that read none."""
    neurons = [
        *(Planted(wave(k, 2, 0.3 * k), writes=wave(k, -1.5, k)) for k in (3, 4, 5) * 4),
        Planted(wave(5, 1, 1), writes=wave(3, 1, 0)),
        Planted(wave(5, 1, 1), writes=wave(8, 1, 0)),
        Planted(wave(3, 1, 0), writes=lambda c: np.full(len(c), 2.5)),
        Planted(of_operands={"a_c": 1.0}, writes=wave(4, 1, 0)),
    ]
    model, task = planted(neurons), mn.tasks.modular_addition(P)
    fitted = fit(model, task, periods=PERIODS, variables=("a", "b", "a+b"), linear=False)
    return model, fitted, periods(model, fitted)


def test_planted_periods_are_found(planted_periods):
    _, _, found = planted_periods
    own = found.sel(layer=1)
    np.testing.assert_allclose(own["t_in"][:12], [P / k for k in (3, 4, 5) * 4])
    np.testing.assert_allclose(own["t_out"][:12], own["t_in"][:12])
    np.testing.assert_array_equal(own["group"][:12], own["t_in"][:12])
    np.testing.assert_allclose(own["t_out"][12:14], [P / 3, P / 8])
    assert float(own["group"][12]) == pytest.approx(P / 3)
    assert np.isnan(own["group"][13])
    assert own["reason"][:16].values.tolist() == [
        *[""] * 14,
        "writes the same to all numbers",
        "waves in a+b are below 1% of the fit",
    ]
    assert own["t_in"][15:].isnull().all()
    assert set(own["reason"][16:].values) == {"constant"}
    # The ramps of layer 0 write to no logit.
    assert found["t_out"].sel(layer=0).isnull().all()


def test_planted_agreement_is_more_than_chance(planted_periods):
    _, _, found = planted_periods
    rows = ["7.66667", "4.6", "5.75", "other"]
    assert found["written"].values.tolist() == rows
    np.testing.assert_array_equal(found["count"], [[4, 0, 0, 0], [1, 4, 0, 1], [0, 0, 4, 0]])
    assert float(found["agreement"]) == pytest.approx(12 / 14)
    assert float(found["agreement_null"]) == pytest.approx((4 * 5 + 6 * 4 + 4 * 4) / 14**2)
    assert float(found["agreement_p"]) < 0.001


def test_the_null_is_that_of_shuffled_neurons(planted_periods):
    """Against shuffles of T_out written out, for neurons that agree about as chance would."""
    generator = np.random.default_rng(0)
    read, written = generator.choice([3, 4, 5], 20), generator.choice([3, 4, 5, 8], 20)
    model = planted([Planted(wave(i, 1, 0), writes=wave(o, 1, 0)) for i, o in zip(read, written)])
    fitted = fit(
        model, mn.tasks.modular_addition(P), periods=PERIODS, variables=("a+b",), linear=False
    )
    found = periods(model, fitted, [f"neuron 1.{n}" for n in range(20)], permutations=20_000)
    agree = np.array([(read == generator.permutation(written)).sum() for _ in range(20_000)])
    observed = (read == written).sum()
    assert float(found["agreement"]) == pytest.approx(observed / 20)
    assert float(found["agreement_null"]) == pytest.approx(agree.mean() / 20, abs=0.01)
    assert float(found["agreement_p"]) == pytest.approx((agree >= observed).mean(), abs=0.015)
    again, other = (
        periods(model, fitted, [f"neuron 1.{n}" for n in range(20)], permutations=5001, seed=seed)
        for seed in (0, 1)
    )
    assert float(again["agreement_p"]) != float(other["agreement_p"])


def test_chosen_neurons_are_those_of_the_table(planted_periods):
    model, fitted, found = planted_periods
    chosen = periods(model, fitted, "neuron 1.12, neuron 0.3, neuron 1.0")
    assert chosen["node"].values.tolist() == ["neuron 1.12", "neuron 0.3", "neuron 1.0"]
    assert chosen["layer"].values.tolist() == [1, 0, 1]
    for name in ("t_in", "t_out", "group"):
        whole = [found[name].values[at] for at in ((1, 12), (0, 3), (1, 0))]
        np.testing.assert_array_equal(chosen[name], whole)
    none = periods(model, fitted, "neuron 1.40")
    assert none["count"].sum() == 0
    assert np.isnan(none["agreement"])
    assert np.isnan(none["agreement_p"])


def test_written_periods_are_those_of_a_plain_transform():
    model = mn.load("adder-gptj")
    task = mn.tasks.addition(range(40))
    fitted = fit(model, task)
    found = periods(model, fitted)
    rows = neuron_rows(model, 3, range(199)).values.astype(np.float64)
    strongest = 1 + np.abs(np.fft.rfft(rows, axis=1))[:, 1:].argmax(axis=1)
    np.testing.assert_allclose(found["t_out"].sel(layer=3), 199 / strongest)
    group = found["group"].sel(layer=3).values
    expected = {99: 2.0, 98: np.nan, 40: 5.0, 39: 5.0, 20: 10.0, 19: 10.0, 4: np.nan, 1: np.nan}
    for k, period in expected.items():
        own = group[strongest == k]
        assert np.isnan(own).all() if np.isnan(period) else (own == period).all()
    read = fitted["amplitude"].sel(layer=3, variable="a+b")
    clear = (fitted["q"] <= 0.05) & (fitted["r2"] > 0) & (fitted["sum_share"] >= 0.01)
    tested = clear.sel(layer=3)
    np.testing.assert_array_equal(found["t_in"].sel(layer=3)[tested], read.idxmax("period")[tested])
    assert found["t_in"].sel(layer=3)[~tested].isnull().all()
    assert float(found["agreement"]) > 1.3 * float(found["agreement_null"])
    assert float(found["agreement_p"]) < 0.001


def test_the_longest_period_stands_for_a_hundred():
    """On 0 … 198 a wave of T = 100 is between the first two bins."""
    model = mn.load("adder-gptj")
    fitted = fit(model, mn.tasks.addition(range(12)), periods=(5, 10))
    fitted = fitted.assign_coords(period=[100.0, 10.0])
    found = periods(model, fitted)
    for k, period in ((1, 100.0), (2, 100.0), (3, np.nan), (20, 10.0)):
        own = found["group"].values[np.isclose(found["t_out"], 199 / k)]
        assert len(own)
        assert np.isnan(own).all() if np.isnan(period) else (own == period).all()


def test_a_net_that_has_not_learned_reads_no_period():
    """Its neurons vary with a and with b, so that fits of them are sure, but not with a+b."""
    trained = mn.load("adder-gptj")
    model = replace(untrained(trained, 0), tokenizer=trained.tokenizer, template=trained.template)
    fitted = fit(model, mn.tasks.addition(range(30)))
    assert float((fitted["q"] <= 0.05).mean()) > 0.5
    found = periods(model, fitted)
    assert float(found["t_in"].notnull().mean()) < 0.01
    assert (found["reason"] != "").mean() > 0.99


def test_activations_of_a_modular_net_read_what_they_write():
    model, task = mn.load("clock-113"), mn.tasks.modular_addition(113)
    found = periods(model, fit(model, task, "hidden"))
    assert float(found["agreement"]) > 0.85
    assert float(found["agreement_null"]) < 0.4


def test_what_has_no_periods_is_refused(planted_periods):
    model, fitted, _ = planted_periods
    with pytest.raises(MechnumError, match=r"no waves in a\+b"):
        periods(model, fitted.sel(variable=["a", "b"]))
    with pytest.raises(MechnumError, match="give what `fit` returned"):
        periods(model, fitted.sel(layer=1))
    with pytest.raises(MechnumError, match="the fits are of planted waves"):
        periods(mn.load("adder-gptj"), fitted)
    with pytest.raises(MechnumError, match="permutations is 0"):
        periods(model, fitted, permutations=0)
    with pytest.raises(MechnumError, match="the table has no neuron 0"):
        periods(model, fitted.sel(layer=[1]), "neuron 0.1")
    with pytest.raises(MechnumError, match="two numbers have the same token"):
        periods(model, fitted, numbers=torch.tensor([0, 1, 2, 2]))
    with pytest.raises(MechnumError, match="a number's token is none of the"):
        periods(model, fitted, numbers=torch.tensor([0, 1, 2, 10_000]))
