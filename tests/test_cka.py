"""Plain CKA, against its definition by inner products."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.cka import linear_cka


def test_cka_is_that_of_the_inner_products_of_all_pairs_of_rows():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(20, 3)) + 1, rng.normal(size=(20, 5))
    h = np.eye(20) - 1 / 20
    k, m = h @ x @ x.T @ h, h @ y @ y.T @ h
    expected = np.sum(k * m) / np.sqrt(np.sum(k**2) * np.sum(m**2))
    assert linear_cka(x, y) == pytest.approx(expected)
    turned = x @ np.linalg.qr(rng.normal(size=(3, 3)))[0] * 7 + 2
    assert linear_cka(turned, y) == pytest.approx(expected)
    assert np.isnan(linear_cka(np.ones((20, 2)), y))
