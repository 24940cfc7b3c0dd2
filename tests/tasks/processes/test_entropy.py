"""Entropies in closed form, from all strings, and as limits."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import MechnumError
from mechnum.tasks import processes as P
from mechnum.tasks.processes import entropy
from tests.tasks.processes.paths import joint, strings


def block_entropy(process, length: int) -> float:
    probabilities = [joint(process, string).sum() for string in strings(process, length)]
    return -sum(p * np.log(p) for p in probabilities if p > 0)


@pytest.mark.parametrize("process", [P.mess3(0.15, 0.6), P.even(0.3), P.z1r()], ids=str)
def test_myopic_entropy_is_the_difference_of_block_entropies(process):
    blocks = [block_entropy(process, length) for length in range(5)]
    found = P.myopic_entropy(process, 4).entropy
    np.testing.assert_allclose(found, np.diff(blocks), atol=1e-12)


def test_entropy_rates_in_closed_form():
    """Tokens that are fair coins a known share of the time."""
    coin = np.log(2)
    for process, expected in (
        (P.rrxor(), 2 / 3 * coin),
        (P.z1r(), coin / 3),
        (P.golden_mean(), 2 / 3 * coin),
        (P.even(), 2 / 3 * coin),
        (P.iid(), coin),
        (P.carry(), np.log(100) / 2),
        (P.mixture([P.iid(), P.golden_mean()], [0.25, 0.75]), 0.75 * coin),
    ):
        rate = P.entropy_rate(process)
        assert rate.low == rate.high
        assert rate.value == pytest.approx(expected, abs=1e-12)


def test_entropy_rate_is_the_limit_of_the_myopic_entropy():
    for process in (P.rrxor(), P.even(), P.z1r()):
        myopic = P.myopic_entropy(process, 60).entropy
        assert (np.diff(myopic) <= 1e-12).all()
        assert float(myopic[-1]) == pytest.approx(P.entropy_rate(process).value, abs=1e-6)
    rate = P.entropy_rate(P.mess3(), 1e-4)
    assert rate.high - rate.low <= 1e-4
    # The myopic entropy after 8 tokens is within 10⁻⁵ of its limit.
    assert rate.low < float(P.myopic_entropy(P.mess3(), 9).entropy[-1]) < rate.high + 1e-5


def test_entropy_rate_is_what_a_long_string_takes():
    """Ergodicity: −log P of one string, for each token."""
    process = P.mess3()
    taken = -process.log_likelihood(process.sample(40, 500, seed=0)) / 500
    error = taken.std(ddof=1) / np.sqrt(40)
    assert abs(taken.mean() - P.entropy_rate(process).value) < 4 * error + 5e-4


def test_transient_states_hand_their_weight_on():
    """Start in a state that leaves for a coin with 1/4, else for a constant."""
    matrices = np.zeros((2, 3, 3))
    matrices[0, 0] = 0, 0.25, 0.75
    matrices[:, 1, 1] = 0.5
    matrices[0, 2, 2] = 1
    process = P.from_matrices(matrices, start=(1, 0, 0))
    assert P.entropy_rate(process).value == pytest.approx(np.log(2) / 4)


def test_bounds_that_cannot_be_met_are_said(monkeypatch):
    monkeypatch.setattr(entropy, "NODES", 2000)
    with pytest.raises(MechnumError, match=r"between 0\.79\d* and 0\.79\d* nats"):
        P.entropy_rate(P.mess3(), 1e-9)
    with pytest.raises(MechnumError, match="positive"):
        P.entropy_rate(P.mess3(), 0.0)
