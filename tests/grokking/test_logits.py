"""The key part of logits and the losses: against projections and losses written out; identities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

import mechnum as mn
from mechnum.errors import InvalidInput
from mechnum.grokking.logits import cosine_logits
from tests.fourier.sums import waves

P, KEYS = 13, [2, 5]


@pytest.fixture(scope="module")
def logits():
    """Noise with waves of the sum, and a mean for each class."""
    rng = np.random.default_rng(0)
    a, b, c = np.ogrid[:P, :P, :P]
    planted = sum(3 * np.cos(2 * np.pi * k * (a + b - c) / P) for k in KEYS)
    return planted + rng.normal(size=(P, P, P)) + 2 * rng.normal(size=P)


def by_hand(logits, keys):
    """The projection on the two unit directions of each key, as published."""
    rows, frequency = waves(P)
    part = np.zeros_like(logits)
    for k in keys:
        sine, cosine = rows[frequency == k]
        for direction in (
            np.outer(cosine, cosine) - np.outer(sine, sine),
            np.outer(sine, cosine) + np.outer(cosine, sine),
        ):
            unit = direction / np.sqrt(2)
            assert np.linalg.norm(unit) == pytest.approx(1)
            part += unit[:, :, None] * np.einsum("ab,abc->c", unit, logits)
    return part


def test_the_key_part_is_the_published_projection(logits):
    part = mn.grokking.key_part(logits, KEYS)
    np.testing.assert_allclose(part, by_hand(logits, KEYS), atol=1e-12)
    spread = logits - logits.mean((0, 1))
    share = np.sum(part**2) / np.sum(spread**2)
    assert mn.grokking.key_share(logits, KEYS) == pytest.approx(share)


def test_the_projection_is_idempotent_and_orthogonal_to_the_rest(logits):
    part = mn.grokking.key_part(logits, KEYS)
    rest = mn.grokking.excluded_logits(logits, KEYS)
    np.testing.assert_allclose(mn.grokking.key_part(part, KEYS), part, atol=1e-12)
    np.testing.assert_allclose(mn.grokking.key_part(rest, KEYS), 0, atol=1e-12)
    np.testing.assert_allclose(part + rest, logits, atol=1e-12)
    assert abs(np.sum(part * rest)) < 1e-9 * np.sum(part**2)
    every = list(range(1, P // 2 + 1))
    parts = sum(mn.grokking.key_part(logits, [k]) for k in every)
    np.testing.assert_allclose(parts, mn.grokking.key_part(logits, every), atol=1e-12)


def test_losses_are_cross_entropies_of_the_parts(logits):
    answers = torch.from_numpy(np.add.outer(np.arange(P), np.arange(P)) % P).flatten()
    train = np.random.default_rng(1).random((P, P)) < 0.4

    def loss(values, pairs):
        each = cross_entropy(torch.from_numpy(values).reshape(-1, P), answers, reduction="none")
        return float(each.numpy().reshape(P, P)[pairs].mean())

    part, every = by_hand(logits, KEYS), np.ones((P, P), dtype=bool)
    for pairs in (every, train):
        kept = part + logits.mean((0, 1))
        assert mn.grokking.mean_loss(logits, pairs) == pytest.approx(loss(logits, pairs))
        assert mn.grokking.restricted_loss(logits, KEYS, pairs) == pytest.approx(loss(kept, pairs))
        assert mn.grokking.excluded_loss(logits, KEYS, pairs) == pytest.approx(
            loss(logits - part, pairs)
        )
    indices = torch.from_numpy(np.flatnonzero(train))
    assert mn.grokking.mean_loss(logits, indices) == mn.grokking.mean_loss(logits, train)
    assert mn.grokking.restricted_loss(logits, KEYS) < mn.grokking.mean_loss(logits)
    assert mn.grokking.excluded_loss(logits, KEYS) > 2


def test_losses_below_the_rounding_of_one_are_exact():
    a, b, c = np.ogrid[:5, :5, :5]
    logits = np.where((a + b) % 5 == c, 60.0, 0.0)
    assert mn.grokking.mean_loss(logits) == pytest.approx(4 * np.exp(-60), rel=1e-12)


def test_logit_coefficients_are_inner_products_with_unit_cosines(logits):
    a, b, c = np.ogrid[:P, :P, :P]
    found = mn.grokking.logit_coefficients(logits)
    units = []
    for k in range(1, P // 2 + 1):
        wave = np.cos(2 * np.pi * k * (a + b - c) / P)
        units.append(wave / np.linalg.norm(wave))
        assert found[k - 1] == pytest.approx(np.sum(logits * units[-1]))
    assert set(np.argsort(-found)[:2] + 1) == set(KEYS)
    rebuilt = sum(found[k - 1] * units[k - 1] for k in KEYS)
    by_error = cosine_logits(found, np.array(KEYS), P)
    np.testing.assert_allclose(by_error[(a + b - c) % P], rebuilt, atol=1e-12)


@pytest.mark.parametrize("factor", [2, 5, 12])
def test_relabelling_numbers_moves_each_key(logits, factor):
    """n → factor · n for a, b and c moves frequency f to f · factor⁻¹."""
    to = factor * np.arange(P) % P
    moved = np.empty_like(logits)
    moved[np.ix_(to, to, to)] = logits
    inverse = pow(factor, -1, P)
    new = [min(k * inverse % P, -k * inverse % P) for k in KEYS]
    for measure in (mn.grokking.key_share, mn.grokking.restricted_loss, mn.grokking.excluded_loss):
        assert measure(moved, new) == pytest.approx(measure(logits, KEYS))
    before, after = (mn.grokking.logit_coefficients(values) for values in (logits, moved))
    every = np.arange(1, P // 2 + 1)
    places = np.minimum(every * inverse % P, -every * inverse % P)
    np.testing.assert_allclose(after[places - 1], before)


def test_logits_that_are_the_same_for_all_pairs_have_no_share():
    assert np.isnan(mn.grokking.key_share(np.zeros((5, 5, 5)), [1]))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((5, 5, 6), "are not of p = 5 classes"),
        ((5, 4, 5), "not over all pairs"),
        ((25, 5), "not over all pairs"),
        ((2, 2, 2), "p = 2 has no waves"),
        ((9, 9, 9), r"p = 9 is not prime \(it is 3 · 3\)"),
        ((5, 5), "are not of p = 5 classes"),
    ],
)
def test_other_shapes_and_moduli_are_refused(shape, message):
    for measure in (mn.grokking.pair_losses, mn.grokking.logit_coefficients):
        with pytest.raises(InvalidInput, match=message) as error:
            measure(np.zeros(shape))
        assert "\n" not in str(error.value)


def test_nan_is_refused(logits):
    broken = logits.copy()
    broken[0, 0, 0] = np.nan
    with pytest.raises(InvalidInput, match="logits are not all finite: look for NaN"):
        mn.grokking.mean_loss(broken)


@pytest.mark.parametrize(
    ("keys", "message"),
    [([], "no key"), ([0], "1 to 6"), ([7], "1 to 6"), ([1.5], "1 to 6"), ([2, 2], "repeat")],
)
def test_keys_that_are_none_are_refused(logits, keys, message):
    with pytest.raises(InvalidInput, match=message):
        mn.grokking.restricted_loss(logits, keys)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (np.zeros((P, P), dtype=bool), "there are no pairs"),
        (np.zeros((3, 3), dtype=bool), "fit no 13 × 13"),
        (np.array([P * P]), "no pair of that index"),
        (np.array([0.5]), "fit no 13 × 13"),
    ],
)
def test_pairs_that_are_none_are_refused(logits, pairs, message):
    with pytest.raises(InvalidInput, match=message):
        mn.grokking.mean_loss(logits, pairs)
