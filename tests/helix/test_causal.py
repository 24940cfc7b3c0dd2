"""Causal scores against module hooks on the transformers model itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from transformers import GPTJConfig, GPTJForCausalLM

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.helix import Helix, PCAReconstruction, causal_scores, variable_scores
from mechnum.helix.crossfit import parts_by_value
from mechnum.models import Model
from mechnum.tasks import Pairs, Prompts, modular_addition, operation, pairs_from_tokens
from mechnum.tasks.operations import OPERATIONS
from tests.fixtures import perturbed
from tests.helix.nets import P, logit_diff, overwritten, stage_outputs, tiny_gptj
from tests.tasks import npm_tokenizers

PLACES = {"a": 0, "b": 1, "end": 2}


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
    return modular_addition(P).pairs(model, 12, vary="any", seed=0, correct_only=False)


@pytest.mark.parametrize("position", ["a", "b", "end"])
def test_scores_are_those_of_module_hooks(
    net: GPTJForCausalLM,
    model: Model,
    pairs: Pairs,
    prompts: tuple[Prompts, ...],
    position: str,
) -> None:
    result = causal_scores(
        model, pairs, prompts, position, methods=("full", "helix", "pca"), periods=(5, 23), folds=4
    )
    assert dict(result.sizes) == {"layer": 4, "method": 3, "pair": 12}
    (group,) = pairs.groups
    assert torch.equal(group.index, torch.arange(12))
    place = PLACES[position]
    variable = "answer" if position == "end" else position
    numbers = prompts[0].variables[variable].double().numpy()[:, None]
    asked = group.clean.variables[variable].double().numpy()[:, None]
    states, clean = (
        stage_outputs(net, prompts[0].tokens),
        stage_outputs(net, group.clean.tokens),
    )
    before = logit_diff(net, pairs, group.corrupt.tokens)
    for layer in range(-1, 3):
        true = clean[layer + 1][:, place]
        helix, pca = np.empty_like(true), np.empty_like(true)
        for part in parts_by_value(numbers, asked, 4, seed=0):
            train = states[layer + 1][part.train, place]
            n = numbers[part.train, 0]
            scale = (n.min() + n.max()) / 2, (n.max() - n.min()) / 2
            helix[part.asked] = (
                waves(asked[part.asked, 0], scale) @ (np.linalg.lstsq(waves(n, scale), train)[0])
            )
            mean = train.mean(axis=0)
            axes = np.linalg.svd(train - mean, full_matrices=False)[2][:5]
            pca[part.asked] = (true[part.asked] - mean) @ axes.T @ axes + mean
        for method, values in {"full": true, "helix": helix, "pca": pca}.items():
            with overwritten(net, layer, place, torch.tensor(values, dtype=torch.float32)):
                after = logit_diff(net, pairs, group.corrupt.tokens)
            score = result["score"].sel({"layer": layer, "method": method})
            np.testing.assert_allclose(score, after - before, atol=1e-4)
            r2 = float(result["r2"].sel({"layer": layer, "method": method}))
            if (layer, position) == (-1, "end"):
                # Every prompt ends with the same token, whose embedding has nothing to explain.
                assert np.isnan(r2)
                continue
            rest = np.sum((true - values) ** 2) / np.sum((true - true.mean(axis=0)) ** 2)
            assert r2 == pytest.approx(1 - rest)


def waves(numbers: np.ndarray, scale: tuple[float, float]) -> np.ndarray:
    columns = [np.ones_like(numbers), (numbers - scale[0]) / scale[1]]
    for period in (5, 23):
        angle = 2 * np.pi * numbers / period
        columns += [np.cos(angle), np.sin(angle)]
    return np.stack(columns, axis=1)


def test_the_last_state_decides_the_answer(
    net: GPTJForCausalLM, model: Model, pairs: Pairs, prompts: tuple[Prompts, ...]
) -> None:
    result = causal_scores(model, pairs, prompts, "end", methods=("full",), layers=(2,))
    (group,) = pairs.groups
    whole = logit_diff(net, pairs, group.clean.tokens) - logit_diff(
        net, pairs, group.corrupt.tokens
    )
    np.testing.assert_allclose(result["score"][0, 0], whole, atol=1e-4)
    assert float(result["r2"][0, 0]) == 1


def test_overwriting_twice_is_overwriting_once(
    net: GPTJForCausalLM, model: Model, pairs: Pairs, prompts: tuple[Prompts, ...]
) -> None:
    (group,) = pairs.groups
    numbers = prompts[0].variables["a"]
    states = model.run(prompts[0].tokens, keep=("resid_post",))["resid_post", 0][:, 0]
    fitted = Helix((5, 23)).fit(numbers, states)
    values = torch.tensor(fitted.predict(group.clean.variables["a"]), dtype=torch.float32)
    with overwritten(net, 0, 0, values):
        once = logit_diff(net, pairs, group.corrupt.tokens)
    with overwritten(net, 0, 0, values, times=2):
        twice = logit_diff(net, pairs, group.corrupt.tokens)
    np.testing.assert_array_equal(once, twice)
    result = causal_scores(
        model, pairs, prompts, "a", methods=("helix",), periods=(5, 23), layers=(0,), folds=None
    )
    before = logit_diff(net, pairs, group.corrupt.tokens)
    np.testing.assert_allclose(result["score"][0, 0], twice - before, atol=1e-4)


def test_in_sample_is_the_papers_fit_and_fits_better(
    model: Model, pairs: Pairs, prompts: tuple[Prompts, ...]
) -> None:
    options = {"methods": ("helix", "polynomial", "pca"), "periods": (5, 10, 23)}
    inside = causal_scores(model, pairs, prompts, "a", folds=None, **options)
    outside = causal_scores(model, pairs, prompts, "a", folds=4, **options)
    assert bool((inside["r2"] > outside["r2"]).all())
    assert inside.attrs["folds"] == "in sample"
    assert outside.attrs["folds"] == "4"


def test_sizes_are_equal_and_said(model: Model, pairs: Pairs, prompts: tuple[Prompts, ...]) -> None:
    methods = ("full", "pca", "helix", "circle", "polynomial", "permuted")
    one = causal_scores(model, pairs, prompts, "a", methods=methods, periods=(2, 5), layers=(0,))
    # sin(T=2) is zero on integers, so that helix and circle have one column less than their name.
    assert one["parameters"].values.tolist() == [32, 5, 4, 3, 5, 4]
    two = causal_scores(
        model, pairs, prompts, "end", ("a", "b"), methods, (3, 5), layers=(1,), folds=3
    )
    assert two["parameters"].values.tolist() == [32, 10, 10, 8, 10, 10]
    assert two.attrs["features"] == "a, b"
    assert two.attrs["periods"] == [3.0, 5.0]


def test_same_seed_same_numbers(model: Model, pairs: Pairs, prompts: tuple[Prompts, ...]) -> None:
    options = {"methods": ("helix", "permuted"), "periods": (5, 23)}
    one = causal_scores(model, pairs, prompts, "a", seed=1, **options)
    xr.testing.assert_identical(one, causal_scores(model, pairs, prompts, "a", seed=1, **options))
    other = causal_scores(model, pairs, prompts, "a", seed=2, **options)
    assert not np.allclose(one["score"], other["score"])


def test_results_survive_netcdf(
    model: Model, pairs: Pairs, prompts: tuple[Prompts, ...], tmp_path
) -> None:
    result = causal_scores(model, pairs, prompts, "a", periods=(5, 23), layers=(0, 2))
    result.to_netcdf(tmp_path / "scores.nc")
    with xr.open_dataset(tmp_path / "scores.nc") as again:
        xr.testing.assert_equal(result, again)
        assert np.ravel(again.attrs["periods"]).tolist() == [5.0, 23.0]


def test_one_pair_has_no_r2(model: Model, prompts: tuple[Prompts, ...]) -> None:
    pair = modular_addition(P).pairs(model, 1, correct_only=False)
    result = causal_scores(model, pair, prompts, "a", periods=(23,))
    assert bool(result["r2"].isnull().all())
    assert bool(result["score"].notnull().all())


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"position": "c"}, "no position 'c'"),
        ({"variables": ("c",)}, "no number 'c'"),
        ({"methods": ()}, "no methods"),
        ({"layers": ()}, "no layers"),
        ({"layers": (3,)}, "layer 3 does not exist"),
        ({"layers": (-2,)}, "layer -2 does not exist"),
        ({"periods": (0,)}, "period 0"),
        ({"folds": 1}, "1 fold"),
        ({"periods": (2, 3, 4, 5, 6, 7, 8, 9, 10, 23, 11, 12, 13)}, "distinct numbers"),
        ({"metric": "logits"}, None),
        ({"methods": ("spline",)}, None),
    ],
)
def test_refusals(
    model: Model,
    pairs: Pairs,
    prompts: tuple[Prompts, ...],
    options: dict,
    word: str | None,
) -> None:
    # Words outside a Literal are caught by the tests' own type checks before ours.
    with pytest.raises(MechnumError if word else Exception, match=word) as caught:
        causal_scores(model, pairs, prompts, **{"position": "a", **options})
    if word:
        assert "\n" not in str(caught.value)


def test_pairs_without_numbers_are_refused(model: Model, prompts: tuple[Prompts, ...]) -> None:
    pairs = pairs_from_tokens([[1, 2, P]], [[4, 2, P]], [3], [6])
    with pytest.raises(MechnumError, match="have no number 'answer'"):
        causal_scores(model, pairs, prompts, "end")


def test_several_variables_are_helices_of_their_own_beside_pca(
    net: GPTJForCausalLM, model: Model, pairs: Pairs, prompts: tuple[Prompts, ...]
) -> None:
    """helix(a,b) and the rest against estimators fitted here, written by module hooks."""
    features = (("a", "b"), ("a+b",), ("a", "b", "a+b"))
    found = variable_scores(
        model, pairs, prompts, "end", features, periods=(5, 23), layers=(1,), folds=None
    )
    assert found["method"].values.tolist() == [
        "full", "PCA-5", "PCA-15", "helix(a,b)", "helix(a+b)", "helix(a,b,a+b)"
    ]  # fmt: skip
    # a + b is linear in a and b, so that the largest helix has one column less.
    assert found["parameters"].values.tolist() == [32, 5, 15, 10, 5, 14]
    (group,) = pairs.groups
    states = stage_outputs(net, prompts[0].tokens)[2][:, 2]
    true = stage_outputs(net, group.clean.tokens)[2][:, 2]
    before = logit_diff(net, pairs, group.corrupt.tokens)

    def table(variables: dict[str, torch.Tensor], names: tuple[str, ...]) -> np.ndarray:
        a, b = variables["a"].double().numpy(), variables["b"].double().numpy()
        return np.column_stack([{"a": a, "b": b, "a+b": a + b}[name] for name in names])

    written = {"full": true}
    for size in (5, 15):
        written[f"PCA-{size}"] = PCAReconstruction(size).fit(states).predict(true)
    for names in features:
        helix = Helix((5, 23)).fit(table(prompts[0].variables, names), states)
        written[f"helix({','.join(names)})"] = helix.predict(table(group.clean.variables, names))
    for method, values in written.items():
        with overwritten(net, 1, 2, torch.tensor(values, dtype=torch.float32)):
            after = logit_diff(net, pairs, group.corrupt.tokens)
        score = found["score"].sel({"layer": 1, "method": method})
        np.testing.assert_allclose(score, after - before, atol=1e-4)


def test_variables_are_refused_where_there_are_none(
    model: Model, pairs: Pairs, prompts: tuple[Prompts, ...]
) -> None:
    with pytest.raises(MechnumError, match="no features"):
        variable_scores(model, pairs, prompts, features=())
    with pytest.raises(MechnumError, match="no number 'c'"):
        variable_scores(model, pairs, prompts, features=(("c",),))


@pytest.mark.parametrize("name", OPERATIONS)
def test_tasks_of_one_operand_on_a_random_gptj(name: str) -> None:
    """Prompts of such a pair differ in a alone: its embedding overwritten is the clean prompt."""
    tokenizer = npm_tokenizers.load("gpt2")
    config = GPTJConfig(
        vocab_size=50_300, n_positions=64, n_embd=32, n_layer=2, n_head=4, rotary_dim=4,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    random = mn.wrap(perturbed(GPTJForCausalLM(config)), tokenizer=tokenizer, name="random")
    task = operation(name)
    drawn = task.pairs(random, 5, "a", seed=0, correct_only=False)
    found = causal_scores(
        random, drawn, task.prompts(random), "a", methods=("full", "helix", "permuted"),
        periods=(2, 5, 10),
    )  # fmt: skip
    ends = mn.effects(random, drawn, "attn", "a", estimands=("total",))
    whole = (ends["clean_metric"] - ends["corrupt_metric"]).values
    full = found["score"].sel({"method": "full", "layer": -1}).values
    np.testing.assert_allclose(full, whole, atol=1e-4)
    assert np.abs(whole).max() > 1e-3
    assert np.isfinite(found["score"]).all()
    # Random embeddings have no helix: neither fit explains numbers that it has not seen.
    assert float(found["r2"].sel({"method": "helix", "layer": -1})) < 0.1
