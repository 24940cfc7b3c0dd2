"""What is ablated is the fitted subspace, in the clean run, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from transformers import GPTJForCausalLM

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.helix import ablation_scores
from mechnum.helix.components import TrainingStates
from mechnum.helix.crossfit import parts_by_value
from mechnum.models import Model
from mechnum.tasks import Pairs, Prompts, modular_addition
from tests.helix.nets import P, logit_diff, overwritten, stage_outputs, tiny_gptj

OPTIONS = {"periods": (5, 23), "folds": 3}


@pytest.fixture(scope="module")
def net() -> GPTJForCausalLM:
    return tiny_gptj()


@pytest.fixture(scope="module")
def model(net: GPTJForCausalLM) -> Model:
    return mn.wrap(net, name="tiny")


@pytest.fixture(scope="module")
def prompts(model: Model) -> tuple[Prompts, ...]:
    return modular_addition(P).prompts(model)


@pytest.fixture(scope="module")
def pairs(model: Model) -> Pairs:
    return modular_addition(P).pairs(model, 10, vary="any", seed=0, correct_only=False)


@pytest.mark.parametrize(("position", "place", "variable"), [("a", 0, "a"), ("end", 2, "answer")])
def test_scores_are_those_of_module_hooks(
    net: GPTJForCausalLM,
    model: Model,
    pairs: Pairs,
    prompts: tuple[Prompts, ...],
    position: str,
    place: int,
    variable: str,
) -> None:
    """Whole state, helix and PCA, projected here by least squares and an SVD of NumPy."""
    found = ablation_scores(
        model, pairs, prompts, position, subspaces=("whole", "helix", "pca"), **OPTIONS
    )
    (group,) = pairs.groups
    n = prompts[0].variables[variable].double().numpy()
    asked = group.clean.variables[variable].double().numpy()
    every = stage_outputs(net, prompts[0].tokens)
    clean = stage_outputs(net, group.clean.tokens)
    before = logit_diff(net, pairs, group.clean.tokens)
    parts = parts_by_value(n[:, None], asked[:, None], 3, seed=0)
    for layer in range(3):
        states, own = every[layer + 1][:, place], clean[layer + 1][:, place]
        values = {name: np.empty_like(own) for name in ("whole", "helix", "pca")}
        for part in parts:
            train, true = states[part.train], own[part.asked]
            mean = train.mean(axis=0)
            waves = [np.ones(len(train)), n[part.train]]
            for period in (5, 23):
                angle = 2 * np.pi * n[part.train] / period
                waves += [np.cos(angle), np.sin(angle)]
            coefficients = np.linalg.lstsq(np.stack(waves, 1), train, rcond=None)[0][1:]
            axes = np.linalg.svd(train - mean, full_matrices=False)[2][:5]
            bases = {"whole": np.eye(32), "helix": np.linalg.qr(coefficients.T)[0].T, "pca": axes}
            for name, basis in bases.items():
                values[name][part.asked] = true - (true - mean) @ basis.T @ basis
        for name, written in values.items():
            with overwritten(net, layer, place, torch.tensor(written, dtype=torch.float32)):
                after = logit_diff(net, pairs, group.clean.tokens)
            score = found["score"].sel({"layer": layer, "method": name})
            np.testing.assert_allclose(score, after - before, atol=1e-4)
    assert found["parameters"].values.tolist() == [32, 5, 5]
    assert found.attrs["direction"] == "noise"


def test_random_subspaces_have_the_helixs_size_and_the_seed_decides() -> None:
    """Bases of one part, from states whose first four axes alone vary."""
    from mechnum.helix.ablation import _bases

    rng = np.random.default_rng(0)
    states = np.concatenate([rng.normal(size=(50, 4)), np.zeros((50, 12))], axis=1)
    inverse = np.linalg.pinv(rng.normal(size=(50, 2)) - 0.1)
    bases = _bases(TrainingStates(states), inverse, 100, np.random.default_rng(1))
    assert bases["whole"] is None
    for name in ("helix", "pca", "random", "random_components"):
        basis = bases[name]
        assert basis is not None
        np.testing.assert_allclose(basis @ basis.T, np.eye(2), atol=1e-9)
        # All but "random" stay where the states vary.
        inside = np.linalg.norm(basis[:, :4]) ** 2
        assert inside < 1.9 if name == "random" else inside == pytest.approx(2)


def test_where_all_states_are_the_same_nothing_is_lost(
    model: Model, pairs: Pairs, prompts: tuple[Prompts, ...]
) -> None:
    found = ablation_scores(model, pairs, prompts, "end", layers=(-1,), **OPTIONS)
    np.testing.assert_allclose(found["score"], 0, atol=1e-4)


def test_same_seed_same_numbers(model: Model, pairs: Pairs, prompts: tuple[Prompts, ...]) -> None:
    options = {"subspaces": ("random", "random_components"), "layers": (0,), "folds": None}
    one = ablation_scores(model, pairs, prompts, "a", periods=(5,), seed=1, **options)
    again = ablation_scores(model, pairs, prompts, "a", periods=(5,), seed=1, **options)
    xr.testing.assert_identical(one, again)
    other = ablation_scores(model, pairs, prompts, "a", periods=(5,), seed=2, **options)
    assert not np.allclose(one["score"], other["score"])


def test_refusals(model: Model, pairs: Pairs, prompts: tuple[Prompts, ...], unchecked) -> None:
    with pytest.raises(MechnumError, match="no subspaces: use some of whole, helix"):
        ablation_scores(model, pairs, prompts, subspaces=())
    with pytest.raises(MechnumError, match="unknown subspace 'half'"):
        ablation_scores(model, pairs, prompts, subspaces=("half",))
    with pytest.raises(MechnumError, match="layer 9 does not exist"):
        ablation_scores(model, pairs, prompts, layers=(9,))
    with pytest.raises(MechnumError, match="no pairs or no prompts"):
        ablation_scores(model, pairs, ())
