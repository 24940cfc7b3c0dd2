"""Energy by frequency over pairs: against bases written out, planted polynomials, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mechnum.errors import InvalidInput
from mechnum.fourier.grid import block_energy, linear_energy
from mechnum.models.memory import memory_budget
from tests.fourier.sums import waves


@pytest.mark.parametrize("p", [7, 8, 3])
def test_shares_are_those_of_a_basis_written_out(p):
    maps = np.random.default_rng(0).normal(1, 1, size=(p, p, 5))
    rows, frequency = waves(p)
    coefficients = np.einsum("ia,jb,abn->ijn", rows, rows, maps)
    coefficients[0, 0] = 0
    total = np.sum(coefficients**2, axis=(0, 1))
    blocks, linear = [], []
    for k in range(1, p // 2 + 1):
        own = np.flatnonzero((frequency == 0) | (frequency == k))
        blocks.append(np.sum(coefficients[np.ix_(own, own)] ** 2, axis=(0, 1)))
        sides = coefficients[0, frequency == k], coefficients[frequency == k, 0]
        linear.append(sum(np.sum(side**2, axis=0) for side in sides))
    np.testing.assert_allclose(block_energy(maps), np.array(blocks) / total)
    np.testing.assert_allclose(linear_energy(maps), np.array(linear) / total)


def test_polynomials_of_one_frequency_are_all_in_its_block():
    w, n = 2 * np.pi * 5 / 31, np.arange(31)
    a, b = np.cos(w * n + 0.3)[:, None], np.cos(w * n - 1)[None, :]
    maps = np.stack([a + b, a * b + 2 * a, np.broadcast_to(np.sin(w * n), (31, 31))], axis=2)
    found = block_energy(torch.from_numpy(maps).float())
    assert found.shape == (15, 3)
    np.testing.assert_allclose(found[4], 1)
    assert linear_energy(maps)[4, 1] < 0.9


def test_batches_and_further_axes_do_not_matter_and_the_input_stays():
    maps = np.random.default_rng(1).normal(size=(9, 9, 4, 6))
    before = maps.copy()
    whole = block_energy(maps)
    with memory_budget(1):
        parts = block_energy(maps.reshape(9, 9, 24))
    np.testing.assert_allclose(whole.reshape(4, 24), parts)
    np.testing.assert_array_equal(maps, before)
    assert (whole.sum(axis=0) < 1).all()


def test_constant_maps_have_no_shares():
    assert np.isnan(block_energy(np.full((5, 5, 2), 0.1))).all()


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        (np.zeros((4, 5)), r"shape \(4, 5\) are not over all pairs"),
        (np.zeros(4), "are not over all pairs"),
        (np.zeros((2, 2)), "p = 2 has no waves"),
        (np.full((5, 5), np.nan), "not all finite"),
        (np.zeros((5, 5, 0)), "are empty"),
        (np.array([["a"] * 3] * 3), "give numbers"),
    ],
)
def test_what_has_no_waves_is_refused(maps, message):
    with pytest.raises(InvalidInput, match=message):
        block_energy(maps)
