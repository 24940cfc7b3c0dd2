"""Filters: what the closed form promises, and against a constrained solver."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import ortho_group

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.fourier import fourier_basis, high_pass, low_pass, single_pass, without
from mechnum.fourier.filters import band_removal, random_removal, removal, wave_matrix
from tests import fixtures

from .sums import NUMBERS, waves

BANDS = {
    "low": high_pass(12),
    "high": low_pass(24),
    "single": single_pass(24),
    "low by frequency": high_pass(6, "frequency"),
    "some": without([3, 10, 24]),
}


@pytest.fixture(scope="module")
def net():
    return fixtures.gptj()


def seen(net, rows):
    """M, written out: the waves of these rows in the logits that the unembedding alone gives."""
    W_U = net.lm_head.weight.detach().double().numpy()[NUMBERS.numpy()]
    return waves(len(W_U))[0][rows] @ W_U


@pytest.mark.parametrize("name", BANDS)
@pytest.mark.parametrize("kind", ["orthonormal", "paper"])
def test_filters_do_what_they_promise(net, name, kind):
    model, basis = mn.wrap(net), fourier_basis(50, kind)
    filtered = band_removal(model, NUMBERS, BANDS[name], basis)
    M = wave_matrix(model, NUMBERS, basis)[BANDS[name].removed(basis)]
    x, other = np.random.default_rng(0).normal(size=(2, 6, 32))
    y = filtered(x)
    np.testing.assert_allclose(y @ M.T, 0, atol=1e-9)
    np.testing.assert_allclose(filtered(y), y, atol=1e-12)
    np.testing.assert_allclose(np.sum(y * other, 1), np.sum(x * filtered(other), 1), atol=1e-10)
    assert (np.linalg.norm(y, axis=1) <= np.linalg.norm(x, axis=1)).all()
    np.testing.assert_allclose(y, x - x @ np.linalg.pinv(M, rcond=1e-6) @ M, atol=1e-9)
    assert filtered.rank == np.linalg.matrix_rank(M, tol=1e-6 * np.linalg.norm(M, 2)) > 0


def test_the_rows_are_those_written_out(net):
    model, basis = mn.wrap(net), fourier_basis(50)
    np.testing.assert_allclose(
        wave_matrix(model, NUMBERS, basis), seen(net, slice(None)), atol=1e-12
    )


def test_nothing_nearer_does_it(net):
    """The smallest change, against a general constrained solver."""
    rows = np.arange(1, 8)
    M = seen(net, rows)
    filtered = band_removal(mn.wrap(net), NUMBERS, high_pass(8), fourier_basis(50))
    for x in np.random.default_rng(1).normal(size=(3, 32)):
        solved = minimize(
            lambda y, x=x: np.sum((y - x) ** 2),
            np.zeros(32),
            jac=lambda y, x=x: 2 * (y - x),
            constraints={"type": "eq", "fun": lambda y: M @ y, "jac": lambda y: M},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 200},
        )
        assert solved.success
        np.testing.assert_allclose(filtered(x), solved.x, atol=1e-6)


def test_with_orthogonal_rows_the_parts_add_up():
    """Low, high and constant parts, and what no row sees, where F·W_U has orthogonal rows.

    "Constant" is the part of x along the constant's own row, which no filter touches then.
    """
    n, d = 21, 24
    rows, _ = waves(n)
    W_U = rows.T @ np.diag(np.arange(1.0, n + 1)) @ ortho_group.rvs(d, random_state=0)[:n]
    M = rows @ W_U
    x = np.random.default_rng(2).normal(size=(5, d))
    basis = fourier_basis(n)
    low, high = (removal(M[band.removed(basis)]) for band in (high_pass(7), low_pass(7)))
    assert (low.rank, high.rank) == (6, 14)
    unit = M[0] / np.linalg.norm(M[0])
    constant = np.outer(x @ unit, unit)
    unseen = x - x @ np.linalg.pinv(M) @ M
    total = (x - low(x)) + (x - high(x)) + constant + unseen
    np.testing.assert_allclose(total, x, atol=1e-12)
    for filtered in (low, high):
        np.testing.assert_allclose(filtered(x) @ M[0], x @ M[0], atol=1e-12)


def test_both_meanings_of_tau():
    """Rows, or frequencies with the sine of τ low and its cosine high; the constant stays."""
    basis = fourier_basis(201)
    low_rows = np.flatnonzero(high_pass(50).removed(basis))
    high_rows = np.flatnonzero(low_pass(50).removed(basis))
    assert (low_rows[0], low_rows[-1], high_rows[0], high_rows[-1]) == (1, 49, 50, 200)
    assert basis.frequency[49] == 25
    low_rows = np.flatnonzero(high_pass(50, "frequency").removed(basis))
    high_rows = np.flatnonzero(low_pass(50, "frequency").removed(basis))
    assert (low_rows[0], low_rows[-1], high_rows[0], high_rows[-1]) == (1, 99, 100, 200)
    assert basis.frequency[99] == basis.frequency[100] == 50
    np.testing.assert_allclose(basis.matrix[99], waves(201)[0][99])
    kept = np.flatnonzero(~single_pass(7).removed(basis))
    assert list(kept) == [0, 13, 14]
    gone = np.flatnonzero(without([7, 9]).removed(basis))
    assert list(gone) == [13, 14, 17, 18]


def test_what_the_unembedding_sees_twice_is_removed_once(net):
    """Rows that depend on each other count once, at the tolerance of 1e-6."""
    M = np.random.default_rng(3).normal(size=(3, 32))
    twice = np.concatenate(
        [M, M[:1] + M[1:2], 1e-8 * np.random.default_rng(4).normal(size=(2, 32))]
    )
    assert removal(twice).rank == 3
    np.testing.assert_allclose(removal(twice)(M), 0, atol=1e-6)


def test_random_removals_are_of_equal_rank_and_seeded():
    first, again, other = (random_removal(32, 5, seed) for seed in (0, 0, 1))
    np.testing.assert_allclose(first.directions.T @ first.directions, np.eye(5), atol=1e-12)
    np.testing.assert_array_equal(first.directions, again.directions)
    assert not np.allclose(first.directions, other.directions)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: low_pass(0), "tau is 0"),
        (lambda: low_pass(5, "wave"), "unknown tau_unit 'wave'"),
        (lambda: single_pass(0), "the frequency is 0"),
        (lambda: without([]), "name at least one"),
        (lambda: single_pass(30).removed(fourier_basis(50)), "choose from 1 to 25"),
        (lambda: low_pass(50).removed(fourier_basis(50)), "choose another tau"),
        (lambda: high_pass(1).removed(fourier_basis(50)), "choose another tau"),
        (lambda: removal(np.full((2, 3), np.nan)), "not finite"),
        (
            lambda: band_removal(
                mn.wrap(fixtures.gptj()), NUMBERS[:9], low_pass(5), fourier_basis(50)
            ),
            "9 values do not fit a basis over 50 numbers",
        ),
    ],
)
def test_bad_bands_are_refused(unchecked, make, message):
    with pytest.raises(MechnumError, match=message):
        make()


def test_directions_keep_the_precision_of_float64():
    found = random_removal(32, 5).tensor(torch.zeros(1, dtype=torch.float64))
    assert found.dtype == torch.float64
    assert random_removal(32, 5).tensor(torch.zeros(1, dtype=torch.bfloat16)).dtype == torch.float32
