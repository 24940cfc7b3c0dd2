"""Neurons kept, replaced and ablated, against plain module hooks and nets of known neurons."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.stats import norm

import mechnum as mn
from mechnum.errors import MechnumError
from mechnum.models.memory import memory_budget
from mechnum.neurons import ablate, rank, replace
from mechnum.neurons.edited_runs import answers_with
from mechnum.neurons.effects.keeping import Keep
from mechnum.neurons.effects.order import ordered_neurons
from tests import fixtures
from tests.neurons import carriers
from tests.patching.constructed import constructed
from tests.patching.test_neuron_effects import activations

P = 19
TASK = mn.tasks.modular_addition(P)
NETS = {
    "gpt2": lambda: fixtures.gpt2(pad_token_id=None),
    "gptj": lambda: fixtures.gptj(pad_token_id=None),
    "gpt_neox": lambda: fixtures.gpt_neox(pad_token_id=None),
    "gpt_neox sequential": lambda: fixtures.gpt_neox(
        pad_token_id=None, use_parallel_residual=False
    ),
    "llama": lambda: fixtures.llama(pad_token_id=None),
}
TOKENS = torch.tensor([[a, b, P] for a in range(P) for b in range(P)])
ANSWERS = TOKENS[:, :2].sum(1) % P
NUMBERS = TOKENS[:, :2].double().numpy()
MAKERS = fixtures.rest_slow(NETS, "gptj", "llama")


def fits(net, of: str, seed: int = 0) -> xr.Dataset:
    """Waves and slopes that were not fitted to anything."""
    n_layers, d_mlp = net.config.num_hidden_layers, len(fixtures.neuron_modules(net, 0)[2])
    generator = np.random.default_rng(seed)
    lead = ("layer", "neuron")
    shape = (n_layers, d_mlp)
    return xr.Dataset(
        {
            "intercept": (lead, generator.normal(size=shape)),
            "slope": ((*lead, "linear"), generator.normal(size=(*shape, 2))),
            "amplitude": ((*lead, "variable", "period"), generator.normal(size=(*shape, 3, 2))),
            "phase": ((*lead, "variable", "period"), generator.uniform(0, 6, (*shape, 3, 2))),
        },
        {
            "layer": np.arange(n_layers),
            "neuron": np.arange(d_mlp),
            "linear": ["a", "b"],
            "variable": ["a", "b", "a+b"],
            "period": [2.0, 9.5],
            "centre": ("linear", [(P - 1) / 2] * 2),
            "half_range": ("linear", [(P - 1) / 2] * 2),
        },
        {"of": of, "operands": "a, b"},
    )


def written_out(fitted: xr.Dataset, layer: int, neuron: int) -> np.ndarray:
    """The fit of one neuron for every prompt, term by term."""
    own = fitted.isel(layer=layer, neuron=neuron)
    a, b = NUMBERS.T
    found = own["intercept"].item() + sum(
        own["slope"].values[at] * (2 * t / (P - 1) - 1) for at, t in enumerate((a, b))
    )
    for row, t in enumerate((a, b, a + b)):
        for column, period in enumerate((2.0, 9.5)):
            amplitude, phase = (own[name].values[row, column] for name in ("amplitude", "phase"))
            found = found + amplitude * np.cos(2 * np.pi * t / period - phase)
    return found


def hooked(net, kept, values=None, of=None) -> torch.Tensor:
    """Answers with module hooks: `kept` neurons stay or get their values, others their means."""
    means = activations(net, TOKENS).mean(1)
    handles = []
    for layer in range(net.config.num_hidden_layers):
        into, out, _ = fixtures.neuron_modules(net, layer)
        own = [neuron for of_layer, neuron in kept if of_layer == layer]

        def put(state, layer=layer, own=own):
            state = state.clone()
            for neuron in own:
                state[:, -1, neuron] = torch.from_numpy(values[layer, neuron]).float()
            return state

        def before_out(module, given, layer=layer, own=own, put=put):
            state = put(given[0]) if of == "hidden" else given[0].clone()
            others = [neuron for neuron in range(state.shape[-1]) if neuron not in own]
            state[:, -1, others] = means[layer, others]
            return (state,)

        handles.append(out.register_forward_pre_hook(before_out))
        if of == "pre":
            handles.append(
                into.register_forward_hook(lambda module, given, output, put=put: put(output))
            )
    with torch.no_grad():
        predicted = net(TOKENS).logits[:, -1].argmax(-1)
    for handle in handles:
        handle.remove()
    return predicted


def in_the_model(net, order, of) -> torch.Tensor:
    """What neurons do when nothing is edited, [neuron, prompt]."""
    if of == "hidden":
        found = activations(net, TOKENS)
    else:
        kept, handles = [], []
        for layer in range(net.config.num_hidden_layers):
            into = fixtures.neuron_modules(net, layer)[0]
            handles.append(into.register_forward_hook(lambda m, g, output: kept.append(output)))
        with torch.no_grad():
            net(TOKENS)
        for handle in handles:
            handle.remove()
        found = torch.stack(kept)[:, :, -1]
    return torch.stack([found[layer, :, neuron] for layer, neuron in order])


def random_neurons(net, n: int, seed: int = 0) -> list[tuple[int, int]]:
    d_mlp = len(fixtures.neuron_modules(net, 0)[2])
    flat = np.random.default_rng(seed).permutation(d_mlp * net.config.num_hidden_layers)[:n]
    return [divmod(int(one), d_mlp) for one in flat]


def names(neurons) -> list[str]:
    return [f"neuron {layer}.{neuron}" for layer, neuron in neurons]


@pytest.mark.parametrize("architecture", MAKERS)
def test_ablations_are_those_of_module_hooks(architecture):
    net = NETS[architecture]()
    order = random_neurons(net, 60)
    found = ablate(mn.wrap(net), TASK, names(order), ks=(0, 20, 60), n=P * P, n_mean=P * P, draws=1)
    for k in (0, 20, 60):
        right = (hooked(net, order[:k]) == ANSWERS).numpy()
        assert np.array_equal(found["correct"].sel(order="given", k=k), right)
    with torch.no_grad():
        whole = (net(TOKENS).logits[:, -1].argmax(-1) == ANSWERS).double().mean()
    assert found["model_accuracy"].item() == pytest.approx(whole.item())
    assert np.array_equal(found["a"], NUMBERS[:, 0])
    assert np.array_equal(found["answer"], ANSWERS)


@pytest.mark.parametrize("architecture", MAKERS)
@pytest.mark.parametrize("of", ["pre", "hidden"])
def test_replacements_are_those_of_module_hooks(architecture, of):
    net = NETS[architecture]()
    fitted, order = fits(net, of), random_neurons(net, 60)
    values = {one: written_out(fitted, *one) for one in order}
    recorded = {
        one: row.numpy() for one, row in zip(order, in_the_model(net, order, of), strict=True)
    }
    model = mn.wrap(net)
    found = replace(model, TASK, names(order), fitted, ks=(15, 60), n=P * P, n_mean=P * P)
    for k in (15, 60):
        own, fit = hooked(net, order[:k]), hooked(net, order[:k], values, of)
        whole = hooked(net, order[:k], recorded, of)
        assert (own != fit).double().mean() > 0.2
        for content, predicted in (("own", own), ("recorded", whole), ("fit", fit)):
            right = (predicted == ANSWERS).numpy()
            assert np.array_equal(found["correct"].sel(content=content, k=k), right)
    # Not only which are right: every answer.
    keep = _edit(net, order, values, of)
    assert torch.equal(answers_with(model, TASK.prompts(model), [keep])[0], fit)


def _edit(net, order, values, of) -> Keep:
    means = activations(net, TOKENS).mean(1)
    kept = torch.zeros(means.shape, dtype=torch.bool)
    by_layer = {}
    for layer in range(len(means)):
        own = [neuron for at, neuron in order if at == layer]
        kept[layer, own] = True
        given = np.stack([values[layer, neuron] for neuron in own], 1)
        by_layer[layer] = torch.tensor(own), torch.from_numpy(given)
    return Keep(kept, means, {"pre": "mlp_pre", "hidden": "mlp_hidden"}[of], by_layer)


def test_all_neurons_are_the_model_and_none_are_all_ablated():
    model = mn.wrap(NETS["gptj"]())
    scores = xr.DataArray(
        np.random.default_rng(0).normal(size=(3, 128)),
        dims=("layer", "neuron"),
        coords={"layer": range(3), "neuron": range(128)},
    )
    found = ablate(model, TASK, scores, ks=(0, 384), n=200)
    right = TASK.accuracy(model).correct.numpy()[found["prompt"]]
    for order in found["order"].values:
        every, none = (found["correct"].sel(order=order, k=k) for k in (384, 0))
        assert np.array_equal(every, right)
        assert none.mean().item() == found["ablated_accuracy"].item()
    assert found["model_accuracy"].item() == right.mean()


def test_carriers_alone_keep_the_answer():
    """At the last position these neurons hold a + b and the logits; the others distract."""
    p = 7
    model = constructed(p).model
    order = ["neuron 0.0", *(f"neuron 1.{j}" for j in range(p))]
    found = ablate(model, mn.tasks.modular_addition(p), order, ks=(1, 4, p + 1), draws=5)
    given = found["accuracy"].sel(order="given")
    assert found["model_accuracy"] == 1
    assert given.sel(k=p + 1) == 1
    assert given.sel(k=1) < 0.5
    assert found["ablated_accuracy"] < 0.5
    assert found["accuracy"].sel(k=p + 1)[1:].max() < 0.9


def test_the_best_neurons_of_a_ranking_keep_the_answer():
    model, task, n = carriers.net(), carriers.NextNumber(), 2 * carriers.N
    scores = rank(model, carriers.pairs(120, 0), top=1)["neurons"]["estimate_selected"]
    found = ablate(model, task, scores, ks=(carriers.N, n), draws=5)
    given = found["accuracy"].sel(order="given")
    assert found["model_accuracy"] == 1
    assert given.sel(k=n) == 1
    assert found["ablated_accuracy"] < 0.5
    assert given.sel(k=carriers.N) < 0.9
    assert found["accuracy"].sel(k=n)[1:].max() < 0.5


def test_exact_fits_keep_the_answer_and_fits_of_others_do_not():
    """The ramps of the constructed net read t = (a + b) mod p, and p − 1 waves and a constant
    say all that can be said about p numbers."""
    p = 7
    model = constructed(p).model
    layers, d_mlp = 2, p + 3
    periods = [p / k for k in (1, 2, 3)]
    coefficients = np.zeros((layers, d_mlp, p))
    design = np.column_stack(
        [np.ones(p)]
        + [wave(2 * np.pi * np.arange(p) / T) for T in periods for wave in (np.cos, np.sin)]
    )
    for j in range(p):
        coefficients[1, j] = np.linalg.solve(design, np.arange(p) - (j - 1.0))
    cosines, sines = coefficients[..., 1::2], coefficients[..., 2::2]
    fitted = xr.Dataset(
        {
            "intercept": (("layer", "neuron"), coefficients[..., 0]),
            "amplitude": (
                ("layer", "neuron", "variable", "period"),
                np.hypot(cosines, sines)[:, :, None],
            ),
            "phase": (
                ("layer", "neuron", "variable", "period"),
                np.arctan2(sines, cosines)[:, :, None],
            ),
        },
        {"layer": [0, 1], "neuron": range(d_mlp), "variable": ["a+b"], "period": periods},
        {"of": "pre", "operands": "a, b"},
    )
    order = [f"neuron 1.{j}" for j in range(p)]
    found = replace(model, mn.tasks.modular_addition(p), order, fitted, ks=(p,))
    accuracy = found["accuracy"].sel(k=p)
    assert accuracy.sel(content="fit") == 1
    assert accuracy.sel(content="recorded") == 1
    assert accuracy.sel(content="own") < 1  # The carry and a + b of the first layer are ablated.
    assert accuracy.sel(content="fits of other neurons") < 0.5
    assert accuracy.sel(content="fits of other prompts") < 0.5


def test_intervals_are_wilsons():
    found = ablate(mn.wrap(NETS["gptj"]()), TASK, "neuron 0.0-9", n=90, draws=0)
    n, z = 90, norm.ppf(0.975)
    share = found["accuracy"].values
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    np.testing.assert_allclose(found["low"], middle - half, atol=1e-12)
    np.testing.assert_allclose(found["high"], middle + half, atol=1e-12)
    assert found["k"].values.tolist() == [1, 2, 5, 10]
    assert found.sizes["prompt"] == 90


def test_batches_change_nothing_and_seeds_draw_prompts():
    model = mn.wrap(NETS["llama"]())
    arguments = {"task": TASK, "order": "neuron 1.0-4", "ks": (5,), "n": 8, "n_mean": 8, "draws": 1}
    whole = ablate(model, **arguments)
    with memory_budget(1):
        xr.testing.assert_identical(ablate(model, **arguments), whole)
    other = ablate(model, **arguments, seed=1)
    assert not np.array_equal(other["prompt"], whole["prompt"])


def test_orders_by_name_and_by_scores():
    model = mn.wrap(NETS["gptj"]())
    by_name = ordered_neurons(model, "neuron 2.5, neuron 0.3")
    assert by_name.tolist() == [[2, 5], [0, 3]]
    nodes = xr.DataArray(
        [1.0, np.nan, 3.0],
        dims="node",
        coords={"node": ["neuron 0.3", "neuron 1.1", "neuron 2.5"]},
    )
    assert ordered_neurons(model, nodes).tolist() == [[2, 5], [0, 3]]
    table = xr.DataArray(
        [[np.nan, 0.5], [2.0, -1.0]],
        dims=("layer", "neuron"),
        coords={"layer": [1, 2], "neuron": [7, 9]},
    )
    expected = [[2, 7], [1, 9], [2, 9]]
    assert ordered_neurons(model, table).tolist() == expected
    assert ordered_neurons(model, table.T).tolist() == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": "head 0.1"}, "head 0.1 is no single neuron"),
        ({"order": "neuron 0.1, neuron 9.1"}, "the model has layers 0 to 2"),
        ({"order": []}, "no neurons were named"),
        ({"order": ["neuron 0.1", "neuron 0.1"]}, "twice"),
        ({"order": xr.DataArray([1.0], dims="head")}, "do not order neurons"),
        ({"order": xr.DataArray([[np.nan]], dims=("layer", "neuron"))}, "no neuron has a score"),
        ({"ks": (3,)}, "outside 0 to 2"),
        ({"ks": ()}, "outside 0 to 2"),
        ({"ks": (1.5,)}, "1.5"),
        ({"n": 0}, "n is 0"),
        ({"n_mean": 0}, "n_mean is 0"),
        ({"draws": -1}, "draws=-1 is no number"),
        ({"position": "c"}, "no position 'c'"),
        ({"seed": -1}, "the seed is -1"),
    ],
)
def test_bad_ablations_are_refused(changes, message, unchecked):
    arguments = {"order": "neuron 0.1, neuron 1.1"} | changes
    with pytest.raises(MechnumError, match=message):
        ablate(mn.wrap(NETS["gptj"]()), TASK, **arguments)


@pytest.mark.parametrize(
    ("of", "order", "n", "message"),
    [
        ("gate", "neuron 0.1-5", 9, "the fit is of 'gate'"),
        ("pre", "neuron 0.1", 9, "1 neurons and 9 prompts leave no others"),
        ("pre", "neuron 0.1-5", 1, "5 neurons and 1 prompts leave no others"),
        ("pre", "neuron 1.1-5", 9, "the table has no neuron 1.1: it has neurons"),
        ("pre", "neuron 0.1-7", 9, "neuron 0.7 has no fit"),
    ],
)
def test_fits_that_do_not_belong_are_refused(of, order, n, message, unchecked):
    net = NETS["gptj"]()
    fitted = fits(net, of).isel(layer=[0, 2])
    fitted["intercept"][0, 7] = np.nan
    with pytest.raises(MechnumError, match=message):
        replace(mn.wrap(net), TASK, order, fitted, n=n)
