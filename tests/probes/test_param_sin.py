"""The parametric sinusoidal probe finds planted waves and reads numbers that it has not seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mechnum.probes import (
    BinaryProbe,
    CircularDigitProbe,
    FourierRegressionProbe,
    LinearNumberProbe,
    LogNumberProbe,
    ParamSinProbe,
    SinProbe,
    value_split,
)
from mechnum.probes.regression import PERIODS
from mechnum.probes.sinusoidal import LearntSines

from .planted import circles

NUMBERS = np.arange(1000)
TRAIN, TEST = value_split(NUMBERS, (0.95, 0.05), 0)
ALL = {"numbers": range(1000)}


@pytest.fixture(scope="module")
def states():
    return circles(NUMBERS)


@pytest.fixture(scope="module")
def fitted(states):
    """Of numbers other than TEST and 0."""
    shown = TRAIN[TRAIN > 0]
    return ParamSinProbe(steps=200, **ALL).fit(states[shown], shown)


def test_reads_digit_circles_of_numbers_it_has_not_seen(states, fitted):
    """FoNE's code (Zhou et al. 2025), one circle a digit: sines read it, lines do not."""
    assert fitted.score(states[TEST], TEST) >= 0.99
    for probe in (LinearNumberProbe(**ALL), LogNumberProbe(**ALL)):
        assert probe.fit(states[TRAIN], TRAIN).score(states[TEST], TEST) <= 0.05


def test_planted_frequencies_are_found(fitted):
    found = fitted.frequencies().isel(sine=slice(6))
    planted = np.array([0.1, 0.01, 0.001])
    distance = np.abs(found["frequency"].values[:, None] - planted)
    assert distance.min(axis=1).max() < 1e-3
    # The two faster ones could be mistaken for neighbours: 10 for 9.9 or 100 for 91.
    assert distance.min(axis=0)[:2].max() < 1e-4
    assert set(distance.argmin(axis=1)) == {0, 1, 2}


def test_the_table_of_waves_makes_the_codes(fitted):
    """Amplitudes, frequencies and phases as they are printed give the codes that read."""
    table = fitted.frequencies()
    np.testing.assert_array_equal(table["amplitude"], np.sort(fitted.amplitudes_)[::-1])
    angle = 2 * np.pi * np.outer(table["frequency"], NUMBERS) + table["phase"].values[:, None]
    codes = table["amplitude"].values[:, None] * np.sin(angle)
    mine = fitted.codes_[table["sine"].values]
    # A unit's sign is in its phase, so either codes or readings turn.
    np.testing.assert_allclose(codes, mine, atol=2e-3)
    np.testing.assert_allclose(table["period"] * table["frequency"], 1)
    assert float(table["frequency"].min()) >= 0
    assert float(table["frequency"].max()) <= 0.5
    assert 0 <= float(table["phase"].min()) <= float(table["phase"].max()) < 2 * np.pi


def test_waves_on_integers_do_not_depend_on_how_they_are_written():
    """Frequencies beyond ½, negative ones and negative amplitudes fold to the same numbers."""
    numbers = np.arange(3, 40)
    code = LearntSines(6, numbers, 0.1, np.random.default_rng(0)).double()
    with torch.no_grad():
        shift = [40.0, -30.0, 0.0, 200.0, -200.0, 7.5]
        code.shift.copy_(torch.tensor(shift))
        code.amplitude.copy_(torch.tensor([1.0, -2.0, 0.5, -0.5, 3.0, -1.0]))
    raw = (code.scaled(torch.ones(1, 6).double()).T * code(code.features(numbers))).detach()
    direct = code.start + np.array(shift) / 36
    assert ((direct < 0) | (direct > 0.5)).sum() >= 3
    amplitude, frequency, phase = code.waves()
    assert amplitude.min() > 0
    assert 0 <= frequency.min() <= frequency.max() <= 0.5
    again = amplitude[:, None] * np.sin(phase[:, None] + 2 * np.pi * np.outer(frequency, numbers))
    np.testing.assert_allclose(again, raw.numpy(), atol=1e-9)


def test_zero_is_read_while_it_is_held_out(states, fitted):
    """With phases of 0 all sines are 0 at the number 0, which could then never be the largest."""
    np.testing.assert_array_equal(fitted.predict(states[:1]), [0])
    assert np.abs(fitted.codes_[:, 0]).max() > 0.1


@pytest.mark.slow
def test_the_penalty_prunes_units(states, fitted):
    free = ParamSinProbe(steps=100, l1=0.0, **ALL).fit(states[TRAIN], TRAIN).amplitudes_
    few = fitted.amplitudes_
    assert (few > 0.1 * few.max()).sum() < 0.2 * (free > 0.1 * free.max()).sum()
    assert fitted.score(states[TRAIN], TRAIN) > 0.99


def test_lines_win_where_the_code_is_linear():
    """A direction in proportion to the number, with noise of less than half a step."""
    generator = np.random.default_rng(0)
    axis = np.linalg.qr(generator.normal(size=(16, 1)))[0][:, 0]
    states = NUMBERS[:, None] * axis + 0.1 * generator.normal(size=(1000, 16))
    line = LinearNumberProbe(**ALL).fit(states[TRAIN], TRAIN)
    sines = FourierRegressionProbe(**ALL).fit(states[TRAIN], TRAIN)
    trained = ParamSinProbe(128, steps=50, **ALL).fit(states[TRAIN], TRAIN)
    assert line.score(states[TEST], TEST) >= 0.98
    assert sines.score(states[TEST], TEST) < 0.2
    assert trained.score(states[TEST], TEST) < 0.2


CHANCE = [
    LinearNumberProbe(**ALL),
    LogNumberProbe(**ALL),
    FourierRegressionProbe(**ALL),
    CircularDigitProbe(**ALL),
    BinaryProbe(steps=50, **ALL),
    SinProbe(steps=50, **ALL),
    ParamSinProbe(128, steps=50, **ALL),
]


@pytest.mark.parametrize("probe", CHANCE, ids=lambda probe: type(probe).__name__)
def test_rows_without_numbers_are_read_at_chance(probe):
    """On 1000 held-out rows of numbers that no training row has, at most 3 are right."""
    noise = np.random.default_rng(5).normal(size=(2000, 32))
    shown = np.repeat(np.arange(0, 1000, 2), 2)
    hidden = np.repeat(np.arange(1, 1000, 2), 2)
    assert probe.fit(noise[:1000], shown).score(noise[1000:], hidden) <= 3e-3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number circles", "digit circles", "ten periods"])
def test_default_settings_and_five_seeds(kind):
    """Also circles of the single digits, whose tens digit jumps, in several noise draws."""
    digits = NUMBERS[:, None] // np.array([1, 10, 100]) % 10
    for seed in range(5):
        if kind == "digit circles":
            axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(48, 6)))[0].T
            waves = np.concatenate([f(2 * np.pi * digits / 10) for f in (np.cos, np.sin)], axis=1)
            states = waves @ axes
        else:
            periods = (10, 100, 1000) if kind == "number circles" else PERIODS
            states = circles(NUMBERS, periods, noise=0.05, seed=seed)
        train, test = value_split(NUMBERS, (0.95, 0.05), seed)
        probe = ParamSinProbe(seed=seed, **ALL).fit(states[train], train)
        assert probe.score(states[test], test) >= (0.9 if kind == "digit circles" else 0.98)


@pytest.mark.slow
def test_the_papers_settings_learn_too():
    """H 2048, amplitude 1e-4, Adam 1e-4 without decay on all rows; fewer of its 10,000 steps."""
    states = circles(NUMBERS, noise=0.02)
    probe = ParamSinProbe(
        2048,
        steps=2000,
        batch_size=None,
        learning_rate=1e-3,
        decay=False,
        patience=None,
        standardise=False,
        **ALL,
    ).fit(states[TRAIN], TRAIN)
    assert probe.score(states[TEST], TEST) >= 0.99
