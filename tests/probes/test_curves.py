"""Curves of probes: planted codes, what is held out, and numbers that are dealt anew."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import InvalidInput
from mechnum.probes import (
    FourierRegressionProbe,
    LinearNumberProbe,
    StateTable,
    permuted,
    probe_curves,
    probe_transfer,
)
from mechnum.probes.tables import hold_out

from .planted import circles

PERIODS = (100, 10, 5, 2)
VALUES = np.tile(np.arange(100), 8)
TEMPLATES = np.repeat(np.arange(8), 100)
GENERATOR = np.random.default_rng(3)
PROBES = {"fourier": FourierRegressionProbe(PERIODS), "linear": LinearNumberProbe()}


def table(states, **said):
    noisy = states + 0.02 * GENERATOR.normal(size=states.shape)
    return StateTable(noisy, VALUES, TEMPLATES, said)


TABLES = {
    -1: table(GENERATOR.normal(size=(800, 24)), model="net", layer=-1),
    0: table(circles(VALUES, PERIODS, 24, 0), model="net", layer=0),
    1: table(np.outer(VALUES, GENERATOR.normal(size=24)), model="net", layer=1),
}


def test_each_probe_reads_the_code_that_it_is_made_for():
    found = probe_curves(PROBES, TABLES)
    expected = np.array([[0, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(found["accuracy"], expected, atol=0.15)
    np.testing.assert_allclose(found["chance"], 0.01)
    assert found["test_values"].values.tolist() == [20, 20, 20]
    # A fifth of the numbers in a quarter of the templates.
    assert found["test_rows"].values.tolist() == [40, 40, 40]
    assert found["train_rows"].values.tolist() == [480, 480, 480]


def test_the_same_is_held_out_as_for_transfer_and_origins_are_said():
    found = probe_curves(PROBES, TABLES, seed=2)
    across = probe_transfer(PROBES["fourier"], TABLES, seed=2)
    diagonal = [float(across["accuracy"].sel(trained_on=own, tested_on=own)) for own in TABLES]
    assert found["accuracy"].sel(probe="fourier").values.tolist() == diagonal
    for said in (found.attrs, across.attrs):
        assert said["model"] == "net"
        assert said["layer"] == '{"-1": -1, "0": 0, "1": 1}'


def test_fitted_probes_are_handed_over_unseen_of_what_is_held_out():
    seen = {}
    probe_curves(PROBES, TABLES, fitted=lambda *own: seen.update({own[:2]: own[2]}))
    assert set(seen) == {(name, label) for name in PROBES for label in TABLES}
    held = hold_out(TABLES)
    train, own = held.train(TABLES[0]), FourierRegressionProbe(PERIODS, numbers=np.arange(100))
    direct = own.fit(train.states, train.values)
    np.testing.assert_array_equal(seen["fourier", 0].coef_, direct.coef_)


def test_numbers_dealt_anew_go_together_and_are_read_at_chance():
    dealt = permuted(TABLES[0], seed=1)
    pairs = {(old, new) for old, new in zip(VALUES, dealt.values, strict=True)}
    assert len(pairs) == len({new for _, new in pairs}) == 100
    assert dealt.said["numbers"] == "permuted"
    found = probe_curves({"fourier": PROBES["fourier"]}, {0: dealt})
    assert float(found["accuracy"].max()) <= 0.1


def test_no_probes_are_refused():
    with pytest.raises(InvalidInput, match="no probes: give one or more"):
        probe_curves({}, TABLES)
