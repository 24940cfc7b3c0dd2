"""The residue probe is the linear reader of the Fourier analysis on held-out numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from mechnum.errors import InvalidInput
from mechnum.fourier import residue_reader
from mechnum.probes import ResidueProbe, value_split

from .planted import circles

NUMBERS = np.arange(200)
STATES = circles(NUMBERS, (2, 5, 10), 24, 0.1)
TRAIN, TEST = value_split(NUMBERS, (0.8, 0.2), 0)


@pytest.mark.parametrize("modulus", [2, 5, 10])
def test_reads_the_residues_of_circles(modulus):
    probe = ResidueProbe(modulus).fit(STATES[TRAIN], TRAIN)
    assert probe.score(STATES[TEST], TEST) == 1.0
    assert probe.kappa(STATES[TEST], TEST) == 1.0
    np.testing.assert_array_equal(probe.predict(STATES[TEST]), TEST % modulus)


def test_agrees_with_the_reader_and_with_scikit_learns_kappa():
    probe = ResidueProbe(3, components=8).fit(STATES[TRAIN], TRAIN)
    known = residue_reader(8).fit(STATES[TRAIN], TRAIN % 3).predict(STATES[TEST])
    np.testing.assert_array_equal(probe.predict(STATES[TEST]), known)
    assert probe.score(STATES[TEST], TEST) == np.mean(known == TEST % 3)
    wanted = cohen_kappa_score(TEST % 3, known)
    assert abs(probe.kappa(STATES[TEST], TEST) - wanted) < 1e-12
    assert abs(wanted) < 0.3
    np.testing.assert_array_equal(probe.predict_proba(STATES).argmax(1), probe.predict(STATES))


def test_impossible_parameters_are_refused():
    with pytest.raises(InvalidInput, match="modulus is 1"):
        ResidueProbe(1).fit(STATES, NUMBERS)
    with pytest.raises(InvalidInput, match="all numbers have the residue 0"):
        ResidueProbe(2).fit(STATES[::2], NUMBERS[::2])
    with pytest.raises(InvalidInput, match="components is 0"):
        ResidueProbe(2, 0).fit(STATES, NUMBERS)
