"""Fits of real and planted neurons: against plain least squares, gradient descent and hooks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.memory import memory_budget
from mechnum.neurons import fit, fit_values, formula, predict
from mechnum.tasks import activations_of, numbers_of
from tests import fixtures
from tests.neurons.planted import OPERAND_K, P, Planted, planted, wave
from tests.tasks.small_tokenizers import word_level

PERIODS = (P / 3, P / OPERAND_K)


@pytest.fixture(scope="module")
def adder():
    return mn.load("adder-gptj")


@pytest.fixture(scope="module")
def sums():
    return mn.tasks.addition(range(40))


@pytest.fixture(scope="module")
def fitted(adder, sums):
    return fit(adder, sums)


def test_planted_waves_come_back_with_amplitude_phase_and_formula():
    phase = 2 * np.pi * 2.2 * OPERAND_K / P
    neurons = [
        Planted(wave(3, 2.0, 0.7)),
        Planted(
            wave(OPERAND_K, 0.4, -2.0),
            {"a_c": 1.3 * np.cos(phase), "a_s": 1.3 * np.sin(phase)},
            bias=0.3,
        ),
        Planted(of_operands={"a_n": 0.1, "b_n": -0.2}, bias=1.0),
    ]
    model = planted(neurons)
    task = mn.tasks.modular_addition(P)
    found = fit(model, task, periods=PERIODS, variables=("a", "b", "a+b"), linear=True)
    own = found.sel(layer=1, neuron=[0, 1, 2])
    expected = np.zeros((3, 3, 2))
    expected[0, 2, 0], expected[1, 2, 1], expected[1, 0, 1] = 2.0, 0.4, 1.3
    np.testing.assert_allclose(own["amplitude"], expected, atol=1e-6)
    sums = own["phase"].sel(variable="a+b")
    np.testing.assert_allclose(sums[0, 0], 0.7, atol=1e-6)
    np.testing.assert_allclose(sums[1, 1], -2.0, atol=1e-6)
    # Slopes are for half the range, and the intercept is where both operands are in its middle.
    np.testing.assert_allclose(own["slope"][2], [0.1 * 11, -0.2 * 11], atol=1e-6)
    np.testing.assert_allclose(own["intercept"], [0, 0.3, 1 + 1.1 - 2.2], atol=1e-6)
    np.testing.assert_allclose(own["r2"], 1, atol=1e-9)
    np.testing.assert_allclose(own["sum_share"], [1, 0.16 / (0.16 + 1.69), 0], atol=1e-6)
    rest = found["status"].sel(layer=1, neuron=slice(3, None))
    assert set(rest.values) == {"constant"}
    assert formula(found, "neuron 1.0") == "2 cos(2π·3/23 (a+b − 0.854))"
    assert formula(found, "neuron 1.1") == (
        "1.3 cos(2π·4/23 (a − 2.2)) + 0.4 cos(2π·4/23 (a+b + 1.83)) + 0.3"
    )
    assert formula(found, "neuron 1.2") == "−2.2 (b − 11)/11 + 1.1 (a − 11)/11 − 0.1"


@pytest.mark.parametrize("of", ["pre", "hidden"])
def test_values_are_those_that_module_hooks_see(of):
    """Of a gated MLP, whose activation function reads the gate."""
    hf = fixtures.llama()
    model = mn.wrap(hf, tokenizer=word_level(range(50)), name="tiny")
    task = mn.tasks.addition(range(9), template="{a}+{b}=")
    found = fit(model, task, of, periods=(5, 9))
    (group,) = task.prompts(model)
    numbers = numbers_of([group], ["a", "b"])
    seen, hooks = [], []
    for block in hf.model.layers:
        gate, down = block.mlp.gate_proj, block.mlp.down_proj
        if of == "pre":
            hook = gate.register_forward_hook(lambda _m, _i, out: seen.append(out))
        else:
            hook = down.register_forward_pre_hook(lambda _m, i: seen.append(i[0]))
        hooks.append(hook)
    with torch.no_grad():
        hf(group.tokens)
    for hook in hooks:
        hook.remove()
    for layer in range(3):
        values = seen[layer][:, -1].double().numpy()
        a, b = numbers.T
        columns = [np.ones(81), a, b]
        for t in (a, b, a + b):
            for period in (5, 9):
                columns += [np.cos(2 * np.pi * t / period), np.sin(2 * np.pi * t / period)]
        matrix = np.stack(columns, axis=1)
        solution = np.linalg.lstsq(matrix, values, rcond=None)[0]
        waves = solution[3:].reshape(3, 2, 2, -1)
        own = found.sel(layer=layer)
        np.testing.assert_allclose(
            own["amplitude"], np.moveaxis(np.hypot(waves[:, :, 0], waves[:, :, 1]), -1, 0),
            rtol=1e-3, atol=1e-5,
        )  # fmt: skip
        np.testing.assert_allclose(own["slope"], 4 * solution[1:3].T, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(
            predict(own, numbers).transpose("prompt", "neuron"), matrix @ solution, atol=1e-5
        )


def descended(values, numbers, periods):
    """Losses of Kantamneni & Tegmark's own parameters at the end of a descent of all gradients."""
    a, b = torch.from_numpy(numbers.T)
    half = (a.max() - a.min()) / 2
    linear = torch.stack([(a - a.mean()) / half, (b - b.mean()) / half])
    angles = torch.stack([2 * np.pi * t / period for t in (a, b, a + b) for period in periods])
    target = torch.from_numpy(values)
    generator = torch.Generator().manual_seed(0)
    n_neurons, scale = values.shape[1], target.std(dim=0)

    def drawn(*shape):
        start = torch.randn(*shape, n_neurons, generator=generator, dtype=torch.float64)
        return start.requires_grad_()

    slope, size, shift, bias = drawn(2), drawn(len(angles)), drawn(len(angles)), drawn()

    def losses():
        waves = size[:, None] * torch.cos(angles[:, :, None] - shift[:, None])
        said = (waves.sum(0) + linear.T @ slope + bias) * scale
        return ((said - target) ** 2).mean(0)

    optimizer = torch.optim.LBFGS(
        [slope, size, shift, bias], max_iter=600, history_size=30,
        tolerance_grad=1e-12, tolerance_change=1e-15, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure():
        optimizer.zero_grad()
        loss = (losses() / scale**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return losses().detach().numpy()


@pytest.mark.slow
def test_the_closed_form_is_the_optimum_of_a_gradient_descent(adder, sums, fitted):
    """20 real neurons, with the paper's parameters: an amplitude and a shift for each wave."""
    prompts = sums.prompts(adder)
    chosen = np.random.default_rng(0).choice(512, 20, replace=False)
    values = activations_of(adder, prompts, "mlp_pre")[3][:, chosen].astype(np.float64)
    numbers = numbers_of(prompts, ["a", "b"])
    reached = descended(values, numbers, fitted["period"].values.tolist())
    own = fitted.sel(layer=3, neuron=chosen)
    spread = values.max(axis=0) - values.min(axis=0)
    ours = (own["nrmse_fitted"].values * spread) ** 2
    assert (ours <= reached * (1 + 1e-9)).all()
    np.testing.assert_allclose(ours, reached, rtol=1e-3)


@pytest.mark.slow
def test_gated_products_are_at_the_optimum_too():
    model = mn.wrap(fixtures.llama(), tokenizer=word_level(range(50)), name="tiny")
    task = mn.tasks.addition(range(20), template="{a}+{b}=")
    found = fit(model, task, "hidden").sel(layer=2, neuron=slice(0, 19))
    prompts = task.prompts(model)
    values = activations_of(model, prompts, "mlp_hidden")[2][:, :20].astype(np.float64)
    reached = descended(values, numbers_of(prompts, ["a", "b"]), found["period"].values.tolist())
    ours = (found["nrmse_fitted"].values * np.ptp(values, axis=0)) ** 2
    np.testing.assert_allclose(ours, reached, rtol=1e-3)


def test_one_prompt_at_a_time_or_in_another_order_is_the_same(adder):
    task = mn.tasks.addition(range(8))
    (group,) = task.prompts(adder)
    options = {"periods": (5,), "layers": [3, 1]}
    whole = fit(adder, task, **options)
    assert whole["layer"].values.tolist() == [3, 1]
    with memory_budget(1):
        single = fit(adder, task, **options)
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(group)))
    shuffled = fit(
        adder, task, **options, prompts=[group.select(order[:30]), group.select(order[30:])]
    )
    for other in (single, shuffled):
        for name in ("amplitude", "slope", "intercept", "r2", "nrmse", "q"):
            np.testing.assert_allclose(other[name], whole[name], rtol=1e-3, atol=1e-4)


def test_few_prompts_have_few_periods_and_say_so(adder):
    task = mn.tasks.addition(range(10), max_sum=9)
    found = fit(adder, task)
    assert found.attrs["n_prompts"] == 55
    assert found["period"].values.tolist() == [2, 5, 10]
    assert found.attrs["left_out"] == "100"
    assert set(found["status"].sel(layer=0).values) == {"constant"}
    assert float((found["q"].sel(layer=3) <= 0.05).mean()) > 0.5


def test_tables_and_attributes(fitted):
    assert fitted["amplitude"].dims == ("layer", "neuron", "variable", "period")
    assert fitted["slope"].dims == ("layer", "neuron", "linear")
    assert fitted.sizes == {"layer": 4, "neuron": 512, "variable": 3, "period": 3, "linear": 2}
    assert fitted.attrs["dropped"] == "sin(T=2, a); sin(T=2, b); sin(T=2, a+b)"
    assert fitted.attrs["n_tested"] == 3 * 512
    # In a parallel block layer 0 reads the same `=` in every prompt.
    constant = fitted.sel(layer=0)
    assert set(constant["status"].values) == {"constant"}
    assert constant["r2"].isnull().all()
    assert (constant["q"] == 1).all()
    assert float(fitted["r2"].sel(layer=3).median()) > 0.7


def test_a_modular_net_is_fitted_at_its_own_frequencies():
    """Its pre-activations hold waves in a, b, a+b and a−b, and next to nothing else."""
    found = fit(mn.load("clock-113"), mn.tasks.modular_addition(113))
    assert found["variable"].values.tolist() == ["a", "b", "a+b", "a-b"]
    assert "slope" not in found
    assert found.attrs["modulus"] == 113
    frequency = 113 / found["period"].values
    np.testing.assert_allclose(frequency, np.round(frequency))
    assert float(found["r2"].mean()) > 0.85
    without = fit(
        mn.load("clock-113"), mn.tasks.modular_addition(113), variables=("a", "b"),
        periods=found["period"].values.tolist(),
    )  # fmt: skip
    assert float(without["r2"].mean()) < float(found["r2"].mean()) - 0.02


def test_one_operand_has_waves_of_its_own(adder):
    task = mn.tasks.addition(range(30))
    (group,) = task.prompts(adder)
    rows = (group.variables["b"] == 7).nonzero().flatten()
    found = fit(adder, task, variables=("a",), periods=(5, 10), prompts=[group.select(rows)])
    assert found.attrs["operands"] == "a"
    assert "sum_share" not in found
    with pytest.raises(MechnumError, match="period 5 in b cannot be told from the terms before it"):
        fit(adder, task, periods=(5, 10), prompts=[group.select(rows)])


def test_layers_without_mlp_are_holes(adder):
    weights = adder.decoder.weights
    blocks = [dataclasses.replace(weights.blocks[2], mlp=None), *weights.blocks[1:]]
    decoder = type(adder.decoder)(
        adder.spec, dataclasses.replace(weights, blocks=tuple(blocks)), adder.decoder.rotary
    )
    holed = dataclasses.replace(adder, decoder=decoder)
    found = fit(holed, mn.tasks.addition(range(9)), periods=(5,))
    assert set(found["status"].sel(layer=0).values) == {"no MLP"}
    assert (
        found.sel(layer=0)[["amplitude", "r2", "q", "p", "slope"]].isnull().all().to_array().all()
    )
    assert found.attrs["n_tested"] <= 3 * 512
    with pytest.raises(MechnumError, match="layer 0 has no MLP"):
        mn.neurons.operand_maps(holed, mn.tasks.addition(range(3)), "neuron 0.1")
    with pytest.raises(MechnumError, match="has no MLPs in layers"):
        fit(holed, mn.tasks.addition(range(9)), layers=[0])
    with pytest.raises(MechnumError, match="this layer has no MLP"):
        formula(found, "neuron 0.1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"of": "post"}, "of='post' is not known"),
        ({"layers": [4]}, "layer 4 of adder-gptj is not there"),
        ({"layers": [1, 1]}, "layer 1 of adder-gptj is twice there"),
        ({"variables": ("c",)}, "no number 'c'"),
        ({"variables": ("a*b",)}, "'a\\*b' is no sum of operands"),
        ({"variables": ()}, "no variables"),
        ({"periods": (1.5,)}, "period of 1.5 is the same as period 3"),
        ({"folds": 1}, "do not make 1 folds"),
        ({"position": "middle"}, "middle"),
        ({"prompts": ()}, "no prompts to fit on"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_what_cannot_be_fitted_is_refused(unchecked, adder, options, message):
    with pytest.raises(MechnumError, match=message):
        fit(adder, mn.tasks.addition(range(8)), **{"periods": (5,), **options})


def test_formulas_and_predictions_of_what_is_not_there(fitted):
    with pytest.raises(MechnumError, match="the fits are of 2048 neurons: name one"):
        formula(fitted)
    with pytest.raises(MechnumError, match=r"the table has no neuron 7\.0"):
        formula(fitted, "neuron 7.0")
    with pytest.raises(MechnumError, match="the fit is in a, b: give one for each"):
        predict(fitted, np.zeros((3, 1)))


def test_shares_of_the_sum_grow_from_layer_to_layer(fitted):
    """The adder's answer is a+b, which its last layer knows and its second does not yet."""
    share = fitted["sum_share"].median("neuron")
    assert float(share.sel(layer=3)) > 3 * float(share.sel(layer=1))


def test_values_at_hand_give_the_same(adder, sums, fitted):
    prompts = sums.prompts(adder)
    values = activations_of(adder, prompts, "mlp_pre")[2]
    found = fit_values(values, numbers_of(prompts, ["a", "b"]), fitted["period"].values.tolist())
    for name in ("amplitude", "intercept", "slope", "r2", "nrmse_fitted", "p"):
        np.testing.assert_allclose(found[name], fitted[name].sel(layer=2), rtol=1e-6, atol=1e-9)
