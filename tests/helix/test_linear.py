"""The linear code: read by a regression, added, rounded, and counted by range."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.helix import linear_addition
from mechnum.helix.crossfit import parts_by_value
from mechnum.models import Model
from mechnum.tasks import addition, sample_prompts, states_of


@pytest.fixture(scope="module")
def model() -> Model:
    return mn.load("adder-gptj")


def test_against_scikit_learn(model: Model) -> None:
    task = addition(range(30))
    accuracy, prompts = task.accuracy(model), task.prompts(model)
    drawn = sample_prompts(prompts, 300, seed=1)
    found = linear_addition(model, drawn, accuracy, components=7, ranges=(10, 30), folds=4, seed=2)
    a, b = (drawn[0].variables[name].double().numpy() for name in ("a", "b"))
    for fit, folds in (("in sample", None), ("held out", 4)):
        read = []
        for operand, own in (("a", a), ("b", b)):
            states = states_of(model, drawn, operand)[2].astype(float)
            reading = np.empty(len(own))
            for part in parts_by_value(own[:, None], own[:, None], folds, seed=2):
                pca = PCA(7, svd_solver="full").fit(states[part.train])
                line = LinearRegression().fit(pca.transform(states[part.train]), own[part.train])
                reading[part.asked] = line.predict(pca.transform(states[part.asked]))
            read.append(reading)
            r2 = 1 - np.sum((own - reading) ** 2) / np.sum((own - own.mean()) ** 2)
            at = found["r2"].sel(fit=fit, layer=1, operand=operand)
            assert float(at) == pytest.approx(r2)
        right = np.round(read[0] + read[1]) == a + b
        for bound in (10, 30):
            inside = (a < bound) & (b < bound)
            at = found["right"].sel(fit=fit, layer=1, range=bound)
            assert float(at) == pytest.approx(right[inside].mean())
            assert int(found["n"].sel(range=bound)) == inside.sum()
    assert found["model"].values.tolist() == [1.0, 1.0]
    assert float(found["right"].sel(fit="held out", range=30).max()) < 0.9


def test_a_range_without_prompts_is_nan_and_refusals(model: Model) -> None:
    task = addition(range(40, 60))
    accuracy, prompts = task.accuracy(model), task.prompts(model)
    found = linear_addition(model, prompts, accuracy, ranges=(10, 60), components=5)
    assert bool(found["right"].sel(range=10).isnull().all())
    assert np.isnan(found["model"].sel(range=10))
    with pytest.raises(MechnumError, match="components is 0"):
        linear_addition(model, prompts, accuracy, components=0)
    with pytest.raises(MechnumError, match="1 or more"):
        linear_addition(model, prompts, accuracy, ranges=())
    with pytest.raises(MechnumError, match="1 fold"):
        linear_addition(model, prompts, accuracy, folds=1)
