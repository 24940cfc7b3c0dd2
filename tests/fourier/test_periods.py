"""Default periods are those that the numbers at hand can tell apart."""

from __future__ import annotations

import pytest
import torch

import mechnum as mn
from mechnum.errors import InvalidInput
from mechnum.fourier.periods import default_periods, periods_within
from mechnum.models.wrap import wrap
from tests import fixtures


@pytest.mark.parametrize(
    ("n", "periods"),
    [(3, ()), (4, ()), (6, (2,)), (10, (2, 5)), (14, (2, 5, 10)), (99, (2, 5, 10)),
     (100, (2, 5, 10, 100))],
)  # fmt: skip
def test_a_range_of_few_numbers_has_few_periods(n, periods):
    assert periods_within(n) == periods


@pytest.mark.parametrize(
    ("size", "periods"),
    [(100, (2, 5, 10, 100)), (40, (2, 5, 10)), (10, (10,)), (6, (5,)), (3, (2,))],
)
def test_periods_are_those_that_the_numbers_can_tell_apart(size, periods):
    task = mn.tasks.addition(range(size))
    operand = torch.arange(size).repeat(2)
    assert default_periods(mn.load("adder-gptj"), task, operand) == periods


@pytest.mark.tl3
def test_a_modular_net_has_the_periods_of_its_key_frequencies():
    found = default_periods(mn.load("clock-113"), mn.tasks.modular_addition(113), range(113))
    assert len(found) == 3
    for period in found:
        assert round(113 / period) == pytest.approx(113 / period)


def test_a_modular_net_in_whose_embedding_no_frequency_stands_out_is_asked_for_periods():
    net = wrap(fixtures.llama(), name="untrained")
    with pytest.raises(InvalidInput, match="stands out in the embedding of untrained, so"):
        default_periods(net, mn.tasks.modular_addition(59), range(59))
