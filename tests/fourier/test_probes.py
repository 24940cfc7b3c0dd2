"""Residue probes: planted codes, codes without residues, and the same written with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mechnum.errors import InvalidInput
from mechnum.fourier.discriminant import ShrunkDiscriminant
from mechnum.fourier.probes import kappa, residue_probe, residue_reader

from .rows import circles

NUMBERS = np.arange(100)


@pytest.mark.parametrize("d", [32, 2048])
@pytest.mark.parametrize("period", [2, 5, 10])
def test_a_circle_reads_its_residue_and_those_that_divide_it(d, period):
    found = residue_probe(circles(NUMBERS, (period,), d, 0.3), (2, 3, 5, 7, 10), permutations=19)
    kappas = dict(zip(found["modulus"].values.tolist(), found["kappa"].values, strict=True))
    assert kappas[period] > 0.95
    assert float(found["p"].sel(modulus=period)) == 0.05
    assert max(kappas[3], kappas[7]) < 0.15


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["gaussian", "linear", "smooth"])
def test_codes_without_residues_read_none(kind, seed):
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=(100, 256))
    rows = {
        "gaussian": noise,
        "linear": NUMBERS[:, None] * generator.normal(size=256) + 5 * noise,
        "smooth": circles(NUMBERS, (100, 200), 256, 0.1, seed),
    }[kind]
    found = residue_probe(rows, permutations=99, seed=seed)
    read = found["kappa"].dropna("modulus")
    assert read["modulus"].values.tolist() == list(range(2, 11))
    assert float(read.max()) < 0.25
    assert abs(float(read.mean())) < 0.15
    assert float(found["p"].min()) > 0.01


def test_the_family_is_all_layers_and_moduli():
    """Shared permutations: the null of the best is the best of the nulls."""
    noise = np.random.default_rng(11).normal(size=(6, 100, 12))
    found = residue_probe(noise, (2, 5), permutations=99, seed=4)
    assert (found["p_family"] >= found["p"]).all()
    single = residue_probe(noise[2], (5,), permutations=99, seed=4)
    np.testing.assert_allclose(single["p_family"], single["p"])
    several = residue_probe(noise[2], (2, 5), permutations=99, seed=4)
    for other in (single, several):
        np.testing.assert_allclose(other["kappa"].sel(modulus=5), found["kappa"][2].sel(modulus=5))
    # More permutations reach it in either modulus than in one, and in some layer than in that one.
    best = found.sel(modulus=5)
    best = best.isel(layer=int(best["kappa"].argmax("layer")))
    assert float(best["p_family"]) > float(best["p"])
    assert float(several["p_family"].max()) > float(several["p"].max())


@pytest.mark.slow
def test_chance_alone_is_named_as_often_as_it_says():
    """In 60 tables of noise, nine moduli each: one in twenty, not one for each twenty moduli."""
    alone = family = 0
    for seed in range(60):
        noise = np.random.default_rng(seed).normal(size=(100, 12))
        found = residue_probe(noise, permutations=99, seed=seed)
        alone += bool((found["p"] <= 0.05).any())
        family += bool((found["p_family"] <= 0.05).any())
    assert family <= 7  # 3 are expected; more than 7 come once in a hundred times
    assert alone > 2 * family


def test_permuted_numbers_read_nothing():
    rows = circles(NUMBERS, (2, 5, 10), 64, 0.3)
    kappas = [
        residue_probe(rows, (10,), np.random.default_rng(s).permutation(100), permutations=1)[
            "kappa"
        ]
        for s in range(5)
    ]
    mean, error = np.mean(kappas), np.std(kappas, ddof=1) / np.sqrt(5)
    assert abs(mean) < max(2 * error, 0.1)


def test_the_null_is_the_spread_of_permuted_residues():
    rows = np.random.default_rng(1).normal(size=(100, 12))
    found = residue_probe(rows, (4,), permutations=200)
    drawn = [
        float(
            residue_probe(
                rows, (4,), np.random.default_rng(s).permutation(100), permutations=1, seed=s
            )["kappa"][0]
        )
        for s in range(25)
    ]
    assert float(found["null_mean"][0]) == pytest.approx(np.mean(drawn), abs=0.05)
    assert float(found["null_high"][0]) == pytest.approx(np.quantile(drawn, 0.95), abs=0.1)


def test_the_probe_is_its_estimator_under_cross_validation():
    """Scaling, PCA and classifier inside each fold, written with scikit-learn's own loop."""
    rows = circles(NUMBERS, (10, 25), 40, 2.0, seed=2)
    found = residue_probe(rows, (5, 10), permutations=3, components=15, seed=9)
    of_folds, of_pca = map(int, np.random.SeedSequence(9).generate_state(2))
    folds = GroupKFold(5, shuffle=True, random_state=of_folds)
    for modulus in (5, 10):
        read = np.empty(100, dtype=int)
        for train, test in folds.split(rows, groups=NUMBERS):
            reader = residue_reader(15, of_pca).fit(rows[train], NUMBERS[train] % modulus)
            read[test] = reader.predict(rows[test])
        own = found.sel(modulus=modulus)
        np.testing.assert_array_equal(own["predicted"], read)
        assert float(own["kappa"]) == pytest.approx(cohen_kappa_score(NUMBERS % modulus, read))
        assert float(own["accuracy"]) == np.mean(read == NUMBERS % modulus)


def test_the_discriminant_is_that_of_its_formula():
    """Nearest mean in the metric of the shrunk covariance within classes, by a plain inverse."""
    generator = np.random.default_rng(3)
    classes = generator.integers(0, 4, 60)
    inputs = generator.normal(size=(60, 9)) + 2 * generator.normal(size=(4, 9))[classes] + 5
    fitted = ShrunkDiscriminant().fit(inputs, classes)
    means = np.stack([inputs[classes == c].mean(axis=0) for c in range(4)])
    within = (inputs - means[classes]).T @ (inputs - means[classes]) / 60
    rho = fitted.shrinkage_
    shrunk = (1 - rho) * within + rho * np.var(inputs, axis=0).mean() * np.eye(9)
    others = generator.normal(size=(30, 9)) + 5
    apart = others[:, None] - means
    scores = -np.einsum("rcd,de,rce->rc", apart, np.linalg.inv(shrunk), apart) / 2
    found = fitted.decision_function(others)[:, 0]
    np.testing.assert_allclose(
        found - found.mean(axis=1, keepdims=True), scores - scores.mean(axis=1, keepdims=True)
    )
    np.testing.assert_array_equal(fitted.predict(others), scores.argmax(axis=1))


def test_many_labellings_are_fitted_as_each_alone():
    generator = np.random.default_rng(4)
    inputs, labels = generator.normal(size=(50, 6)), generator.integers(0, 3, size=(50, 7))
    together = ShrunkDiscriminant().fit(inputs, labels).predict(inputs)
    for column in range(7):
        alone = ShrunkDiscriminant().fit(inputs, labels[:, column]).predict(inputs)
        np.testing.assert_array_equal(together[:, column], alone)


def test_classes_that_are_points_do_not_break_it():
    """The last digit's embedding is the same vector for each number that ends with it."""
    rows = np.random.default_rng(5).normal(size=(10, 30))[NUMBERS % 10]
    found = residue_probe(rows, (2, 5, 10), permutations=19)
    np.testing.assert_allclose(found["kappa"], 1)


def test_too_few_numbers_are_a_status_and_no_number():
    rows = np.random.default_rng(6).normal(size=(2, 100, 5))
    rows[1] = 1
    found = residue_probe(rows, (10, 20), permutations=3)
    assert found["status"].values.tolist() == [
        ["read", "too few numbers of some residues"],
        ["all rows are the same", "too few numbers of some residues"],
    ]
    assert np.isfinite(found["kappa"].values).tolist() == [[True, False], [False, False]]
    assert (found["predicted"].sel(modulus=20) == -1).all()
    # A thousand numbers are enough for 100 residues.
    many = residue_probe(circles(np.arange(1000), (100,), 20, 0.01), (100,), permutations=1)
    assert float(many["kappa"][0]) == pytest.approx(1, abs=0.01)


def test_a_number_is_held_out_with_all_its_rows():
    """Rows of one number are nearly the same: seen in training, each would name its residue."""
    generator = np.random.default_rng(7)
    numbers = np.repeat(NUMBERS, 3)
    rows = generator.normal(size=(100, 200))[numbers] + 0.01 * generator.normal(size=(300, 200))
    found = residue_probe(rows, (5,), numbers, permutations=19)
    assert float(found["kappa"][0]) < 0.25
    assert found["predicted"].sizes["number"] == 300


def test_folds_need_not_be_of_one_size():
    numbers = np.setdiff1d(np.arange(50, 160), [60, 61, 99])
    found = residue_probe(circles(numbers, (5,), 300, 0.3), (2, 5), numbers, permutations=3)
    assert float(found["kappa"].sel(modulus=5)) > 0.9


def test_scaling_and_pca_see_the_training_rows_alone(monkeypatch):
    seen = []
    fit = PCA.fit
    monkeypatch.setattr(PCA, "fit", lambda self, X, y=None: seen.append(len(X)) or fit(self, X, y))
    features = make_pipeline(StandardScaler(), PCA(3))
    features.fit(np.random.default_rng(0).normal(size=(10, 5)))
    seen.clear()
    residue_probe(np.random.default_rng(8).normal(size=(100, 6)), (2,), permutations=2)
    assert set(seen) <= {80}


def test_kappa_is_that_of_scikit_learn():
    generator = np.random.default_rng(9)
    truth, read = generator.integers(0, 5, size=(2, 200))
    assert kappa(truth, read, 5) == pytest.approx(cohen_kappa_score(truth, read))
    assert kappa(np.zeros(4, dtype=int), np.zeros(4, dtype=int), 2) == 0


def test_the_seed_says_all():
    rows = np.random.default_rng(10).normal(size=(60, 8))
    found = residue_probe(rows, (2, 3), permutations=20, seed=1)
    assert found.identical(residue_probe(rows, (2, 3), permutations=20, seed=1))
    assert not found["predicted"].equals(
        residue_probe(rows, (2, 3), permutations=20, seed=2)["predicted"]
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"moduli": (1,)}, "give whole numbers of 2 or more"),
        ({"moduli": ()}, "give whole numbers of 2 or more"),
        ({"moduli": (2, 2)}, "name one twice"),
        ({"folds": 1}, "cannot be held out in 1 folds"),
        ({"folds": 50}, "20 distinct numbers cannot be held out in 50 folds"),
        ({"permutations": 0}, "permutations is 0"),
        ({"components": 0}, "components is 0"),
        ({"seed": -1}, "the seed is -1: give"),
    ],
)
def test_bad_requests_are_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        residue_probe(np.random.default_rng(0).normal(size=(20, 3)), **{"moduli": (2,), **changes})


def test_the_discriminant_refuses_what_has_no_classes():
    with pytest.raises(InvalidInput, match="there is one class alone"):
        ShrunkDiscriminant().fit(np.eye(4), np.zeros(4))
    with pytest.raises(InvalidInput, match="all rows are the same"):
        ShrunkDiscriminant().fit(np.ones((4, 2)), np.array([0, 1, 0, 1]))
    with pytest.raises(InvalidInput, match="give one for each"):
        ShrunkDiscriminant().fit(np.eye(4), np.zeros(3))
    with pytest.raises(InvalidInput, match="give finite inputs"):
        ShrunkDiscriminant().fit(np.full((4, 2), np.nan), np.array([0, 1, 0, 1]))


@pytest.mark.parametrize(("rows", "d"), [(75, 128), (200, 20)])
def test_the_reader_takes_few_rows_and_few_dimensions(rows, d):
    numbers = np.arange(rows)
    angle = 2 * np.pi * numbers[:, None] / 10
    states = np.hstack([np.cos(angle), np.sin(angle)]) @ np.random.default_rng(0).normal(
        size=(2, d)
    )
    reader = residue_reader().fit(states, numbers % 10)
    assert (reader.predict(states) == numbers % 10).all()
    assert reader.named_steps["leadingcomponents"].n_components == 100
