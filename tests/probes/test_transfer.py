"""Transfer: planted codes that are shared, turned, stretched or have nothing in common."""

from __future__ import annotations

import numpy as np
import pytest

from mechnum.errors import InvalidInput
from mechnum.probes import (
    FourierRegressionProbe,
    StateTable,
    leave_one_out_transfer,
    probe_transfer,
)
from mechnum.probes.tables import hold_out

from .planted import circles

PERIODS = (100, 10, 5, 2)
PROBE = FourierRegressionProbe(PERIODS)
VALUES = np.tile(np.arange(100), 8)
TEMPLATES = np.repeat(np.arange(8), 100)
GENERATOR = np.random.default_rng(3)


def table(states, noise_seed=0):
    noise = 0.02 * np.random.default_rng(noise_seed).normal(size=states.shape)
    return StateTable(states + noise, VALUES, TEMPLATES)


def turned(d_from, d_to):
    return np.linalg.qr(GENERATOR.normal(size=(max(d_from, d_to),) * 2))[0][:d_from, :d_to]


PLAIN = circles(VALUES, PERIODS, 24, 0)
OWN, ALIKE = table(PLAIN, 1), table(PLAIN, 2)
TURNED = table(3 * PLAIN @ turned(24, 30) + 5, 3)
STRETCHED = table(PLAIN @ turned(24, 24) * np.logspace(1.5, -0.8, 24) @ turned(24, 40), 4)
UNRELATED = table(circles(GENERATOR.permutation(100)[VALUES], PERIODS, 24, 0), 5)


def test_a_shared_code_is_read_everywhere_and_a_turned_one_only_at_home():
    tables = {"own": OWN, "alike": ALIKE, "turned": table(PLAIN @ turned(24, 24))}
    found = probe_transfer(PROBE, tables)
    expected = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    np.testing.assert_allclose(found["accuracy"], expected, atol=0.1)
    assert (found["low"] <= found["accuracy"]).all()
    assert float(found["chance"]) == 0.01


def test_alignments_undo_what_they_can():
    """Turn, scale and shift: both. Any matrix: regression alone. Other numbers: neither."""
    tables = {"own": OWN, "turned": TURNED, "stretched": STRETCHED}
    procrustes = probe_transfer(PROBE, tables, align="procrustes")["accuracy"]
    regression = probe_transfer(PROBE, tables, align="regression")["accuracy"]
    assert float(procrustes.sel(trained_on="own", tested_on="turned")) > 0.95
    assert float(procrustes.sel(trained_on="turned", tested_on="own")) > 0.95
    assert float(procrustes.sel(trained_on="own", tested_on="stretched")) < 0.9
    assert (regression > 0.95).all()
    for align in ("procrustes", "regression"):
        none = probe_transfer(PROBE, {"own": OWN, "unrelated": UNRELATED}, align=align)
        assert float(none["accuracy"].sel(trained_on="own", tested_on="unrelated")) < 0.1


def test_no_test_number_or_template_is_trained_on():
    tables = {"a": OWN, "b": StateTable(PLAIN, VALUES, TEMPLATES + 100)}
    held = hold_out(tables, 0.2, 0.25, seed=4)
    assert len(held.values) == 20
    assert [np.sum(held.templates < 100), np.sum(held.templates >= 100)] == [2, 2]
    for one in tables.values():
        train, test = held.train(one), held.test(one)
        assert not set(train.values) & set(test.values)
        assert not set(train.templates) & set(test.templates)
        assert (len(train), len(test)) == (80 * 6, 20 * 2)
    whole = hold_out(tables, 0.2, 0.0, seed=4)
    assert (len(whole.train(OWN)), len(whole.test(OWN))) == (640, 160)


def test_held_out_numbers_do_not_reach_an_alignment():
    """Test rows moved far away change nothing but themselves: the map comes from the others."""
    held = hold_out({"own": OWN, "turned": TURNED}, seed=0)
    spoilt = TURNED.states.copy()
    spoilt[~held.train_rows(TURNED)] *= -100
    other = StateTable(spoilt, VALUES, TEMPLATES)
    found = probe_transfer(PROBE, {"own": OWN, "other": other}, align="regression")["accuracy"]
    whole = probe_transfer(PROBE, {"own": OWN, "other": TURNED}, align="regression")["accuracy"]
    assert float(found.sel(trained_on="other", tested_on="own")) == float(
        whole.sel(trained_on="other", tested_on="own")
    )
    assert float(found.sel(trained_on="own", tested_on="other")) < 0.2


def test_an_alignment_to_shuffled_numbers_carries_nothing():
    tables = {"own": OWN, "turned": TURNED, "stretched": STRETCHED}
    found = probe_transfer(PROBE, tables, "regression", sources=["turned"], pairing="shuffled")
    assert found["trained_on"].values.tolist() == ["turned"]
    accuracy = found["accuracy"].sel(trained_on="turned")
    assert float(accuracy.sel(tested_on="turned")) > 0.95
    assert (accuracy.sel(tested_on=["own", "stretched"]) < 0.1).all()
    same = probe_transfer(PROBE, tables, "regression", sources=["turned"])["accuracy"]
    whole = probe_transfer(PROBE, tables, "regression")["accuracy"]
    np.testing.assert_array_equal(same, whole.sel(trained_on=["turned"]))


def test_one_probe_for_all_tables_but_one():
    tables = {0: OWN, 1: ALIKE, 2: UNRELATED}
    found = leave_one_out_transfer(PROBE, tables)
    assert float(found["accuracy"].sel(tested_on=2)) < 0.1
    alone = leave_one_out_transfer(PROBE, {0: OWN, 1: ALIKE})
    assert (alone["accuracy"] > 0.95).all()
    assert alone["test_values"].values.tolist() == [20, 20]


def test_impossible_transfers_are_refused():
    few = StateTable(OWN.states[:1], VALUES[:1])
    for match, call in {
        "no tables": lambda: probe_transfer(PROBE, {}),
        "different widths": lambda: probe_transfer(PROBE, {0: OWN, 1: TURNED}),
        "leaves none to train on": lambda: leave_one_out_transfer(PROBE, {0: OWN}),
        "no rows to train on": lambda: probe_transfer(PROBE, {0: OWN, 1: few}),
        "name one or more of": lambda: probe_transfer(PROBE, {0: OWN}, sources=["x"]),
        "shares of 1": lambda: probe_transfer(PROBE, {0: OWN}, value_share=1.0),
    }.items():
        with pytest.raises(InvalidInput, match=match):
            call()


def test_what_types_would_catch_is_refused_without_them(unchecked):
    with pytest.raises(InvalidInput, match="2 states and 1 values"):
        StateTable(OWN.states[:2], VALUES[:1])
    with pytest.raises(InvalidInput, match="unknown alignment 'cca'"):
        probe_transfer(PROBE, {0: OWN}, align="cca")  # type: ignore[arg-type]
