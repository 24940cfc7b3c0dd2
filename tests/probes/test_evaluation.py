"""Accuracy on held-out numbers, with intervals over numbers and over seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from mechnum.errors import InvalidInput
from mechnum.probes import (
    FourierRegressionProbe,
    LinearNumberProbe,
    ParamSinProbe,
    ResidueProbe,
    evaluate,
    probe_accuracy,
    value_split,
)

from .planted import circles

NUMBERS = np.arange(200)
ROWS = np.repeat(NUMBERS, 5)
STATES = circles(ROWS, (10, 100, 1000), 24, 0.3)
PROBE = FourierRegressionProbe((10, 100, 1000), numbers=range(200))


class Dictated(LinearNumberProbe):
    """Reads the first dimension of a state as it stands."""

    def predict(self, X):
        return np.asarray(X)[:, 0].astype(int)


def dictated(read):
    probe = Dictated(range(100)).fit(np.eye(100), np.arange(100))
    return evaluate(probe, np.array(read, dtype=float)[:, None], [1, 1, 1, 2, 3, 3], seed=0)


def test_shares_and_distances_worked_out_by_hand():
    found = dictated([1, 1, 4, 2, 0, 3])
    assert float(found["accuracy"]) == 4 / 6
    assert float(found["absolute_error"]) == (3 + 3) / 6
    assert found["value"].values.tolist() == [1, 2, 3]
    np.testing.assert_allclose(found["right"], [2 / 3, 1, 1 / 2])
    assert found["n"].values.tolist() == [3, 1, 2]
    assert float(found["chance"]) == 0.01


def test_the_interval_resamples_numbers_and_not_rows():
    """30 numbers of 50 rows each, all right or all wrong: only 30 things are known."""
    generator = np.random.default_rng(0)
    right = np.arange(30) < 21
    values = np.repeat(np.arange(30), 50)
    read = np.where(right[values], values, values + 30)[:, None].astype(float)
    probe = Dictated(range(100)).fit(np.eye(100), np.arange(100))
    found = evaluate(probe, read, values)
    wanted = binom.ppf([0.025, 0.975], 30, 0.7) / 30
    assert abs(float(found["low"]) - wanted[0]) < 0.035
    assert abs(float(found["high"]) - wanted[1]) < 0.035
    order = generator.permutation(len(values))
    again = evaluate(probe, read[order], values[order])
    assert float(again["low"]) == float(found["low"])


def test_residues_are_compared_as_residues():
    probe = ResidueProbe(10).fit(STATES, ROWS)
    found = evaluate(probe, STATES, ROWS)
    assert float(found["accuracy"]) == probe.score(STATES, ROWS)
    assert float(found["chance"]) == 0.1
    apart = np.abs(probe.predict(STATES) - ROWS % 10)
    assert float(found["absolute_error"]) == np.minimum(apart, 10 - apart).mean()


def test_one_number_has_no_interval_and_lengths_must_agree():
    probe = LinearNumberProbe().fit(STATES, ROWS)
    one = evaluate(probe, STATES[:5], ROWS[:5])
    assert np.isnan(float(one["low"]))
    assert np.isfinite(float(one["accuracy"]))
    with pytest.raises(InvalidInput, match="5 states and 4 values"):
        evaluate(probe, STATES[:5], ROWS[:4])


def test_each_seed_is_a_fit_to_the_other_numbers():
    found = probe_accuracy(PROBE, STATES, ROWS, 0.2, seeds=(3, 8))
    for seed in (3, 8):
        train, test = value_split(ROWS, (0.8, 0.2), seed)
        one = FourierRegressionProbe((10, 100, 1000), numbers=range(200), seed=seed)
        one.fit(STATES[train], ROWS[train])
        own = found.sel(seed=seed)
        assert float(own["accuracy"]) == one.score(STATES[test], ROWS[test])
        assert int(own["test_rows"]) == len(test)
        assert int(own["train_rows"]) == len(train)
        shown = own["right"].dropna("value")
        np.testing.assert_array_equal(shown["value"], np.unique(ROWS[test]))
        assert abs(float(shown.mean()) - float(own["accuracy"])) < 1e-12
    assert abs(float(found["mean"]) - float(found["accuracy"].mean())) < 1e-12
    assert float(found["chance"]) == 1 / 200
    assert not hasattr(PROBE, "coef_")


def test_five_seeds_give_intervals_that_cover_the_mean_and_the_same_ones_again():
    one, again = (probe_accuracy(PROBE, STATES, ROWS, 0.2) for _ in range(2))
    assert one.identical(again)
    assert one.sizes["seed"] == 5
    for over in ("seed", "value"):
        low, mean, high = (float(one[name]) for name in (f"{over}_low", "mean", f"{over}_high"))
        assert low < mean < high < low + 0.2
    assert np.isnan(float(probe_accuracy(PROBE, STATES, ROWS, 0.2, [0])["seed_low"]))


def test_numbers_compete_that_only_the_test_has():
    """Without `numbers` the extremes of all values are meant, not those of the training rows."""
    clean = np.repeat(NUMBERS, 2)[:, None].astype(float)
    found = probe_accuracy(LinearNumberProbe(), clean, np.repeat(NUMBERS, 2), 0.5, range(6))
    assert float(found["mean"]) == 1.0


def test_the_seed_reaches_trained_probes():
    probe = ParamSinProbe(50, numbers=range(200), steps=50)
    found = probe_accuracy(probe, STATES, ROWS, 0.2, seeds=(0, 1))
    assert found["accuracy"].shape == (2,)
    assert "ParamSinProbe" in found.attrs["probe"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": ()}, "seeds"),
        ({"seeds": (1, 1)}, "each once"),
        ({"test_share": 0.0}, "test_share is 0.0"),
        ({"test_share": 1.0}, "test_share is 1.0"),
    ],
)
def test_impossible_requests_are_refused(given, message):
    with pytest.raises(InvalidInput, match=message):
        probe_accuracy(PROBE, STATES, ROWS, **given)
