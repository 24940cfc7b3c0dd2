"""Words left out one at a time: planted orders are read, and nothing is chosen by the word."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from mechnum.errors import InvalidInput
from mechnum.probes import (
    FourierRegressionProbe,
    LinearNumberProbe,
    ParamSinProbe,
    StateTable,
    leave_one_value_out,
)

from .planted import circles

VALUES = np.tile(np.arange(7), 6)
WEEK = StateTable(circles(VALUES, (7,), 16, 0.1), VALUES)
PROBE = FourierRegressionProbe((7,))
GRID = {"periods": [(3,), (7,)]}


def test_a_planted_week_is_read_and_no_order_is_not():
    found = leave_one_value_out(PROBE, WEEK, permutations=9)
    assert int(found["n_right"]) == 7
    assert found["read"].values.tolist() == list(range(7))
    # A circle dealt anew may be a circle again, turned or mirrored.
    assert float(found["p"]) <= 0.2
    assert float(found["null"].mean()) < 2
    words = np.random.default_rng(1).normal(size=(7, 16))
    noise = leave_one_value_out(PROBE, StateTable(words[VALUES], VALUES), permutations=9)
    assert int(noise["n_right"]) <= 2
    assert float(noise["p"]) > 0.2


def test_a_line_is_read_by_the_linear_probe():
    line = np.outer(VALUES, np.ones(8)) + 0.05 * np.random.default_rng(0).normal(size=(42, 8))
    assert int(leave_one_value_out(LinearNumberProbe(), StateTable(line, VALUES))["n_right"]) == 7


def test_parameters_are_chosen_without_the_value_that_is_left_out():
    """Whatever the states of Wednesday are, what is chosen to read Wednesday is the same."""
    found = leave_one_value_out(PROBE, WEEK, GRID)
    chosen = ast.literal_eval(found.attrs["chosen"])
    assert [one["periods"] for one in chosen] == [(7,)] * 7
    assert int(found["n_right"]) == 7
    spoilt = WEEK.states.copy()
    spoilt[VALUES == 2] = 50 * np.random.default_rng(0).normal(size=(6, 16))
    other = leave_one_value_out(PROBE, StateTable(spoilt, VALUES), GRID)
    assert ast.literal_eval(other.attrs["chosen"])[2] == chosen[2]
    assert not bool(other["right"].sel(value=2))


@pytest.mark.slow
def test_param_sin_reads_most_of_a_week_once_few_waves_are_left():
    """Six values have many waves through them: without a strong penalty none is the week's."""
    probe = ParamSinProbe(H=64, l1=0.1, l2=1e-2, amplitude=0.1, steps=300, validation_share=0.0)
    assert int(leave_one_value_out(probe, WEEK)["n_right"]) >= 4


def test_impossible_requests_are_refused():
    few = WEEK.select(VALUES < 3)
    for match, call in {
        "3 values leave too few": lambda: leave_one_value_out(PROBE, few),
        "has no parameter 'depth'": lambda: leave_one_value_out(PROBE, WEEK, {"depth": [1]}),
    }.items():
        with pytest.raises(InvalidInput, match=match):
            call()
