"""Planted waves are told from planted heuristics, on prompts that no fit has seen."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from mechnum.errors import InvalidInput, MechnumError
from mechnum.neurons import adjudicate, heuristics, parse_heuristic
from mechnum.neurons.bag.adjudication import wave_columns
from tests.neurons.grids import grid, maps_of, planted

GRID = grid(30)
PERIODS = (2, 5, 10, 30)
INDICATORS = ["a ≡ 3 (mod 7)", "b in [10, 20)", "a = b", "result in {30, 31, 37}"]


def cosine(name: str, period: float, shift: float) -> np.ndarray:
    numbers = {**GRID, "a+b": GRID["result"]}
    return np.cos(2 * np.pi / period * (numbers[name] - shift))


WAVES = np.stack(
    [cosine("a+b", 10, 3), cosine("a", 30, 7) + cosine("b", 5, 1), GRID["a"] / 15 - GRID["b"] / 7]
)
ROWS = {
    "heuristics": slice(0, 4),
    "waves": slice(4, 7),
    "neither": slice(7, 12),
    "constant": slice(12, 13),
}


def judged(maps: xr.Dataset, **options) -> xr.Dataset:
    """The verdicts on activations."""
    return adjudicate(maps, **options).sel(of="activation")


@pytest.fixture(scope="module")
def maps() -> xr.Dataset:
    noise = np.random.default_rng(1).normal(size=(8, 900))
    activation = np.concatenate(
        [planted(GRID, INDICATORS), WAVES + 0.3 * noise[:3], noise[3:], np.full((1, 900), 0.7)]
    )
    return maps_of(GRID, activation)


@pytest.fixture(scope="module")
def verdicts(maps) -> xr.Dataset:
    return judged(maps, periods=PERIODS, folds=3)


def test_each_is_what_was_planted(verdicts):
    for verdict, rows in ROWS.items():
        assert set(verdicts["verdict"].values[rows]) == {verdict}
    waves, indicators = (verdicts["r2"].sel(description=n) for n in ("waves", "heuristics"))
    # Noise of .3 beside cosines of variance 1/2 and 1.
    np.testing.assert_allclose(waves[4:6], [0.5 / 0.59, 1 / 1.09], atol=0.03)
    assert (indicators[:3] > 0.7).all()
    assert (waves[7:12] < 0.03).all()
    assert (indicators[7:12] <= 0).all()


@pytest.mark.slow
def test_numbers_are_those_of_a_plain_fit(maps, verdicts):
    """R² of waves, with the folds and the fit written out, and of the mean."""
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import KFold

    state = int(np.random.SeedSequence(0).generate_state(1)[0])
    folds = KFold(3, shuffle=True, random_state=state)
    columns = []
    for values in (GRID["a"], GRID["b"], GRID["result"]):
        columns.append(values)
        for period in PERIODS:
            columns.append(np.cos(2 * np.pi * values / period))
            if period > 2:
                columns.append(np.sin(2 * np.pi * values / period))
    X = np.column_stack(columns)
    for node in (0, 4, 9):
        y = maps["activation"].values[node]
        left = {"waves": 0.0, "heuristics": 0.0}
        total, ranks = 0.0, []
        for training, held_out in folds.split(X):
            fit = LinearRegression().fit(X[training], y[training])
            left["waves"] += np.sum((y[held_out] - fit.predict(X[held_out])) ** 2)
            found = heuristics(maps.isel(prompt=training, node=[node]))
            (matched,) = np.nonzero(found["matched"].values[0, :, 0])
            words = [str(found["heuristic"].values[place]) for place in matched]
            held = [parse_heuristic(one).holds(GRID) for one in words]
            H = np.column_stack([np.ones(len(y)), *held]).astype(float)
            weights = np.linalg.lstsq(H[training], y[training], rcond=None)[0]
            ranks.append(np.linalg.matrix_rank(H[training]))
            left["heuristics"] += np.sum((y[held_out] - H[held_out] @ weights) ** 2)
            total += np.sum((y[held_out] - y[training].mean()) ** 2)
        own = verdicts.isel(node=node)
        for name, squares in left.items():
            r2 = own["r2"].sel(description=name)
            assert r2 == pytest.approx(1 - squares / total, abs=1e-5)
            low, high = own["r2_low"], own["r2_high"]
            assert low.sel(description=name) <= r2 <= high.sel(description=name)
        assert own["difference"] == pytest.approx((left["heuristics"] - left["waves"]) / total)
        assert own["n_parameters"].sel(description="heuristics") == np.mean(ranks)
    # A constant, three linear terms of which two are free, and no sine of period 2.
    assert (verdicts["n_parameters"].sel(description="waves") == 1 + 2 + 3 * 7).all()


def test_held_out_prompts_are_not_looked_at(maps):
    """A neuron that stores every prompt by heart has no heuristic that predicts the others."""
    by_heart = maps_of(GRID, np.random.default_rng(5).permutation(900)[None].astype(float))
    found = judged(by_heart, periods=PERIODS, threshold=0.01, alpha=1.0, folds=3)
    # All that can match does, and none of it helps.
    assert found["n_parameters"].sel(description="heuristics") > 100
    assert found["r2"].sel(description="heuristics") < 0
    assert found["verdict"].item() == "neither"


def test_a_cosine_of_period_2_is_a_parity():
    values = cosine("a+b", 2, 0) + 0.3 * np.random.default_rng(0).normal(size=900)
    maps = maps_of(GRID, values[None])
    assert judged(maps, periods=PERIODS, folds=2)["verdict"].item() == "undecided"


def test_interval_covers_the_difference_on_other_prompts(maps, verdicts):
    """Another split gives differences within what the intervals allow."""
    other = judged(maps, periods=PERIODS, folds=3, seed=9)
    decided = verdicts["verdict"].isin(["waves", "heuristics"])
    width = verdicts["difference_high"] - verdicts["difference_low"]
    moved = np.abs(other["difference"] - verdicts["difference"])
    assert (moved[decided] < width[decided]).all()
    assert (width[decided] > 0).all()
    assert (other["verdict"] == verdicts["verdict"]).all()


def test_one_operand_and_a_modulus():
    a = np.arange(200)
    wave = np.cos(2 * np.pi * a / 25)
    noise = 0.2 * np.random.default_rng(0).normal(size=(2, 200))
    numbers = {"a": a, "result": a // 5}
    values = np.stack([wave, (a % 7 == 3) * 1.0]) + noise
    found = judged(maps_of(numbers, values), periods=(25,), folds=3)
    assert found["verdict"].values.tolist() == ["waves", "heuristics"]
    p = 31
    pairs = grid(p)
    modular = {**pairs, "result": pairs["result"] % p}
    waves = np.cos(2 * np.pi * 4 * modular["result"] / p)[None]
    assert judged(maps_of(modular, waves), periods=(p / 4,), folds=2)["verdict"] == "waves"


def test_constant_maps_have_no_numbers(verdicts):
    own = verdicts.isel(node=12)
    for name in ("r2", "r2_low", "difference", "difference_high"):
        assert own[name].isnull().all()


def test_stored(verdicts, tmp_path):
    verdicts.to_netcdf(tmp_path / "verdicts.nc")
    xr.testing.assert_equal(xr.load_dataset(tmp_path / "verdicts.nc"), verdicts)


def test_refusals(maps, unchecked):
    for options, message in [
        ({"periods": ()}, "there are no periods"),
        ({"periods": (10, 1.5)}, "on integers a period of 1.5 is the same as"),
        ({"folds": 1}, "900 prompts are not split in 1 folds"),
        ({"folds": 451}, "are not split in 451 folds"),
        ({"margin": -1}, "margin is -1"),
        ({"seed": 0.5}, "the seed is 0.5"),
        ({"threshold": 2}, "threshold is 2"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            judged(maps, **{"periods": PERIODS, **options})
    with pytest.raises(MechnumError, match="the maps have no 'activation'"):
        judged(maps.drop_vars("activation"))
    assert wave_columns({"a": np.arange(5), "result": np.arange(5)}, (2,)).shape == (5, 3)


def test_each_state_has_a_verdict_with_the_same_heuristics(maps):
    """A pre-activation that is another neuron's wave: its verdict follows what it is itself."""
    some = maps.isel(node=[4, 0])
    both = some.assign(pre=some["activation"].copy(data=some["activation"].values[::-1]))
    found = adjudicate(both, periods=PERIODS, folds=3, of=("activation", "pre"))
    assert found["verdict"].sel(of="activation").values.tolist() == ["waves", "heuristics"]
    assert found["verdict"].sel(of="pre").values[1] == "waves"
    alone = judged(some, periods=PERIODS, folds=3)
    xr.testing.assert_allclose(found.sel(of="activation", drop=True), alone.drop_vars("of"))
    parameters = found["n_parameters"].sel(description="heuristics")
    np.testing.assert_array_equal(parameters.sel(of="pre"), parameters.sel(of="activation"))
