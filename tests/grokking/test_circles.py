"""Circles and formulas: published figures, loops over all logits, nets of one formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import InvalidInput
from mechnum.grokking.circles import formula_fits
from tests.grokking.nets import circle, clock, pizza, published_net

# Percent of the variance that the clock and the pizza formula explain, in the order published.
PUBLISHED = {
    "A": ([75.41, 75.62, 75.38], [98.31, 98.31, 98.41], [17, 3, 15]),
    "β": ([75.27, 74.71, 75.46], [97.99, 97.48, 98.22], [29, 24, 14]),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_circles_have_their_published_figures(name):
    found = mn.grokking.isolate_circles(published_net(name), n=3)
    clocks, pizzas, keys = PUBLISHED[name]
    explained = 100 * found["explained"]
    np.testing.assert_allclose(explained.sel(formula="clock"), clocks, atol=0.1)
    np.testing.assert_allclose(explained.sel(formula="pizza"), pizzas, atol=0.1)
    assert set(found["embedding_frequency"].values) == set(keys)
    for formula in ("clock", "pizza"):
        np.testing.assert_array_equal(
            found["best_frequency"].sel(formula=formula), found["embedding_frequency"]
        )


def test_accompanying_circles_of_model_a_are_at_twice_the_frequency():
    found = mn.grokking.isolate_circles(published_net("A"), n=6)
    own = found.isel(circle=slice(3, None)).sel(formula="accompanying")
    np.testing.assert_allclose(100 * own["explained"], [97.56, 97.23, 97.69], atol=0.1)
    assert set(own["embedding_frequency"].values) == {25, 6, 29}
    twice = 2 * own["best_frequency"] % 59
    np.testing.assert_array_equal(np.minimum(twice, 59 - twice), own["embedding_frequency"])


def test_the_circles_of_model_b_are_those_of_a_clock():
    found = mn.grokking.isolate_circles(published_net("B"), "fourier", 4)
    assert set(found["embedding_frequency"].values) == {13, 16, 21, 17}
    strongest = found["explained"].isel(circle=0)
    assert strongest.sel(formula="clock") > strongest.sel(formula="pizza") + 0.1


def test_the_strongest_modes_are_the_published_keys():
    for name, keys in (("A", {17, 3, 15, 25, 6, 29}), ("β", {29, 24, 14, 17})):
        found = mn.grokking.isolate_circles(published_net(name), "fourier", len(keys))
        assert set(found["embedding_frequency"].values) == keys


def test_classes_in_another_order_fit_no_formula():
    net = clock(23, [4, 9], [1.0, 2.0])
    order = np.random.default_rng(0).permutation(23)
    shuffled = mn.grokking.net_from_function(
        lambda a, b: net.logits(a, b)[:, order], net.embeddings_a
    )
    assert (mn.grokking.isolate_circles(shuffled, n=2)["explained"] < 0).all()


def test_fits_are_those_of_formulas_over_all_logits():
    p = 7
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(p, p, p)) + 3
    a, b, c = np.ogrid[:p, :p, :p]
    found = formula_fits(logits)
    z = (logits - logits.mean()) / logits.std()
    for k in range(1, p // 2 + 1):
        w = 2 * np.pi * k / p
        s0, s1 = np.cos(w * a) + np.cos(w * b), np.sin(w * a) + np.sin(w * b)
        c0, c1 = np.cos(w * c / 2), np.sin(w * c / 2)
        formulas = (
            np.cos(w * (a + b - c)),
            np.abs(c0 * s0 + c1 * s1) - np.abs(-c1 * s0 + c0 * s1),
            -np.cos(w * (a - b)) * np.cos(w * (a + b - c)),
        )
        for row, q in enumerate(formulas):
            q = np.broadcast_to(q, (p, p, p))
            q = (q - q.mean()) / q.std()
            assert found[row, k - 1] == pytest.approx(1 - np.var(z - q))


@pytest.mark.parametrize("by", ["components", "fourier"])
@pytest.mark.parametrize(("make", "formula"), [(clock, "clock"), (pizza, "pizza")])
def test_each_circle_of_a_constructed_net_computes_its_formula(make, formula, by):
    found = mn.grokking.isolate_circles(make(23, [4, 9], [1.0, 2.0]), by, 2)
    assert list(found["embedding_frequency"]) == [9, 4]
    np.testing.assert_allclose(found["power"], [0.8, 0.2])
    np.testing.assert_allclose(found["explained"].sel(formula=formula), 1)
    np.testing.assert_array_equal(found["best_frequency"].sel(formula=formula), [9, 4])
    assert (found["explained"].drop_sel(formula=formula) < 0.99).all()


def test_fourier_modes_part_circles_of_equal_variance():
    rng = np.random.default_rng(0)
    net = clock(23, [4, 9])
    found = mn.grokking.isolate_circles(net, "fourier", 2)
    assert set(found["embedding_frequency"].values) == {4, 9}
    np.testing.assert_allclose(found["explained"].sel(formula="clock"), 1)
    mixed = mn.grokking.net_from_function(
        net.logits, net.embeddings_a + 1e-3 * torch.from_numpy(rng.normal(size=(23, 4)))
    )
    again = mn.grokking.isolate_circles(mixed, "fourier", 2)
    np.testing.assert_allclose(again["explained"].sel(formula="clock"), 1, atol=1e-3)


def test_tables_of_their_own_keep_the_same_circle():
    turn = torch.from_numpy(np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0])
    net = clock(23, [4, 9], [1.0, 2.0])
    own = mn.grokking.net_from_function(
        lambda a, b: net.logits(a, b @ turn.T), net.embeddings_a, net.embeddings_b @ turn
    )
    for by in ("components", "fourier"):
        found, again = (mn.grokking.isolate_circles(n, by, 2) for n in (net, own))
        np.testing.assert_allclose(found["explained"], again["explained"])


def test_circularity_of_circles_of_a_line_and_of_noise():
    p = 59
    assert mn.grokking.circularity(circle(p, [3, 11], [1.0, 2.0])) == pytest.approx(1)
    # One component, a line: its strongest wave has 6/π² of its variance.
    line = mn.grokking.circularity(np.arange(1009.0)[:, None])
    assert line == pytest.approx(6 / np.pi**2, abs=0.01)
    assert mn.grokking.circularity(np.random.default_rng(0).normal(size=(p, 64))) < 0.4


def test_circularity_is_that_of_sums_written_out():
    p = 11
    table = np.random.default_rng(1).normal(size=(p, 6))
    vectors = np.linalg.svd(table - table.mean(0))[0][:, :4]
    t = np.arange(p)
    best = [
        max(2 / p * abs(np.sum(v * np.exp(2j * np.pi * k * t / p))) ** 2 for k in range(1, p))
        for v in vectors.T
    ]
    assert mn.grokking.circularity(torch.from_numpy(table)) == pytest.approx(np.mean(best))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.ones((5, 3)), "all numbers have the same embedding"),
        (np.zeros(5), r"not finite .p, d."),
        (np.full((5, 2), np.nan), "not finite"),
        (np.eye(4), "p = 4 is not prime"),
    ],
)
def test_tables_without_circles_are_refused(table, message):
    with pytest.raises(InvalidInput, match=message):
        mn.grokking.circularity(table)


@pytest.mark.usefixtures("unchecked")
def test_other_kinds_of_circles_are_refused():
    with pytest.raises(InvalidInput, match="use 'components' or 'fourier'"):
        mn.grokking.isolate_circles(clock(5, [1]), "pairs")
    with pytest.raises(InvalidInput, match="n is 0"):
        mn.grokking.isolate_circles(clock(5, [1]), n=0)


def test_a_net_that_does_not_look_at_its_numbers_has_no_fit():
    table = circle(7, [2])
    net = mn.grokking.net_from_function(lambda a, b: torch.ones(len(a), 7).double(), table)
    assert mn.grokking.isolate_circles(net)["explained"].isnull().all()


@pytest.mark.parametrize("by", ["components", "fourier"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_circles_that_are_rounding_are_none(by, dtype):
    made = clock(23, [4, 9], [1.0, 2.0])
    net = mn.grokking.net_from_function(
        lambda a, b: made.logits(a.double(), b.double()), made.embeddings_a.to(dtype)
    )
    found = mn.grokking.isolate_circles(net, by, 6)
    np.testing.assert_array_equal(found["embedding_frequency"], [9, 4])
    np.testing.assert_allclose(found["explained"].sel(formula="clock"), 1, atol=1e-5)
