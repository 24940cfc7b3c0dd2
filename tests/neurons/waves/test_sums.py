"""Fits of values at hand: planted waves, noise, and scikit-learn on the same folds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f as f_distribution
from scipy.stats import kstest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from mechnum.errors import InvalidInput
from mechnum.neurons import fit_values, formula, predict
from mechnum.neurons.waves.design import operands_in, wave_design
from mechnum.neurons.waves.sums import WaveFits

GRID = np.stack(np.divmod(np.arange(900), 30), axis=1).astype(np.float64)
PERIODS = (2, 5, 10)


def columns(numbers=GRID, periods=PERIODS):
    """The columns written out, without the sines of T = 2, which are zero."""
    a, b = numbers.T
    found = [a, b]
    for t in (a, b, a + b):
        for period in periods:
            found.append(np.cos(2 * np.pi * t / period))
            if period != 2:
                found.append(np.sin(2 * np.pi * t / period))
    return np.stack(found, axis=1)


def test_planted_neurons_come_back_in_float32_with_their_offset():
    a, b = GRID.T
    values = np.stack(
        [
            1000 + 5 * np.cos(np.pi * (a + b)) + 1.3 * np.cos(2 * np.pi / 10 * (a - 3.2)),
            -0.2 + 0.7 * np.cos(2 * np.pi / 5 * (a + b - 1.1)) - 2 * (b - 14.5) / 14.5,
        ],
        axis=1,
    ).astype(np.float32)
    found = fit_values(values, GRID, PERIODS)
    amplitude = found["amplitude"].transpose("neuron", "variable", "period")
    expected = np.zeros((2, 3, 3))
    expected[0, 2, 0], expected[0, 0, 2], expected[1, 2, 1] = 5, 1.3, 0.7
    np.testing.assert_allclose(amplitude, expected, atol=1e-3)
    phases = found["phase"]
    assert float(phases[0, 0, 2]) == pytest.approx(2 * np.pi / 10 * 3.2, abs=1e-3)
    assert float(phases[1, 2, 1]) == pytest.approx(2 * np.pi / 5 * 1.1, abs=1e-3)
    np.testing.assert_allclose(found["intercept"], [1000, -0.2], atol=1e-3)
    np.testing.assert_allclose(found["slope"][1], [0, -2], atol=1e-3)
    np.testing.assert_allclose(found["r2"], 1, atol=1e-6)
    assert formula(found.isel(neuron=1)) == "−2 (b − 14.5)/14.5 + 0.7 cos(2π/5 (a+b − 1.1)) − 0.2"
    assert formula(found.isel(neuron=0), terms=1) == "5 cos(2π/2 (a+b)) + … + 1000"
    np.testing.assert_allclose(predict(found, GRID).T, values, rtol=1e-6, atol=1e-4)


def test_scores_are_those_of_scikit_learn_on_the_same_folds():
    generator = np.random.default_rng(0)
    values = columns() @ generator.normal(size=(columns().shape[1], 6)) + generator.normal(
        size=(900, 6)
    ) * np.array([0, 1, 5, 20, 100, 1000])
    found = fit_values(values, GRID, PERIODS, folds=4, seed=3)
    design = wave_design(GRID, ("a", "b"), ("a", "b", "a+b"), PERIODS, True)
    folds = design.folds(4, np.random.SeedSequence(3))
    assert sorted(np.bincount(folds)) == [225] * 4
    split = PredefinedSplit(folds)
    model = LinearRegression().fit(columns(), values)
    total = np.sum((values - values.mean(axis=0)) ** 2, axis=0)
    spread = np.ptp(values, axis=0)
    for name, predicted in (
        ("", cross_val_predict(LinearRegression(), columns(), values, cv=split)),
        ("_fitted", model.predict(columns())),
    ):
        left = np.sum((values - predicted) ** 2, axis=0)
        np.testing.assert_allclose(found[f"r2{name}"], 1 - left / total, atol=1e-9)
        np.testing.assert_allclose(
            found[f"nrmse{name}"][1:], (np.sqrt(left / 900) / spread)[1:], rtol=1e-6
        )
    n, k = 900, columns().shape[1]
    ratio = ((total - left) / k) / (left / (n - k - 1))
    p = f_distribution.sf(ratio, k, n - k - 1)
    np.testing.assert_allclose(found["p"][1:], p[1:], rtol=1e-6, atol=1e-300)
    ranks = np.argsort(np.argsort(p))
    assert (found["q"] >= found["p"]).all()
    assert float(found["q"][ranks == 5][0]) == pytest.approx(p.max())
    assert found.attrs["dropped"] == "sin(T=2, a); sin(T=2, b); sin(T=2, a+b)"


def test_noise_is_not_explained():
    """q ≤ .05 for some of 200 noise neurons in about a twentieth of 20 seeds; p is uniform."""
    found = [
        fit_values(np.random.default_rng(seed).normal(size=(900, 200)), GRID, PERIODS)
        for seed in range(20)
    ]
    discoveries = np.array([(one["q"] <= 0.05).sum() for one in found])
    assert (discoveries > 0).sum() <= 4
    assert discoveries.mean() / 200 <= 0.05
    p = np.concatenate([one["p"] for one in found])
    assert kstest(p, "uniform").pvalue > 0.01
    assert np.mean([one["r2"].mean() for one in found]) < 0


def test_permuted_labels_leave_nothing_on_held_out_prompts():
    generator = np.random.default_rng(1)
    values = columns() @ generator.normal(size=(columns().shape[1], 50))
    assert float(fit_values(values, GRID, PERIODS)["r2"].min()) > 0.999
    shuffled = fit_values(values, generator.permutation(GRID), PERIODS)
    assert float(shuffled["r2"].mean()) < 0
    assert float(shuffled["r2_fitted"].mean()) > 0


def test_held_out_prompts_are_new_numbers():
    """Values that differ from pair to pair are no easier when every pair is there twice."""
    values = np.random.default_rng(2).normal(size=(900, 20))
    twice = fit_values(np.tile(values, (2, 1)), np.tile(GRID, (2, 1)), PERIODS)
    assert float(twice["r2"].mean()) < 0
    np.testing.assert_allclose(twice["r2"], fit_values(values, GRID, PERIODS)["r2"])


def test_batches_in_any_order_give_the_same():
    values = np.random.default_rng(3).normal(size=(900, 700)) + 50
    whole = fit_values(values, GRID, PERIODS)
    design = wave_design(GRID, ("a", "b"), ("a", "b", "a+b"), PERIODS, True)
    fits = WaveFits(design, 700)
    for rows in np.array_split(np.random.default_rng(4).permutation(900), 7):
        fits.add(rows, values[np.ix_(rows, range(300))])
        fits.add(rows, values[np.ix_(rows, range(300, 700))], first=300)
    in_parts = fits.result()
    for name in ("amplitude", "slope", "intercept", "r2", "r2_fitted", "nrmse", "p", "q"):
        np.testing.assert_allclose(in_parts[name], whole[name], rtol=1e-7, atol=1e-9)


def test_another_seed_draws_other_folds_and_fits_the_same():
    values = np.random.default_rng(5).normal(size=(900, 5))
    first, same, other = (fit_values(values, GRID, PERIODS, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first["r2"], same["r2"])
    assert not np.allclose(first["r2"], other["r2"], rtol=1e-6)
    np.testing.assert_allclose(first["amplitude"], other["amplitude"], atol=1e-12)


def test_constant_neurons_are_no_hypotheses():
    values = np.random.default_rng(6).normal(size=(900, 4)).astype(np.float32)
    values[:, 0] = 0.1
    values[:, 2] = 3 + 1e-7 * values[:, 2]
    found = fit_values(values, GRID, PERIODS)
    assert found["status"].values.tolist() == ["constant", "fitted"] * 2
    np.testing.assert_array_equal(found["q"][[0, 2]], [1, 1])
    for name in ("r2", "r2_fitted", "nrmse", "nrmse_fitted", "sum_share"):
        assert found[name][[0, 2]].isnull().all()
    assert found.attrs["n_tested"] == 2
    alone = fit_values(values[:, [1, 3]], GRID, PERIODS)
    np.testing.assert_allclose(found["q"][[1, 3]], alone["q"])
    assert formula(found.isel(neuron=0)) == "0.1"


def test_differences_and_holes():
    """Waves in a−b, on a grid with holes and with negative operands."""
    numbers = GRID[np.random.default_rng(7).choice(900, 300, replace=False)] - 11
    a, b = numbers.T
    values = 2 * np.cos(2 * np.pi * (a - b) / 7 - 0.5) + np.cos(2 * np.pi * (a + b) / 7 + 2)
    found = fit_values(values, numbers, (7,), ("a-b", "a+b"), linear=False)
    np.testing.assert_allclose(found["amplitude"][0, :, 0], [2, 1])
    np.testing.assert_allclose(found["phase"][0, :, 0], [0.5, -2])
    assert float(found["sum_share"][0]) == pytest.approx(1 / 5)
    assert "slope" not in found
    assert operands_in(["a - b", "c+a"]) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": np.full((900, 2), np.nan)}, "nan|NaN|not finite"),
        ({"values": np.r_[np.zeros((899, 2)), [[0, np.inf]]]}, "neuron 1 are not finite"),
        ({"values": np.zeros((900, 0))}, "give numbers"),
        ({"values": np.full((900, 2), "x")}, "give numbers"),
        ({"values": np.zeros((5, 2))}, "inconsistent numbers of samples"),
        ({"numbers": np.full((900, 2), np.nan)}, "NaN"),
        ({"numbers": GRID[:, :1]}, "1 columns for 2 operands"),
        ({"periods": ()}, "there are no periods"),
        ({"periods": (5, 5)}, "period 5 is there twice"),
        ({"variables": ("a", "a")}, "variable 'a' is there twice"),
        ({"variables": ("a+a",)}, "no sum of operands"),
        ({"variables": ("x",)}, "no number 'x'"),
        ({"variables": ("a+b", "a-b"), "periods": (2,)}, "period 2 in a-b cannot be told"),
        ({"numbers": np.full((900, 2), 3.0)}, "1 different prompts cannot fix 1 terms"),
        ({"numbers": GRID * 2, "periods": (2,)}, "period 2 in a cannot be told"),
        ({"numbers": np.minimum(GRID, 2)}, "period 5 in a cannot be told"),
        (
            {"numbers": GRID % [3, 1], "variables": ("a",), "periods": (5,), "linear": False},
            "3 different prompts cannot fix 3 terms",
        ),
        ({"folds": 901}, "900 different prompts do not make 901 folds"),
        ({"folds": 0}, "do not make 0 folds"),
        ({"seed": -1}, "the seed is -1"),
    ],
)
def test_what_cannot_be_fitted_is_refused(unchecked, change, message):
    given = {"values": np.zeros((900, 2)), "numbers": GRID, "periods": PERIODS, **change}
    with pytest.raises(InvalidInput, match=message):
        fit_values(**given)


def test_terms_that_a_fold_alone_decides_are_refused():
    """b is 1 for one prompt alone: without its fold there is no wave in b."""
    numbers = np.stack([np.arange(40), np.zeros(40)], axis=1).astype(np.float64)
    numbers[7, 1] = 1
    with pytest.raises(InvalidInput, match="without the prompts of one of 5 folds"):
        fit_values(np.zeros(40), numbers, (5,), ("a",), operands=("a", "b"))


def test_missing_and_repeated_prompts_are_noticed():
    design = wave_design(GRID, ("a", "b"), ("a",), (5,), False)
    fits = WaveFits(design, 3)
    fits.add(np.arange(10), np.zeros((10, 3)))
    with pytest.raises(InvalidInput, match="neuron 0 has 10 values for 900 prompts"):
        fits.result()
