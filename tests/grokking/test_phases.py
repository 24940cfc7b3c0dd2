"""The rule for phases, on curves whose phases are known."""

from __future__ import annotations

import numpy as np
import pytest

import mechnum as mn
from mechnum.errors import InvalidInput

STEPS = np.arange(0, 14001, 100)


def curves(noise=0.0, seed=0):
    """log10 losses: memorised at 1400, circuit until 9000, test loss falls to 12000."""
    rng = np.random.default_rng(seed)
    excluded = np.interp(STEPS, [0, 1400, 9000, 14000], [0.7, -2, 0.8, 1.0])
    restricted = np.interp(STEPS, [0, 1400, 12000, 14000], [0.8, 0.8, -7, -7])
    test = np.interp(STEPS, [0, 1400, 9000, 12000, 14000], [0.7, 1.3, 1.2, -6.7, -6.7])
    return [10 ** (c + noise * rng.normal(size=len(STEPS))) for c in (restricted, excluded, test)]


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_phases_of_a_net_that_groks(noise):
    found = mn.grokking.find_phases(STEPS, *curves(noise))
    assert abs(found.memorised - 1400) <= 200
    # A tenth of the fall: 0.8 of 8 decades, of which the slow part has 0.1.
    assert 9100 <= found.formed <= 9400
    assert 11600 <= found.cleaned <= 11900
    assert str(found).startswith(f"memorisation until step {found.memorised}, circuit formation")


def test_the_bounds_are_those_of_the_rule():
    restricted, excluded, test = curves()
    found = mn.grokking.find_phases(STEPS, restricted, excluded, test)
    log = np.log10(test)
    behind = (log.max() - log) / (log.max() - log.min())
    assert found.formed == STEPS[np.flatnonzero(behind < 0.1)[-1]]
    assert found.cleaned == STEPS[np.flatnonzero(behind >= 0.9)[0]]


def test_units_of_the_loss_do_not_matter():
    scaled = [7 * curve for curve in curves()]
    assert mn.grokking.find_phases(STEPS, *scaled) == mn.grokking.find_phases(STEPS, *curves())


def test_a_run_that_stops_early_has_no_clean_up():
    until = STEPS <= 8500
    early = [curve[until] for curve in curves()]
    found = mn.grokking.find_phases(STEPS[until], *early)
    assert (found.memorised, found.formed, found.cleaned) == (1400, None, None)
    assert str(found) == "memorisation until step 1400, circuit formation without an end"


def test_a_net_that_only_memorises_has_no_phases():
    restricted, excluded, test = curves()
    flat = np.full(len(STEPS), 4.7)
    falling = 10 ** np.interp(STEPS, [0, 14000], [0.7, -5])
    none = mn.grokking.Phases(None, None, None)
    assert mn.grokking.find_phases(STEPS, flat, falling, flat) == none
    # A test loss that falls without the circuit's part.
    assert mn.grokking.find_phases(STEPS, flat, excluded, test) == none
    assert mn.grokking.find_phases(STEPS, restricted, falling, test) == none
    assert str(none) == "no circuit formed"


def test_a_test_loss_that_does_not_stay_down_is_not_cleaned_up():
    restricted, excluded, test = curves()
    test[-1] = 1.0
    found = mn.grokking.find_phases(STEPS, restricted, excluded, test)
    assert found.cleaned is None
    assert str(found).endswith("clean-up without an end")


@pytest.mark.parametrize(
    ("steps", "change", "message"),
    [
        ([0, 1], {}, "not 3 or more"),
        ([0, 2, 1], {}, "that rise"),
        ([0, 1, 2], {"test": [1, 2]}, r"test loss has shape \(2,\) for 3 steps"),
        ([0, 1, 2], {"test": [1, 0, 2]}, "not finite and above 0"),
        ([0, 1, 2], {"excluded": [1, np.nan, 2]}, "excluded loss is not finite"),
        ([0, 1, 2], {"margin": 0.7}, "margin between"),
    ],
)
def test_bad_curves_are_refused(steps, change, message):
    given = {"restricted": [1, 2, 3], "excluded": [1, 2, 3], "test": [1, 2, 3]}
    with pytest.raises(InvalidInput, match=message):
        mn.grokking.find_phases(steps, **{**given, **change})
